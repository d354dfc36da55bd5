/* SPDX-License-Identifier: GPL-2.0 */
/* A policy gives a thread out of its hands, and takes it back: for another instance (move.h), or
 * because the engine itself runs the thread for a while (rescue.h).
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
