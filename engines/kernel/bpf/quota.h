/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Quotas of cgroups (`cpu.max`): how much CPU time a cgroup's threads have left. What becomes of a
 * thread for which nothing is left, throttle.h says.
 *
 *     left         ns that they may still use in this period; below 0 what they have used too much
 *     refill       at the end of each period `quota` more, `quota + burst` and what is too little
 *                  to draw at most. The CPU that looks first after that moment does it
 *     a CPU draws  up to ATTUNE_DRAUGHT from the thread's cgroup and from each above it that has a
 *                  quota, as it chooses the thread, and again when that is used up
 *     it pays      what it has drawn and the thread did not use goes back when the stay ends. The
 *                  kernel's own count of the thread's time decides, so time that a higher class
 *                  took costs nothing
 *     starvation   the kernel's watchdog does not know of quotas. A thread that has not run for
 *                  attune_longest_wait draws ATTUNE_OVERDRAFT, and its cgroups owe that time
 *
 * Invariant, under the lock of the CPU's instance: `draws_on` is the cgroup of the thread that runs
 * there, or NULL. CPUs of several instances change `left` with atomic instructions; two that draw
 * the same rest make it negative, and the next refill pays for it.
 */
/* clang-format on */
#define ATTUNE_DRAUGHT       5000000ll
/* Less is not worth a switch. */
#define ATTUNE_LEAST_DRAUGHT 20000ll
#define ATTUNE_OVERDRAFT     100000ll
/* After so many periods in which nobody looked, more make no difference. */
#define ATTUNE_MOST_REFILLS  1024

/* Cgroups with a quota. */
static uint32_t attune_quotas;

static __attribute__((noinline)) void attune_refill(struct attune_cgroup ATTUNE_ARENA *of,
                                                    int64_t now)
{
    int64_t at = of->refills_at, periods, more;
    /* What was too little to draw is not lost. */
    int64_t most = of->quota + of->burst + ATTUNE_LEAST_DRAUGHT;
    if (!of->quota || now < at)
        return;
    periods = (int64_t)((uint64_t)(now - at) / (uint64_t)of->period) + 1;
    if (__sync_val_compare_and_swap(&of->refills_at, at, at + periods * of->period) != at)
        return;
    more = (periods < ATTUNE_MOST_REFILLS ? periods : ATTUNE_MOST_REFILLS) * of->quota;
    if (of->left + more > most)
        more = most - of->left;
    __sync_fetch_and_add(&of->left, more);
}

/* What a thread of the cgroup may use now; 0: nothing; INT64_MAX: no quota limits it. */
ATTUNE_OUTLINE_AS(int64_t)
attune_allowance(struct attune_cgroup ATTUNE_ARENA *of ATTUNE_IN_ARENA, int64_t now)
{
    int64_t allowed = INT64_MAX;
    for (; of && ATTUNE_MAY_LOOP; of = of->parent) {
        if (!of->quota)
            continue;
        attune_refill(of, now);
        if (of->left < ATTUNE_LEAST_DRAUGHT)
            return 0;
        if (of->left < allowed)
            allowed = of->left;
    }
    return allowed;
}

/* When it may use some again, as far as is known now. */
ATTUNE_OUTLINE_AS(int64_t) attune_allowed_at(struct attune_cgroup ATTUNE_ARENA *of ATTUNE_IN_ARENA)
{
    int64_t at = 1, refill;
    for (; of && ATTUNE_MAY_LOOP; of = of->parent) {
        uint64_t owed = (uint64_t)(ATTUNE_LEAST_DRAUGHT - of->left);
        if (!of->quota || of->left >= ATTUNE_LEAST_DRAUGHT)
            continue;
        refill = of->refills_at + (int64_t)((owed - 1) / (uint64_t)of->quota) * of->period;
        if (refill > at)
            at = refill;
    }
    return at;
}

/* From when on a thread that has not run starves; 0: never. */
static inline int64_t attune_starves_at(const struct thread ATTUNE_ARENA *t)
{
    return attune_longest_wait ? t->attune_task.idle_since + attune_longest_wait : 0;
}

static inline int attune_starves(const struct thread ATTUNE_ARENA *t,
                                 const struct task_struct *task)
{
    int64_t at = attune_starves_at(t);
    return t->attune_task.idle_at == task->se.sum_exec_runtime && at && attune_answer.now >= at;
}

/* Under the lock: nothing is left for it. */
static inline void attune_note_starvation(struct thread ATTUNE_ARENA *t,
                                          const struct task_struct *task)
{
    if (t->attune_task.idle_since && t->attune_task.idle_at == task->se.sum_exec_runtime)
        return;
    t->attune_task.idle_at = task->se.sum_exec_runtime;
    t->attune_task.idle_since = attune_answer.now;
}

