/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * A thread whose cgroup has used up its quota waits for the next refill (quota.h).
 *
 *     chosen, nothing left   switch_out, leaves(t); t is THROTTLED, in a queue of the engine's own,
 *                            by the time when it may run again
 *     that time              arrives(t); t is READY, as it left. The CPU that has put the first one
 *                            there looks after the queue, and its timer wakes for it
 *
 * Only a thread that is chosen is looked at: so threads that are ready when their quota is used up
 * leave one after the other. What else becomes of a thread meanwhile (another affinity, cgroup,
 * weight) brings it back first.
 *
 * Invariant (under the lock): the THROTTLED threads of an instance are those in its queue.
 */
/* clang-format on */
/* So many are brought back at once. */
#define ATTUNE_RELEASED 32

static struct attune_container ATTUNE_ARENA attune_throttled[ATTUNE_INSTANCES];
/* which CPU's timer wakes for the first one */
static uint32_t ATTUNE_ARENA attune_throttle_cpu[ATTUNE_INSTANCES];

static inline void attune_start_throttling(void)
{
    attune_container_init(&attune_throttled[attune_held()], NULL, -1, ATTUNE_PQUEUE, 1, UINT32_MAX);
}

/* When the first one may run that this CPU looks after; 0: there is none. Without the lock it is a
 * hint. */
static inline int64_t attune_next_release(uint32_t cpu)
{
    uint32_t instance = attune_instance_at(cpu);
    struct attune_thread ATTUNE_ARENA *first = attune_throttled[instance].first;
    return first && attune_throttle_cpu[instance] == cpu ? first->key : 0;
}

static inline void attune_queue_throttled(struct thread ATTUNE_ARENA *t, uint32_t cpu)
{
    struct attune_container ATTUNE_ARENA *all = &attune_throttled[attune_held()];
    int64_t at = attune_allowed_at(t->attune_task.cgroup);
    attune_insert(&attune_answer, all, &t->attune, attune_earlier(at, attune_starves_at(t)));
    if (all->first == &t->attune)
        attune_throttle_cpu[attune_held()] = cpu;
}

/* Under the lock: a READY thread, for which nothing is left. */
static __attribute__((noinline)) void attune_put_aside(struct thread ATTUNE_ARENA *t,
                                                       const struct task_struct *task, uint32_t cpu)
{
    attune_note_starvation(t, task);
    attune_give_out(t, cpu, ATTUNE_THROTTLED);
    attune_queue_throttled(t, cpu);
}

/* Under the lock: the policy has given this CPU to such a thread. */
static __attribute__((noinline)) void attune_throttle(struct attune_cpu ATTUNE_ARENA *me,
                                                      uint32_t cpu, struct thread ATTUNE_ARENA *t)
{
    struct task_struct *task = scx_bpf_tid_to_task(t->attune_task.tid);
    attune_switch_out(me, cpu, t, 0);
    if (task)
        attune_put_aside(t, task, cpu);
}

/* Under the lock: the policy has it back. */
static __attribute__((noinline)) void attune_unthrottle(struct thread ATTUNE_ARENA *t,
                                                        struct task_struct *task, uint32_t cpu)
{
    attune_thread_remove(&t->attune);
    attune_take_back(t, task, cpu);
}

/* Under the lock: there is no such task any more, and its end follows. */
static inline void attune_lose_throttled(struct thread ATTUNE_ARENA *t)
{
    attune_thread_remove(&t->attune);
    attune_close_account(t);
    t->attune_task.state = ATTUNE_GONE;
}

static __attribute__((noinline)) void attune_release_throttled(uint32_t cpu)
{
    struct attune_container ATTUNE_ARENA *all = &attune_throttled[attune_held()];
    attune_throttle_cpu[attune_held()] = cpu;
    for (int i = (int)ATTUNE_ZERO; i < ATTUNE_RELEASED && ATTUNE_MAY_LOOP; i++) {
        struct attune_thread ATTUNE_ARENA *first = all->first;
        struct thread ATTUNE_ARENA *t;
        struct task_struct *task;
        if (!first || first->key > attune_answer.now)
            return;
        t = ATTUNE_RECORD(first);
        task = scx_bpf_tid_to_task(t->attune_task.tid);
        if (!task) {
            attune_lose_throttled(t);
            continue;
        }
        /* It may have been on its way off its CPU when it was put aside. */
        t->attune_task.idle_at = task->se.sum_exec_runtime;
        if (attune_allowance(t->attune_task.cgroup, attune_answer.now) || attune_starves(t, task)) {
            attune_unthrottle(t, task, cpu);
        } else {
            attune_thread_remove(first);
            attune_queue_throttled(t, cpu);
        }
    }
}

/* Under the lock: all of them, quota or not. */
static __attribute__((noinline)) void attune_release_all(uint32_t cpu)
{
    struct attune_container ATTUNE_ARENA *all = &attune_throttled[attune_held()];
    while (all->first && ATTUNE_MAY_LOOP) {
        struct thread ATTUNE_ARENA *t = ATTUNE_RECORD(all->first);
        struct task_struct *task = scx_bpf_tid_to_task(t->attune_task.tid);
        if (task)
            attune_unthrottle(t, task, cpu);
        else
            attune_lose_throttled(t);
    }
}

/* Under the lock, when CPUs have changed: one that is there looks after the queue. */
static inline void attune_pass_on_throttled(void)
{
    if (!attune_serves(attune_throttle_cpu[attune_held()]))
        attune_throttle_cpu[attune_held()] = attune_some_cpu();
}

/* In dispatch, under the lock: those whose time has come. */
static inline void attune_release_due(uint32_t cpu)
{
    struct attune_thread ATTUNE_ARENA *first = attune_throttled[attune_held()].first;
    if (first && first->key <= attune_answer.now)
        attune_release_throttled(cpu);
}
