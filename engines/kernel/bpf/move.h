/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Instances of the policy, and threads that go from one to another.
 *
 *     old instance's lock      leaves(t); t sits nowhere, is MOVING, and belongs to the new one
 *     no lock
 *     new instance's lock      arrives(t); t is what it was, READY or WAITING
 *
 * Invariant: a CPU holds one instance's lock at most (attune_held() says which), but for the
 * loader's copies, which take all. A thread's record belongs to the instance that `instance` names.
 * No handler sees a MOVING thread. An exit that meets one leaves a word in `ended`, which the mover
 * honours before `arrives`: until then the record is not used again.
 *
 *     wake-up on an idle CPU of another instance    it moves there while it waits
 *     no CPU of its own is left for it: another     it moves at its next enqueue, or when it stops
 *     affinity, or a CPU that goes (hotplug.h)
 *     an idle CPU, nothing ready for it at home     it pulls the thread that is ready longest, of
 *                                                   instances of its cache first
 *     its lag, or another thread's                  see balance.h
 *
 * A READY thread is found under its instance's lock, and goes out before that lock is given back:
 * so it is never another thread in the same record that moves. A WAITING one moves in its own
 * enqueue, while the kernel holds its run queue.
 */
/* clang-format on */
#if ATTUNE_INSTANCES > 1

enum attune_ended { ATTUNE_STAYS, ATTUNE_LEFT_CLASS, ATTUNE_EXITED };

/* Instances that a CPU looks into before it gives up for now. */
#define ATTUNE_PULLS 8

/* Under the old instance's lock: the first of the two steps. */
ATTUNE_OUTLINE attune_go_out(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA, uint32_t to,
                             uint32_t cpu)
{
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    attune_hear(t);
    ATTUNE_CALL(LEAVES, cpu, &t->attune);
    if (own->state == ATTUNE_READY)
        attune_books[attune_held()].mean -= own->account.load;
    own->account.sent = 0;
    own->moves_as = own->state;
    own->ended = ATTUNE_STAYS;
    attune_goes_away(t, ATTUNE_MOVING);
    own->instance = to;
    attune_statistics.moves++;
    ATTUNE_RETURN;
}

/* Under the new instance's lock: the second. 1: the record is free. */
ATTUNE_OUTLINE attune_come_in(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA, uint32_t cpu)
{
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    if (own->ended) {
        attune_close_account(t);
        own->state = ATTUNE_UNKNOWN;
        return own->ended == ATTUNE_EXITED;
    }
    if (own->moves_as == ATTUNE_READY)
        attune_weigh(t);
    attune_comes_back(t, cpu);
    if (own->moves_as == ATTUNE_READY) {
        int64_t since = own->waits_since;
        attune_enters_ready(t);
        own->waits_since = since;
        attune_books[attune_held()].mean += own->account.load;
    }
    return 0;
}

/* Without a lock: the record of a thread that has ended while it moved. */
static inline void attune_free_record(struct thread ATTUNE_ARENA *t)
{
    if (!attune_lock_records())
        return;
    attune_give_record(t);
    attune_unlock_records();
}

/* Without a lock, in its own enqueue: a WAITING thread goes over. 0 when a lock could not be had.
 */
static __attribute__((noinline)) int attune_go_over(struct thread ATTUNE_ARENA *t, uint32_t to,
                                                    uint32_t cpu)
{
    if (!attune_lock_of(t))
        return 0;
    if (t->attune_task.instance == to || t->attune_task.state != ATTUNE_WAITING ||
        attune_failure.failed) {
        attune_unlock();
        return 1;
    }
    attune_go_out(t, to, cpu);
    attune_unlock();
    if (!attune_lock(to))
        return 0;
    attune_come_in(t, cpu);
    attune_unlock();
    return 1;
}

