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

/* The thread that wakes another one on this CPU now. 0: an interrupt does. */
static inline int64_t attune_waker(void)
{
    return attune_in_interrupt() ? 0 : bpf_get_current_task_btf()->pid;
}