static inline void attune_take_from(struct attune_cgroup ATTUNE_ARENA *of, int64_t time)
{
    for (; of && ATTUNE_MAY_LOOP; of = of->parent)
        if (of->quota)
            __sync_fetch_and_add(&of->left, -time);
}

/* Under the lock: the CPU gives back what the thread has not used. */
ATTUNE_OUTLINE attune_pay_for(struct attune_cpu ATTUNE_ARENA *me ATTUNE_IN_ARENA,
                              const struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    struct task_struct *task = scx_bpf_tid_to_task(t->attune_task.tid);
    int64_t used = attune_answer.now - (me->draught_ends - me->drawn);
    if (task) /* it has not ended */
        used = (int64_t)(task->se.sum_exec_runtime - me->drawn_from);
    attune_take_from(me->draws_on, used - me->drawn);
    me->draws_on = NULL;
    me->draught_ends = 0;
    ATTUNE_RETURN;
}

static inline void attune_pay(struct attune_cpu ATTUNE_ARENA *me,
                              const struct thread ATTUNE_ARENA *t)
{
    if (me->draws_on)
        attune_pay_for(me, t);
}

/* Under the lock: the thread, which has a CPU, gets into another cgroup. */
static inline void attune_pay_early(const struct thread ATTUNE_ARENA *t)
{
    struct attune_cpu ATTUNE_ARENA *at = &attune_cpus[t->attune_task.cpu];
    if (!at->draws_on || (at->running != t && at->guest != t))
        return;
    attune_pay_for(at, t);
    attune_kick(t->attune_task.cpu);
}

/* Under the lock, in a cgroup that is limited: the thread may use that much, whatever is left. */
static inline void attune_draw(struct attune_cpu ATTUNE_ARENA *me, struct thread ATTUNE_ARENA *t,
                               const struct task_struct *task, int64_t time)
{
    me->draws_on = t->attune_task.cgroup;
    me->drawn = time;
    me->drawn_from = task->se.sum_exec_runtime;
    me->draught_ends = attune_answer.now + time;
    attune_take_from(me->draws_on, time);
}

/* Under the lock, without a choice of the policy. */
static inline void attune_overdraw(struct attune_cpu ATTUNE_ARENA *me,
                                   struct thread ATTUNE_ARENA *t, const struct task_struct *task,
                                   int64_t time)
{
    if (attune_quotas && attune_allowance(t->attune_task.cgroup, attune_answer.now) != INT64_MAX)
        attune_draw(me, t, task, time);
}

static __attribute__((noinline)) int attune_draw_for(struct attune_cpu ATTUNE_ARENA *me,
                                                     struct thread ATTUNE_ARENA *t)
{
    int64_t allowed = attune_allowance(t->attune_task.cgroup, attune_answer.now);
    struct task_struct *task;
    if (allowed == INT64_MAX)
        return 1;
    task = scx_bpf_tid_to_task(t->attune_task.tid);
    if (!task || (task->flags & PF_EXITING))
        return 1;
    if (!allowed && attune_starves(t, task))
        allowed = ATTUNE_OVERDRAFT;
    if (allowed)
        attune_draw(me, t, task, allowed < ATTUNE_DRAUGHT ? allowed : ATTUNE_DRAUGHT);
    return allowed != 0;
}

/* Under the lock: the CPU draws for the thread that is chosen. 0: nothing is left. */
static inline int attune_draws(struct attune_cpu ATTUNE_ARENA *me, struct thread ATTUNE_ARENA *t)
{
    return !attune_quotas || attune_draw_for(me, t);
}

/* Under the lock: whether the thread that runs here may go on. */
static inline int attune_draws_again(struct attune_cpu ATTUNE_ARENA *me,
                                     struct thread ATTUNE_ARENA *t)
{
    if (me->draws_on ? attune_answer.now < me->draught_ends : !attune_quotas)
        return 1;
    attune_pay(me, t);
    return attune_draws(me, t);
}

/* From the kernel, with all locks; in us, a quota above UINT32_MAX is none. It begins with a full
 * period. */
static inline void attune_limit(struct attune_cgroup ATTUNE_ARENA *of, uint64_t period,
                                uint64_t quota, uint64_t burst)
{
    int was = of->quota != 0;
    of->period = (int64_t)(period & UINT32_MAX) * 1000;
    of->quota = quota > UINT32_MAX || !of->period ? 0 : (int64_t)quota * 1000;
    of->burst = (int64_t)(burst & UINT32_MAX) * 1000;
    of->left = of->quota;
    of->refills_at = attune_clock() + of->period;
    if (was != (of->quota != 0))
        __sync_fetch_and_add(&attune_quotas, was ? -1 : 1);
}
