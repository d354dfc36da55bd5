/* A program on x86-64 or AArch64: the same firmware on a desk. There are no interrupts to mask; a
 * test's attune_idle decides how time passes. */
#if defined(__x86_64__) || defined(__aarch64__)
#define ATTUNE_PORT "host"

#include <time.h>

static inline uint32_t attune_mask(void)
{
    __asm__ volatile("" ::: "memory");
    return 0;
}

static inline void attune_unmask(uint32_t before)
{
    (void)before;
    __asm__ volatile("" ::: "memory");
}

__attribute__((weak)) void attune_idle(void)
{
    struct timespec tick = {ATTUNE_TICK_NS / 1000000000, ATTUNE_TICK_NS % 1000000000};
    nanosleep(&tick, NULL);
    attune_tick();
}

/* Saves what a function must preserve on the caller's stack, its stack pointer in *save, and goes
 * on where `load` was saved. */
void attune_switch_stacks(void **save, void *load);

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl attune_switch_stacks\n"
        "attune_switch_stacks:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n");
#define ATTUNE_SAVED    8 /* 64-bit words: six registers, the return address, one that aligns */
#define ATTUNE_FIRST_AT 6
#else
__asm__(".text\n"
        ".globl attune_switch_stacks\n"
        "attune_switch_stacks:\n"
        "    stp x29, x30, [sp, #-160]!\n"
        "    stp x19, x20, [sp, #16]\n    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n    stp x25, x26, [sp, #64]\n"
        "    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n    stp d14, d15, [sp, #144]\n"
        "    mov x2, sp\n    str x2, [x0]\n    mov sp, x1\n"
        "    ldp x19, x20, [sp, #16]\n    ldp x21, x22, [sp, #32]\n"
        "    ldp x23, x24, [sp, #48]\n    ldp x25, x26, [sp, #64]\n"
        "    ldp x27, x28, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    ldp x29, x30, [sp], #160\n"
        "    ret\n");
#define ATTUNE_SAVED    20
#define ATTUNE_FIRST_AT 1
#endif

/* A stack on which attune_switch_stacks begins `first`. */
static void *attune_prepare(uint32_t *stack, uint32_t words, void (*first)(void))
{
    uint64_t *top = (uint64_t *)((uintptr_t)(stack + words) & ~(uintptr_t)15);
    uint64_t *at = top - ATTUNE_SAVED;
    for (uint64_t *word = at; word < top; word++)
        *word = 0;
    at[ATTUNE_FIRST_AT] = (uint64_t)(uintptr_t)first;
    return at;
}
#endif
