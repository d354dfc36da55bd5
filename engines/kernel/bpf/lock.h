/* SPDX-License-Identifier: GPL-2.0 */
/* The lock that makes handlers atomic.
 *
 * It is taken with interrupts off, and nothing that takes a run queue's lock is called under it; what only marks or buffers
 * (inserting, kicking) is. Timers never take it.
 */
/* Compare and swap rather than the kernel's resilient lock: a dozen instructions, it may be held over functions that the
 * verifier looks at by themselves, and it is patient. In a virtual machine the holder's CPU may be away for longer than the
 * quarter of a second after which the resilient lock, and a loop with ATTUNE_MAY_LOOP, give up. */
static __attribute__((noinline)) int attune_wait(void)
{
    struct bpf_iter_num outer, inner;
    int have = 0;
    bpf_iter_num_new(&outer, 0, 64);
    while (!have && bpf_iter_num_next(&outer)) {
        bpf_iter_num_new(&inner, 0, 1 << 20);
        while (bpf_iter_num_next(&inner)) {
            if (*(volatile uint32_t ATTUNE_ARENA *)&attune_locked == 0 &&
                !__sync_val_compare_and_swap(&attune_locked, 0, 1)) {
                have = 1;
                break;
            }
        }
        bpf_iter_num_destroy(&inner);
    }
    bpf_iter_num_destroy(&outer);
    return have;
}

/* Nanoseconds. */
static inline int64_t attune_clock(void)
{
    return (int64_t)bpf_ktime_get_ns();
}

/* 0 when it could not be had in some ten seconds. All that happens until it is given back happens at one time, `attune_answer.now`: the
 * clock is read once, and a thread is charged to the very moment from which the next one is. */
static inline int attune_lock(void)
{
    if (__sync_val_compare_and_swap(&attune_locked, 0, 1) && !attune_wait())
        return 0;
    attune_answer.now = attune_clock();
    return 1;
}

static inline void attune_unlock(void)
{
#ifdef __TARGET_ARCH_x86
    __asm__ volatile("" ::: "memory");                  /* stores are not reordered with older ones */
    *(volatile uint32_t ATTUNE_ARENA *)&attune_locked = 0;
#else
    __sync_lock_test_and_set(&attune_locked, 0);
#endif
}
