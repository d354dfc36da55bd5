/* Cortex-M: switching on the main stack pointer, masking by PRIMASK, waiting by WFI. */
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define ATTUNE_PORT "cortex-m"

static inline uint32_t attune_mask(void)
{
    uint32_t before;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before)::"memory");
    return before;
}

static inline void attune_unmask(uint32_t before)
{
    __asm__ volatile("msr primask, %0\n\tisb" ::"r"(before) : "memory");
}

__attribute__((weak)) void attune_idle(void)
{
    __asm__ volatile("wfi" ::: "memory");
}

/* Saves what a function must preserve on the caller's stack, its stack pointer in *save, and goes
 * on where `load` was saved. */
__attribute__((naked, noinline)) static void attune_switch_stacks(void **save, void *load)
{
#if defined(__ARM_FP)
    __asm__ volatile("push {r4-r11, lr}\n\t"
                     "vpush {s16-s31}\n\t"
                     "mov r2, sp\n\t"
                     "str r2, [r0]\n\t"
                     "mov sp, r1\n\t"
                     "vpop {s16-s31}\n\t"
                     "pop {r4-r11, pc}");
#elif defined(__thumb2__)
    __asm__ volatile("push {r4-r11, lr}\n\t"
                     "mov r2, sp\n\t"
                     "str r2, [r0]\n\t"
                     "mov sp, r1\n\t"
                     "pop {r4-r11, pc}");
#else
#error "attune: this Cortex-M has no Thumb-2; the port needs ARMv7-M or later"
#endif
}

#if defined(__ARM_FP)
#define ATTUNE_SAVED 25 /* words: s16-s31, r4-r11, lr */
#else
#define ATTUNE_SAVED 9
#endif

/* A stack on which attune_switch_stacks begins `first`. */
static void *attune_prepare(uint32_t *stack, uint32_t words, void (*first)(void))
{
    uint32_t *top = (uint32_t *)((uintptr_t)(stack + words) & ~(uintptr_t)7);
    uint32_t *at = top - ATTUNE_SAVED;
    for (uint32_t *word = at; word < top; word++)
        *word = 0;
    top[-1] = (uint32_t)(uintptr_t)first;
    return at;
}
#endif
