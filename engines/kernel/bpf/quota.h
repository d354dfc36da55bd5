/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * cpu.max: how long the threads of a cgroup may run in each period.
 *
 *     used      what they ran in this period: it grows as fast as `running` threads run, so it is
 *               right at any moment, whichever CPU asks. What is used too much counts in the next
 *               period, and what is left over is kept up to cpu.max.burst
 *     end       a thread that gets a CPU is stopped when `used` would reach the quota, if no other
 *               thread came or went. hold.h says what becomes of it
 *
 * A thread spends the time of each cgroup above it that has a quota. Its time is what the policy
 * gave it, as with virtual times. Without any quota on the machine a switch pays for two looks.
 *
 * Invariant, under all locks: `running` of a cgroup with a quota is the number of threads below it
 * that have `spends`; only threads that have a CPU, by their policy or as the engine's guest, have
 * it. With several instances the accounts have a lock of their own, under which no other is taken.
 */
/* clang-format on */

/* cgroups that have a quota. */
static uint32_t attune_quotas;

#if ATTUNE_INSTANCES > 1
static uint32_t ATTUNE_ARENA attune_quotas_locked;
#define attune_lock_quotas()   attune_take(&attune_quotas_locked)
#define attune_unlock_quotas() attune_release(&attune_quotas_locked)
#else
#define attune_lock_quotas()   1
#define attune_unlock_quotas() (void)0
#endif

/* After so many periods without a look nothing is left of what was used. */
#define ATTUNE_LONG_AGO (1 << 20)

static inline void attune_settle_quota(struct attune_cgroup ATTUNE_ARENA *of, int64_t now)
{
    of->used += (int64_t)of->running * (now - of->settled);
    of->settled = now;
    if (now >= of->ends) {
        int64_t periods = (int64_t)((uint64_t)(now - of->ends) / (uint64_t)of->period) + 1;
        of->ends += periods * of->period;
        of->used = periods < ATTUNE_LONG_AGO ? of->used - periods * of->quota : -of->burst;
        if (of->used < -of->burst)
            of->used = -of->burst;
    }
}

/* Until when a thread of this cgroup has no time; 0: it has. `left`: for how long at least. */
static __attribute__((noinline)) int64_t
attune_look_at_quotas(struct attune_cgroup ATTUNE_ARENA *of, int64_t now, int64_t *left)
{
    int64_t until = (int64_t)ATTUNE_ZERO;
    *left = INT64_MAX;
    if (!attune_lock_quotas())
        return 0;
    for (; of && ATTUNE_MAY_LOOP; of = of->parent) {
        int64_t rest;
        if (!of->quota)
            continue;
        attune_settle_quota(of, now);
        rest = of->quota - of->used;
        if (rest <= 0 && of->ends > until)
            until = of->ends;
        if (of->running > 1)
            rest = (int64_t)((uint64_t)rest / of->running);
        if (rest < *left)
            *left = rest;
    }
    attune_unlock_quotas();
    return until;
}

/* Under the lock of its instance: one thread more, or less, spends the time of its cgroups. */
static __attribute__((noinline)) void attune_spend_time(struct thread ATTUNE_ARENA *t, int begins)
{
    struct attune_cgroup ATTUNE_ARENA *of = t->attune_task.cgroup;
    int64_t now = attune_answer.now;
    if (!attune_lock_quotas())
        return;
    t->attune_task.spends = (uint8_t)begins;
    for (; of && ATTUNE_MAY_LOOP; of = of->parent) {
        if (!of->quota)
            continue;
        attune_settle_quota(of, now);
        of->running += begins ? 1 : -1;
    }
    attune_unlock_quotas();
}

/* It has a CPU. */
static inline void attune_spends(struct thread ATTUNE_ARENA *t)
{
    if (attune_quotas)
        attune_spend_time(t, 1);
}

/* It has lost it. */
static inline void attune_spends_no_more(struct thread ATTUNE_ARENA *t)
{
    if (t->attune_task.spends)
        attune_spend_time(t, 0);
}

/* Under the lock: whether the CPU's thread, which spends time, has some left; it is stopped when it
 * has none. */
static inline int attune_has_time(struct attune_cpu ATTUNE_ARENA *me, struct thread ATTUNE_ARENA *t)
{
    int64_t left;
    if (attune_look_at_quotas(t->attune_task.cgroup, attune_answer.now, &left))
        return 0;
    t->attune_task.held_since = 0;
    if (left < INT64_MAX)
        me->preempt_at = attune_earlier(me->preempt_at, attune_answer.now + left);
    return 1;
}