/* Under the lock: where a READY thread of the instance should go, or ATTUNE_INSTANCES. To where
 * balance.h has sent it, or away from an instance of which it may run on no CPU. A thread that
 * another CPU has taken since the caller last had the lock is not this instance's any more. */
ATTUNE_OUTLINE_AS(uint32_t) attune_destination(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    uint32_t own = attune_held(), sent = t->attune_task.account.sent;
    if (t->attune_task.instance != own || t->attune_task.state != ATTUNE_READY ||
        t->attune_task.leaving)
        return ATTUNE_INSTANCES;
    t->attune_task.account.sent = 0;
    if (sent && sent <= ATTUNE_INSTANCES && sent - 1 != own &&
        attune_allowed_in(t, sent - 1) < ATTUNE_CPUS)
        return sent - 1;
    if ((!t->attune.pinned && attune_there[own]) || attune_allowed_in(t, own) < ATTUNE_CPUS)
        return ATTUNE_INSTANCES;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP; i++)
        if (attune_allowed_in(t, i) < ATTUNE_CPUS)
            return i;
    return ATTUNE_INSTANCES;
}

/* Under the lock: the thread, if it has gone out to where it should be. */
static inline struct thread ATTUNE_ARENA *attune_send(struct thread ATTUNE_ARENA *t, uint32_t cpu)
{
    uint32_t to = attune_failure.failed ? ATTUNE_INSTANCES : attune_destination(t);
    if (to >= ATTUNE_INSTANCES)
        return NULL;
    attune_go_out(t, to, cpu);
    return t;
}

/* How often a thread's affinity may change while it moves, before it stays where it is. */
#define ATTUNE_DETOURS 8

/* Without a lock: the second step of a READY thread that has gone out. If its affinity excludes its
 * new instance by now, it goes on to another one. */
ATTUNE_OUTLINE attune_bring_in(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    int ended = 0, goes_on = 1;
    for (int i = (int)ATTUNE_ZERO; goes_on && i < ATTUNE_DETOURS && ATTUNE_MAY_LOOP; i++) {
        uint32_t to = t->attune_task.instance, cpu = attune_allowed_in(t, to);
        if (!attune_lock(to)) {
            attune_wrong(ATTUNE_LOCK_LOST, NULL);
            attune_give_up();
            ATTUNE_RETURN;
        }
        cpu = cpu < ATTUNE_CPUS ? cpu : attune_cpu_of[to][0];
        ended = attune_come_in(t, cpu);
        goes_on = i + 1 < ATTUNE_DETOURS && attune_send(t, cpu);
        if (!goes_on && t->attune_task.state == ATTUNE_READY) {
            attune_announce();
            attune_ask_idle(ATTUNE_CPUS);
        }
        attune_unlock();
    }
    if (ended)
        attune_free_record(t);
    ATTUNE_RETURN;
}

/* One of the instance's CPUs on which the task may run; ATTUNE_CPUS: none. */
static __attribute__((noinline)) uint32_t attune_allowed_cpu(struct task_struct *task,
                                                             uint32_t instance)
{
    uint32_t cpus = attune_instances[instance].attune.cpus;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < cpus && i < ATTUNE_CPUS && ATTUNE_MAY_LOOP; i++) {
        uint32_t cpu = attune_cpu_of[instance][i];
        if (attune_is_there(cpu) && bpf_cpumask_test_cpu(cpu, task->cpus_ptr))
            return cpu;
    }
    return ATTUNE_CPUS;
}

/* The instance for a new thread: that of the CPU which the kernel has found, if it idles; else the
 * one with the least weight of runnable threads for each CPU. */
static __attribute__((noinline)) uint32_t attune_first_place(struct task_struct *task,
                                                             uint32_t near)
{
    uint32_t best = attune_instance_at(near);
    if (attune_idles(near) || task->migration_disabled || task->nr_cpus_allowed == 1)
        return best;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP; i++) {
        if (attune_there[i] &&
            (!attune_there[best] ||
             attune_is_lighter(i, attune_books[i].load, best, attune_books[best].load)) &&
            attune_allowed_cpu(task, i) < ATTUNE_CPUS)
            best = i;
    }
    return best;
}

