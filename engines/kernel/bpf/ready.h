/* SPDX-License-Identifier: GPL-2.0 */
/* Each instance's ready threads, the one that has been ready longest first: the order in which CPUs
 * of other instances pull. One instance needs no such list.
 *
 * Invariant (under the lock): the list has the READY threads of its instance; `anywhere` counts
 * those of them that are not pinned, and `pinned_on[c]` the pinned ones that may run on CPU c. So a
 * CPU for which there is none need not look at each, nor take the lock of a busy instance.
 */
#if ATTUNE_INSTANCES > 1
struct attune_list {
    struct thread ATTUNE_ARENA *first, *last;
    uint32_t anywhere, pinned_on[ATTUNE_CPUS];
} __attribute__((aligned(64)));

static struct attune_list ATTUNE_ARENA attune_lists[ATTUNE_INSTANCES];

/* Times that a thread became ready, in any instance, or was left ready by the CPU that pulled it
 * for another one. Counted without a lock: a hint. */
static uint64_t ATTUNE_ARENA attune_readied;

/* Around a change of `pinned` and `allowed`, too. */
ATTUNE_OUTLINE attune_count_listed(const struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA, int by)
{
    struct attune_list ATTUNE_ARENA *list = &attune_lists[attune_held()];
    if (!t->attune.pinned) {
        list->anywhere += (uint32_t)by;
        ATTUNE_RETURN;
    }
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < ATTUNE_CPUS && ATTUNE_MAY_LOOP; cpu++)
        if (attune_may_run_on(&t->attune, cpu))
            list->pinned_on[cpu] += (uint32_t)by;
    ATTUNE_RETURN;
}

/* Whether any of them may run on the CPU. Without the lock a hint. */
static inline int attune_lists_for(uint32_t instance, uint32_t cpu)
{
    struct attune_list ATTUNE_ARENA *list = &attune_lists[instance];
    return list->anywhere || list->pinned_on[cpu];
}

static inline void attune_list(struct thread ATTUNE_ARENA *t)
{
    struct attune_list ATTUNE_ARENA *list = &attune_lists[attune_held()];
    t->attune_task.ready_since = attune_answer.now;
    t->attune_task.ready_behind = NULL;
    t->attune_task.ready_before = list->last;
    if (list->last)
        list->last->attune_task.ready_behind = t;
    else
        list->first = t;
    list->last = t;
    attune_count_listed(t, 1);
}

/* CPUs of other instances may look for it. */
static inline void attune_announce(void)
{
    attune_readied++;
}

static inline void attune_unlist(struct thread ATTUNE_ARENA *t)
{
    struct attune_list ATTUNE_ARENA *list = &attune_lists[attune_held()];
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    if (own->ready_before)
        own->ready_before->attune_task.ready_behind = own->ready_behind;
    else
        list->first = own->ready_behind;
    if (own->ready_behind)
        own->ready_behind->attune_task.ready_before = own->ready_before;
    else
        list->last = own->ready_before;
    attune_count_listed(t, -1);
}

/* Under the lock: the thread of the instance that has been ready longest and that the CPU could run
 * now. */
static __attribute__((noinline)) struct thread ATTUNE_ARENA *attune_longest_ready(uint32_t cpu)
{
    struct thread ATTUNE_ARENA *t = attune_lists[attune_held()].first;
    if (!attune_lists_for(attune_held(), cpu))
        return NULL;
    while (t && (t->attune_task.leaving || !attune_may_run_on(&t->attune, cpu)) && ATTUNE_MAY_LOOP)
        t = t->attune_task.ready_behind;
    return t;
}
#else
#define attune_list(t)             (void)0
#define attune_unlist(t)           (void)0
#define attune_count_listed(t, by) (void)0
#define attune_announce()          (void)0
#endif
