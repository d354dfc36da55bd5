/* SPDX-License-Identifier: GPL-2.0 */
/* The lock that makes handlers atomic.
 *
 * It is taken with interrupts off, and nothing that takes a run queue's lock is called under it;
 * what only marks or buffers (inserting, kicking) is. Timers never take it.
 */
/* Compare and swap rather than the kernel's resilient lock: a dozen instructions, it may be held
 * over functions that the verifier looks at by themselves, and it is patient. In a virtual machine
 * the holder's CPU may be away for longer than the quarter of a second after which the resilient
 * lock, and a loop with ATTUNE_MAY_LOOP, give up. */
ATTUNE_OUTLINE attune_wait(uint32_t ATTUNE_ARENA *word ATTUNE_IN_ARENA)
{
    struct bpf_iter_num outer, inner;
    int have = 0;
    bpf_iter_num_new(&outer, 0, 64);
    while (!have && bpf_iter_num_next(&outer)) {
        bpf_iter_num_new(&inner, 0, 1 << 20);
        while (bpf_iter_num_next(&inner)) {
            if (*(volatile uint32_t ATTUNE_ARENA *)word == 0 &&
                !__sync_val_compare_and_swap(word, 0, 1)) {
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

/* 0 when it could not be had in some ten seconds. */
static inline int attune_take(uint32_t ATTUNE_ARENA *word)
{
    return !__sync_val_compare_and_swap(word, 0, 1) || attune_wait(word);
}

static inline void attune_release(uint32_t ATTUNE_ARENA *word)
{
#ifdef __TARGET_ARCH_x86
    /* stores are not reordered with older ones */
    __asm__ volatile("" ::: "memory");
    *(volatile uint32_t ATTUNE_ARENA *)word = 0;
#else
    __sync_lock_test_and_set(word, 0);
#endif
}

/* 0 as above. All that happens in the instance until its lock is given back happens at one time,
 * `attune_answer.now`: the clock is read once, and a thread is charged to the very moment from
 * which the next one is. Interrupts are off. */
static inline int attune_lock(uint32_t instance)
{
    if (!attune_take(&attune_locked[instance]))
        return 0;
#if ATTUNE_INSTANCES > 1
    attune_holds[bpf_get_smp_processor_id()] = instance;
#endif
    attune_answer.now = attune_clock();
    return 1;
}

static inline void attune_unlock(void)
{
#ifdef ATTUNE_TIMES_LOCK
    attune_statistics.locks++;
    attune_statistics.held += (uint64_t)(attune_clock() - attune_answer.now);
#endif
    attune_release(&attune_locked[attune_held()]);
}

/* The list of records has a lock of its own, under which no other is taken; with one instance it is
 * the instance's. */
#if ATTUNE_INSTANCES > 1
static uint32_t ATTUNE_ARENA attune_records_locked;
#define attune_lock_records()   attune_take(&attune_records_locked)
#define attune_unlock_records() attune_release(&attune_records_locked)
#else
#define attune_lock_records()   attune_lock(0)
#define attune_unlock_records() attune_unlock()
#endif

/* The instance in which the thread is: its lock. It may go over to another one until the lock is
 * had. */
static inline int attune_lock_of(struct thread ATTUNE_ARENA *t)
{
#if ATTUNE_INSTANCES > 1
    for (int attempt = (int)ATTUNE_ZERO; attempt < 64 && ATTUNE_MAY_LOOP; attempt++) {
        uint32_t instance = *(volatile uint32_t ATTUNE_ARENA *)&t->attune_task.instance;
        if (!attune_lock(instance))
            return 0;
        if (t->attune_task.instance == instance)
            return 1;
        attune_unlock();
    }
    return 0;
#else
    return attune_lock(0);
#endif
}

/* The number that an instance has for a CPU; its first CPU stands for one of another instance. */
static inline uint32_t attune_local(uint32_t cpu)
{
#if ATTUNE_CPUS > 1
    return attune_instance_at(cpu) == attune_held() ? attune_cpus[cpu].local : 0;
#else
    return 0;
#endif
}
