/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Keeps weighted service even between instances, slowly: a thread that lags or leads (lag.h) by
 * more than a limit is moved, or makes another one move. The first choice of an instance in each
 * period settles its threads and looks at the one that lags most and the one that leads most:
 *
 *     it lags      it moves itself, if another instance has so much less weight for each CPU that
 *                  it has more there, its own weight counted
 *                  otherwise another thread leaves its instance, the one that lags least, for an
 *                  instance with less weight for each CPU
 *     it leads     the instance with the most weight for each CPU sends its instance a thread,
 *                  again the one that lags least; where all lag beyond the limit, also one that
 *                  runs
 *
 * Both instances then rest. Only a READY thread moves. One that runs, or still leaves its CPU, is
 * `sent`: it goes when it is enqueued next.
 */
/* clang-format on */
#if ATTUNE_INSTANCES > 1

/* The lag, or lead, that makes a thread move. */
#define ATTUNE_LAG_LIMIT 50000000ll
/* Loads that differ by a smaller part are about the same: a mean is never quite the load. */
#define ATTUNE_ABOUT     16
/* So long an instance rests that took part in a move. */
#define ATTUNE_REST      50000000ll

static inline int attune_rests(uint32_t instance, int64_t now)
{
    return attune_books[instance].rests_until > now;
}

/* Both take part in a move now. 0: another move was faster. */
static inline int attune_take_part(uint32_t one, uint32_t other, int64_t now)
{
    uint32_t both[2] = {one, other};
    for (int i = 0; i < 2; i++) {
        int64_t ATTUNE_ARENA *until = &attune_books[both[i]].rests_until;
        int64_t then = *until;
        if (then > now || __sync_val_compare_and_swap(until, then, now + ATTUNE_REST) != then)
            return 0;
    }
    attune_statistics.balanced++;
    return 1;
}

/* The instance with the least weight for each CPU that has less than this one, with `extra` there,
 * and in which the thread may run; of equals, the one with the thread that leads most.
 * ATTUNE_INSTANCES: none. */
ATTUNE_OUTLINE_AS(uint32_t)
attune_lighter(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA, int64_t extra)
{
    uint32_t own = attune_held(), best = ATTUNE_INSTANCES;
    int64_t now = attune_answer.now;
    int64_t least = attune_books[own].mean;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP; i++) {
        uint32_t than = best < ATTUNE_INSTANCES ? best : own;
        int64_t load = attune_books[i].mean + extra;
        if (i == own || !attune_there[i] || attune_rests(i, now))
            continue;
        if (!attune_is_lighter(i, load, than, least) &&
            (than == own || attune_is_lighter(than, least, i, load) ||
             attune_books[i].lowest >= attune_books[than].lowest))
            continue;
        if (attune_allowed_in(t, i) < ATTUNE_CPUS) {
            best = i;
            least = load;
        }
    }
    return best;
}

static inline int64_t attune_lag(const struct thread ATTUNE_ARENA *t)
{
    return t->attune_task.account.lag;
}

/* Settles all runnable threads of the instance; the one of them that lags most, or NULL. */
static __attribute__((noinline)) struct thread ATTUNE_ARENA *attune_settle_all(void)
{
    uint32_t own = attune_held(), cpus = attune_instances[own].attune.cpus;
    struct attune_book ATTUNE_ARENA *book = &attune_books[own];
    struct thread ATTUNE_ARENA *t = attune_lists[own].first, *most = NULL;
    int64_t lowest = 0;
    for (; t && ATTUNE_MAY_LOOP; t = t->attune_task.ready_behind) {
        attune_settle_lag(t);
        if (!most || attune_lag(t) > attune_lag(most))
            most = t;
        if (attune_lag(t) < lowest)
            lowest = attune_lag(t);
    }
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < cpus && i < ATTUNE_CPUS && ATTUNE_MAY_LOOP; i++) {
        t = attune_cpus[attune_cpu_of[own][i]].running;
        if (!t)
            continue;
        attune_settle_lag(t);
        if (!most || attune_lag(t) > attune_lag(most))
            most = t;
        if (attune_lag(t) < lowest)
            lowest = attune_lag(t);
    }
    book->lowest = lowest;
    book->highest = most ? attune_lag(most) : 0;
    return most;
}

/* A move that gives a lagging thread more: its own, or that of another thread beside it. */
static __attribute__((noinline)) struct thread ATTUNE_ARENA *
attune_help(struct thread ATTUNE_ARENA *lagging, uint32_t *to)
{
    struct thread ATTUNE_ARENA *t, *best = NULL;
    if (lagging->attune_task.state == ATTUNE_READY) {
        *to = attune_lighter(lagging, lagging->attune_task.account.load);
        if (*to < ATTUNE_INSTANCES)
            return lagging;
    }
    for (t = attune_lists[attune_held()].first; t && ATTUNE_MAY_LOOP;
         t = t->attune_task.ready_behind) {
        uint32_t there;
        if (t == lagging || (best && attune_lag(t) >= attune_lag(best)))
            continue;
        there = attune_lighter(t, 0);
        if (there < ATTUNE_INSTANCES) {
            best = t;
            *to = there;
        }
    }
    return best;
}

/* Under the lock: whether the thread has gone out. One that runs, or still leaves its CPU, goes
 * when it is enqueued. */