/* Without a lock, as the thread is enqueued: brings a new one, or one that wakes, into the instance
 * where it belongs. What it reads of any other may change until the lock is had, so those wait for
 * attune_send. 0 when a lock could not be had. */
static __attribute__((noinline)) int attune_bring_home(struct thread ATTUNE_ARENA *t,
                                                       struct task_struct *task)
{
    uint32_t near = (uint32_t)scx_bpf_task_cpu(task), own = t->attune_task.instance;
    uint32_t state = t->attune_task.state, to = attune_instance_at(near);
    if (state == ATTUNE_UNKNOWN) {
        t->attune_task.instance = attune_first_place(task, near);
        return 1;
    }
    if (to == own || state != ATTUNE_WAITING ||
        (!attune_idles(near) && attune_allowed_cpu(task, own) < ATTUNE_CPUS))
        return 1;
    return attune_go_over(t, to, near);
}

/* The instance, not `own`, whose first ready thread waits longest; those of a cache, or of all
 * others. Without a lock: a hint. ATTUNE_INSTANCES: none. */
ATTUNE_OUTLINE_AS(uint32_t) attune_longest_waiting(uint32_t cpu, uint32_t near, uint64_t seen)
{
    uint32_t own = attune_cpus[cpu].instance, cache = attune_cpus[cpu].cache;
    uint32_t best = ATTUNE_INSTANCES;
    int64_t since = INT64_MAX;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP; i++) {
        struct thread ATTUNE_ARENA *first = attune_lists[i].first;
        uint32_t its = attune_cpus[attune_cpu_of[i][0]].cache;
        if (i == own || !first || (its == cache) != near || (seen >> (i & 63) & 1))
            continue;
        if (!attune_lists_for(i, cpu)) {
            attune_cpus[cpu].unfit = 1;
            continue;
        }
        if (first->attune_task.ready_since < since) {
            since = first->attune_task.ready_since;
            best = i;
        }
    }
    return best;
}

/* Without a lock, on a CPU whose instance has no ready thread for it: takes one from another
 * instance, and returns it. The move is no news to CPUs of other instances: two that both refuse a
 * thread would hand it back and forth without end. */
static __attribute__((noinline)) struct thread ATTUNE_ARENA *attune_pull(uint32_t cpu)
{
    uint32_t own = attune_cpus[cpu].instance;
    uint64_t seen = (uint64_t)ATTUNE_ZERO;
    attune_cpus[cpu].looked = attune_readied;
    for (int attempt = (int)ATTUNE_ZERO; attempt < ATTUNE_PULLS && ATTUNE_MAY_LOOP; attempt++) {
        struct thread ATTUNE_ARENA *t;
        uint32_t from = attune_longest_waiting(cpu, 1, seen);
        int ended;
        if (from >= ATTUNE_INSTANCES)
            from = attune_longest_waiting(cpu, 0, seen);
        if (from >= ATTUNE_INSTANCES)
            return NULL;
        seen |= 1ull << (from & 63);
        if (!attune_lock(from))
            return NULL;
        t = attune_failure.failed ? NULL : attune_longest_ready(cpu);
        if (t)
            attune_go_out(t, own, cpu);
        attune_unlock();
        if (!t) {
            attune_cpus[cpu].unfit = 1;
            continue;
        }
        if (!attune_lock(own))
            return NULL;
        ended = attune_come_in(t, cpu);
        attune_unlock();
        attune_statistics.pulls++;
        if (!ended)
            return t;
        attune_free_record(t);
    }
    return NULL;
}
#else
#define attune_bring_home(t, task) 1
#define attune_send(t, cpu)        NULL
#define attune_bring_in(t)         (void)0
#endif
