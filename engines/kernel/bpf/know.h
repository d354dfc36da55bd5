/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel knows of a task, for imports that a policy asks for by name (src/supplies.rs). A
 * policy that has no such import pays nothing.
 *
 * Users are numbers of the first user namespace, processes and threads those of the first pid
 * namespace.
 */

/* The kernel's own number for nice value 0. */
#define ATTUNE_PRIORITY_OF_NICE_0 120

/* From -20 to 19. */
static inline int attune_nice(struct task_struct *task)
{
    return task->static_prio - ATTUNE_PRIORITY_OF_NICE_0;
}

/* A member of one bit: its place differs between kernels, so it is computed when the program is
 * loaded. The numbers are those of enum bpf_field_info_kind. */
#define ATTUNE_BYTE_OFFSET 0
#define ATTUNE_LEFT_SHIFT  4
#define ATTUNE_RIGHT_SHIFT 5

static inline int64_t attune_bit(const void *at, uint32_t left, uint32_t right)
{
    uint64_t word;
    /* or else the compiler would fold the offset into the load, where it cannot be set */
    asm volatile("" : "=r"(at) : "0"(at));
    word = *(const uint32_t *)at;
    word <<= left;
    word >>= right;
    return (int64_t)word;
}

#define ATTUNE_BIT(of, member)                                                      \
    attune_bit((const char *)(of) +                                                 \
                   __builtin_preserve_field_info((of)->member, ATTUNE_BYTE_OFFSET), \
               __builtin_preserve_field_info((of)->member, ATTUNE_LEFT_SHIFT),      \
               __builtin_preserve_field_info((of)->member, ATTUNE_RIGHT_SHIFT))

/* Whether the task waits for I/O, or did when it waited last: it clears the mark itself when it
 * runs again. */
static inline int64_t attune_io_wait(struct task_struct *task)
{
    return ATTUNE_BIT(task, in_iowait);
}

/* Whether the program that a thread has executed has rights that the thread lacked before. */
static inline int64_t attune_gains_rights(const struct linux_binprm *program)
{
    return ATTUNE_BIT(program, secureexec);
}

/* Where the kernel counts the interrupts that are open: a variable of each CPU on x86-64, a member
 * of the running thread elsewhere. */
extern const int __preempt_count __attribute__((section(".ksyms"), weak));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info___counted {
    struct {
        uint32_t count;
    } preempt;
};

struct task_struct___counted {
    struct thread_info___counted thread_info;
};

#pragma clang attribute pop

#define ATTUNE_EXISTS     2
/* Interrupts, and soft ones that are served: those that are only held off count twice as much. */
#define ATTUNE_INTERRUPTS 0x00ff0100u

/* The thread that wakes another one on this CPU now. 0: an interrupt does. */
static inline int64_t attune_waker(void)
{
    struct task_struct *current = bpf_get_current_task_btf();
    struct task_struct___counted *counted = (void *)current;
    uint32_t count = 0;
    if (&__preempt_count) {
        const int *here = bpf_this_cpu_ptr(&__preempt_count);
        count = (uint32_t)*here;
    } else if (__builtin_preserve_field_info(counted->thread_info.preempt.count, ATTUNE_EXISTS))
        count = counted->thread_info.preempt.count;
    return count & ATTUNE_INTERRUPTS ? 0 : current->pid;
}