static inline int attune_goes(struct thread ATTUNE_ARENA *t, uint32_t to, uint32_t cpu)
{
    if (t->attune_task.state != ATTUNE_READY || t->attune_task.leaving) {
        t->attune_task.account.sent = to + 1;
        return 0;
    }
    attune_go_out(t, to, cpu);
    return 1;
}

/* Under the lock of the CPU's instance, as it chooses. A thread that has gone out of it, or NULL;
 * `lonely`: one here leads, and wants company. */
static __attribute__((noinline)) struct thread ATTUNE_ARENA *attune_balance(uint32_t cpu,
                                                                            int *lonely)
{
    uint32_t own = attune_held(), to = ATTUNE_INSTANCES;
    struct attune_book ATTUNE_ARENA *book = &attune_books[own];
    int64_t now = attune_answer.now;
    struct thread ATTUNE_ARENA *most, *t;
    *lonely = 0;
    if (book->settled >= attune_pace()->at)
        return NULL;
    attune_note_mean(book, now);
    most = attune_settle_all();
    if (!most || attune_rests(own, now))
        return NULL;
    *lonely = -book->lowest > ATTUNE_LAG_LIMIT;
    if (book->highest <= ATTUNE_LAG_LIMIT)
        return NULL;
    t = attune_help(most, &to);
    if (!t || to >= ATTUNE_INSTANCES)
        return NULL;
    *lonely = 0;
    if (!attune_take_part(own, to, now))
        return NULL;
    return attune_goes(t, to, cpu) ? t : NULL;
}

/* The instance with more weight for each CPU than this one, the most of all; of equals, the one
 * with the thread that lags most. ATTUNE_INSTANCES: none. Without a lock. */
ATTUNE_OUTLINE_AS(uint32_t) attune_heaviest(uint32_t own, int64_t now)
{
    uint32_t best = own;
    int64_t most = attune_books[own].mean;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP; i++) {
        int64_t load = attune_books[i].mean;
        if (i == own || !attune_there[i] || attune_rests(i, now))
            continue;
        if (!attune_is_lighter(best, most, i, load) &&
            (best == own || attune_is_lighter(i, load, best, most) ||
             attune_books[i].highest <= attune_books[best].highest))
            continue;
        best = i;
        most = load;
    }
    return best == own ? ATTUNE_INSTANCES : best;
}

/* Under the lock, where all of the instance lag beyond the limit: one must go for the others to
 * catch up. The thread that lags least, whether it runs or is ready, if it has about as much in
 * that other instance. */
static __attribute__((noinline)) struct thread ATTUNE_ARENA *attune_sacrifice(uint32_t to)
{
    uint32_t own = attune_held(), cpus = attune_instances[own].attune.cpus;
    struct thread ATTUNE_ARENA *best = attune_lists[own].first, *t = best;
    int64_t mean = attune_books[own].mean;
    for (; t && ATTUNE_MAY_LOOP; t = t->attune_task.ready_behind)
        if (attune_lag(t) < attune_lag(best))
            best = t;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; best && i < cpus && i < ATTUNE_CPUS && ATTUNE_MAY_LOOP;
         i++) {
        t = attune_cpus[attune_cpu_of[own][i]].running;
        if (t && attune_lag(t) < attune_lag(best))
            best = t;
    }
    if (!best || attune_allowed_in(best, to) >= ATTUNE_CPUS ||
        !attune_is_lighter(to, attune_books[to].mean + best->attune_task.account.load, own,
                           mean + mean / ATTUNE_ABOUT))
        return NULL;
    return best;
}

/* Under the lock: the instance's ready thread with the smallest lag that may run in that other
 * one. None that lags beyond the limit, unless it has more there, or all do. */
static __attribute__((noinline)) struct thread ATTUNE_ARENA *attune_least_lagging(uint32_t to)
{
    struct thread ATTUNE_ARENA *best = NULL, *t;
    uint32_t own = attune_held();
    for (t = attune_lists[own].first; t && ATTUNE_MAY_LOOP; t = t->attune_task.ready_behind)
        if (!t->attune_task.leaving && (!best || attune_lag(t) < attune_lag(best)) &&
            attune_allowed_in(t, to) < ATTUNE_CPUS)
            best = t;
    if (best && attune_lag(best) > ATTUNE_LAG_LIMIT &&
        !attune_is_lighter(to, attune_books[to].mean + best->attune_task.account.load, own,
                           attune_books[own].mean))
        return attune_sacrifice(to);
    return best;
}

/* Without a lock: a thread for the CPU's instance, where another one leads. */
ATTUNE_OUTLINE attune_find_company(uint32_t cpu, int64_t now)
{
    uint32_t own = attune_instance_at(cpu), from = attune_heaviest(own, now);
    struct thread ATTUNE_ARENA *t;
    if (from >= ATTUNE_INSTANCES || !attune_lock(from))
        ATTUNE_RETURN;
    t = attune_failure.failed ? NULL : attune_least_lagging(own);
    if (t && (!attune_take_part(own, from, now) || !attune_goes(t, own, cpu)))
        t = NULL;
    attune_unlock();
    if (t)
        attune_bring_in(t);
    ATTUNE_RETURN;
}
#endif
