/* SPDX-License-Identifier: GPL-2.0 */
/* A policy gives a thread out of its hands, and takes it back: for another instance (move.h), or
 * because the engine itself runs the thread for a while (rescue.h), or has it wait (throttle.h).
 *
 * Invariant: in between, the thread sits in no container, has no alarm, and no handler sees it.
 */

static inline int64_t attune_alarm_of(const struct thread ATTUNE_ARENA *t)
{
    return attune_rings_at(t);
}

/* Under the lock: the policy has been told. The thread has the state `as` from now on. */
static inline void attune_goes_away(struct thread ATTUNE_ARENA *t, uint8_t as)
{
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    if (own->state == ATTUNE_READY) {
        attune_domains[attune_held()][attune_domain_of(&t->attune)].ready--;
        attune_unlist(t);
        attune_counts_no_more(t);
    }
    attune_weighs_no_more(t);
    own->rings_at = attune_alarm_of(t);
    attune_alarm(&attune_answer, &t->attune, 0);
    attune_thread_remove(&t->attune);
    own->state = as;
}

/* Under the lock: the policy hears that the thread is there, which is waiting until it is said to
 * be ready. */
static inline void attune_comes_back(struct thread ATTUNE_ARENA *t, uint32_t cpu)
{
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    own->state = ATTUNE_WAITING;
    ATTUNE_CALL(ARRIVES, cpu, &t->attune);
    if (own->rings_at)
        attune_alarm(&attune_answer, &t->attune, own->rings_at);
}

/* Under the lock: the policy gives a READY thread over to the engine. One without `arrives` takes
 * it for dead. */
static inline void attune_give_out(struct thread ATTUNE_ARENA *t, uint32_t cpu, uint8_t as)
{
    attune_hear(t);
    if (ATTUNE_HAS(attune_domain_of(&t->attune), ARRIVES))
        ATTUNE_CALL(LEAVES, cpu, &t->attune);
    else
        ATTUNE_CALL(SET_DEAD, cpu, &t->attune);
    attune_goes_away(t, as);
    attune_events[attune_held()]++;
}

/* Under the lock: the policy has the thread, which can run, back. */
static __attribute__((noinline)) void attune_take_back(struct thread ATTUNE_ARENA *t,
                                                       struct task_struct *task, uint32_t cpu)
{
    if (!ATTUNE_HAS(attune_domain_of(&t->attune), ARRIVES)) {
        attune_meet(t, task, cpu);
        return;
    }
    attune_weigh(t);
    attune_know(t, task);
    attune_hear(t);
    attune_comes_back(t, cpu);
    attune_becomes_ready(t);
}
