/* SPDX-License-Identifier: GPL-2.0 */
/* Whether a BPF program runs inside an interrupt. What it sees there is none of the doing of the
 * thread that the interrupt stopped.
 *
 * The kernel counts open interrupts in a variable of each CPU on x86-64, which Linux 6.2 to 6.14
 * have in a structure, and in a member of the running thread elsewhere. Which of the three it is
 * shows when the program is loaded.
 *
 * Needs struct task_struct and the helpers bpf_get_current_task_btf and bpf_this_cpu_ptr.
 */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pcpu_hot {
    int preempt_count;
};

struct thread_info___counted {
    struct {
        unsigned int count;
    } preempt;
};

struct task_struct___counted {
    struct thread_info___counted thread_info;
};

#pragma clang attribute pop

extern const int __preempt_count __attribute__((section(".ksyms"), weak));
extern const struct pcpu_hot pcpu_hot __attribute__((section(".ksyms"), weak));

#define ATTUNE_EXISTS     2
/* Hard interrupts, whose bits differ between kernels, and the bit of a soft one that is served:
 * those that are only held off count twice as much. */
#define ATTUNE_INTERRUPTS 0x1fff0100u

static inline int attune_in_interrupt(void)
{
    unsigned int count = 0;
    if (&__preempt_count) {
        const int *here = bpf_this_cpu_ptr(&__preempt_count);
        count = (unsigned int)*here;
    } else if (&pcpu_hot) {
        const struct pcpu_hot *here = bpf_this_cpu_ptr(&pcpu_hot);
        count = (unsigned int)here->preempt_count;
    } else if (__builtin_preserve_field_info(
                   ((struct task_struct___counted *)0)->thread_info.preempt.count, ATTUNE_EXISTS)) {
        struct task_struct___counted *counted = (void *)bpf_get_current_task_btf();
        count = counted->thread_info.preempt.count;
    }
    return !!(count & ATTUNE_INTERRUPTS);
}
