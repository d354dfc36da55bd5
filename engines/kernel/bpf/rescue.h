/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * No ready thread waits without end, whatever the policy does: the engine runs it for a moment.
 *
 *     a timer        looks at all records without a lock, every ATTUNE_LOOK while threads are
 *                    ready, and names for each CPU the thread that waits beyond its bound longest
 *     dispatch       of that CPU, if the thread still waits: leaves(t); t is AWAY and the CPU's
 *                    guest. To the policy the CPU is idle
 *     its stay ends  when it blocks, or after ATTUNE_STAY. A thread that blocks stays AWAY
 *     arrives(t)     as it is enqueued next, or when its time is over; t is READY, as it left
 *
 * Invariant (under the lock): cpus[c].guest is t only if t is AWAY and t.cpu is c; a CPU with a
 * guest runs no thread of a policy. What the timer names is a hint: dispatch looks again.
 *
 * A policy that has no `arrives` is told `set_dead` and `newthread` instead.
 *
 * Kernel threads come first among those that wait too long, and after half the time: the kernel's
 * own watchdog, which ends the run when it is late, is a worker, and may need the thread that makes
 * workers, and a new one, before it runs.
 */
/* clang-format on */
#define ATTUNE_LOOK       50000000ll
#define ATTUNE_STAY       10000000ll
/* The bound is no shorter, unless the loader's is: `fair` itself promises 1.2 s for 50 threads. */
#define ATTUNE_LEAST_WAIT 1500000000ll
/* The bound of a thread that the policy has not dispatched since it was a guest: so one that is
 * forgotten gets more than a hundredth of a CPU. */
#define ATTUNE_AGAIN      500000000ll
/* So many slices for each ready thread; a policy that named no slice is taken to mean this one. */
#define ATTUNE_SLICES     4
#define ATTUNE_SOME_SLICE 20000000ll
/* A look that comes so late means that the machine stood still, and nobody waited. */
#define ATTUNE_STANDSTILL 300000000ll

struct {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    int (*max_entries)[1];
    uint32_t *key;
    struct attune_timer *value;
} attune_watch_timer ATTUNE_SECTION(".maps");

static uint32_t attune_watching; /* the timer is armed */
static int64_t attune_looked_at;
static int64_t attune_stood_until; /* waits count from then on */

/* How long it has been ready. Without the lock a hint. */
static inline int64_t attune_waited(const struct thread ATTUNE_ARENA *t, int64_t now)
{
    int64_t since = t->attune_task.waits_since;
    return now - (since > attune_stood_until ? since : attune_stood_until);
}

/* How long it may be. */
ATTUNE_OUTLINE_AS(int64_t) attune_bound_of(const struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    uint32_t instance = 0, domain = attune_domain_of(&t->attune);
    int64_t most = attune_longest_wait, slice, bound;
#if ATTUNE_INSTANCES > 1
    instance = t->attune_task.instance;
#endif
    slice = attune_instances[instance].attune.slice;
    if (slice <= 0)
        slice = ATTUNE_SOME_SLICE;
    if (slice > most)
        slice = most; /* or else the product might be too large for a number */
    bound = ATTUNE_SLICES * slice * (int64_t)attune_domains[instance][domain].ready;
    if (bound < ATTUNE_LEAST_WAIT)
        bound = ATTUNE_LEAST_WAIT;
    if (bound > most)
        bound = most;
    if (t->attune_task.of_kernel)
        bound /= 2;
    if (bound > ATTUNE_AGAIN && t->attune_task.rescued == t->attune_task.dispatches + 1)
        bound = ATTUNE_AGAIN;
    return bound;
}

static inline int attune_waits_too_long(const struct thread ATTUNE_ARENA *t, int64_t now)
{
    return t->attune_task.state == ATTUNE_READY && !t->attune_task.leaving &&
           attune_waited(t, now) > attune_bound_of(t);
}

/* Whether the first is to be helped before the second, which may be NULL. */
static inline int attune_is_first(const struct thread ATTUNE_ARENA *t,
                                  const struct thread ATTUNE_ARENA *other)
{
    if (!other || t->attune_task.of_kernel != other->attune_task.of_kernel)
        return !other || t->attune_task.of_kernel;
    return t->attune_task.waits_since < other->attune_task.waits_since;
}

/* Names the threads of a chunk. 1 if one of them is ready. */
static __attribute__((noinline)) int attune_name_in(struct attune_chunk ATTUNE_ARENA *chunk,
                                                    int64_t now)
{
    int ready = 0;
    for (uint64_t i = (uint64_t)ATTUNE_ZERO; i < chunk->records && ATTUNE_MAY_GO_ON; i++) {
        struct thread ATTUNE_ARENA *t = &chunk->record[i];
        uint32_t cpu;
        if (t->attune_task.state != ATTUNE_READY)
            continue;
        ready = 1;
        if (!attune_waits_too_long(t, now))
            continue;
        cpu = attune_host_of(t);
        if (cpu < ATTUNE_CPUS && attune_is_first(t, attune_cpus[cpu].named))
            attune_cpus[cpu].named = t;
    }
    return ready;
}

/* 1 if any thread is ready. */
static __attribute__((noinline)) int attune_name(int64_t now)
{
    struct attune_chunk ATTUNE_ARENA *chunk;
    int ready = 0;
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < attune_cpu_count && ATTUNE_MAY_GO_ON; cpu++)
        attune_cpus[cpu].named = NULL;
    for (chunk = attune_chunks; chunk && ATTUNE_MAY_GO_ON; chunk = chunk->before)
        ready |= attune_name_in(chunk, now);
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < attune_cpu_count && ATTUNE_MAY_GO_ON; cpu++)
        if (attune_cpus[cpu].named && !attune_cpus[cpu].guest)
            attune_kick(cpu);
    return ready;
}

/* A look at thousands of threads takes longer than a short slice. The thread that it interrupts has
 * that time on top, or it would lose its turn before it ran. */
static inline void attune_give_back(int64_t taken)
{
    uint32_t cpu = bpf_get_smp_processor_id();
    if (cpu < ATTUNE_CPUS && attune_cpus[cpu].deadline)
        attune_cpus[cpu].deadline += taken;
}

/* The timer rests while no thread is ready. A thread that becomes ready as it goes to rest is seen
 * when the next one is enqueued: late, but on a machine with nothing else to do. */
static int attune_looks(void *map, uint32_t *key, struct attune_timer *timer)
{
    int64_t now = attune_clock();
    int ready;
    if (attune_failure.failed)
        return 0;
    if (now - attune_looked_at > ATTUNE_STANDSTILL)
        attune_stood_until = now;
    attune_looked_at = now;
    ready = attune_name(now);
    attune_give_back(attune_clock() - now);
    if (ready)
        bpf_timer_start(&timer->timer, (uint64_t)(now + ATTUNE_LOOK), BPF_F_TIMER_ABS);
    else
        attune_watching = 0;
    return 0;
}

/* 0: it could not be set up. */
static inline int attune_begin_watch(void)
{
    uint32_t key = 0;
    struct attune_timer *timer = bpf_map_lookup_elem(&attune_watch_timer, &key);
    if (!timer)
        return 0;
    bpf_timer_init(&timer->timer, &attune_watch_timer, CLOCK_MONOTONIC);
    bpf_timer_set_callback(&timer->timer, attune_looks);
    return 1;
}

static __attribute__((noinline)) void attune_arm_watch(void)
{
    uint32_t key = 0;
    struct attune_timer *timer = bpf_map_lookup_elem(&attune_watch_timer, &key);
    if (!timer || __sync_val_compare_and_swap(&attune_watching, 0, 1))
        return;
    attune_looked_at = attune_clock();
    if (bpf_timer_start(&timer->timer, (uint64_t)(attune_looked_at + ATTUNE_LOOK), BPF_F_TIMER_ABS))
        attune_watching = 0;
}

/* Without a lock: threads may be ready. */
static inline void attune_watch(void)
{
    if (attune_longest_wait && !attune_watching && attune_may_interrupt())
        attune_arm_watch();
}

/* Without a lock: what is named for this CPU comes into its instance. */
static inline void attune_fetch_named(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu)
{
#if ATTUNE_INSTANCES > 1
    struct thread ATTUNE_ARENA *t = me->named;
    int goes;
    if (!t || t->attune_task.instance == me->instance || !attune_lock_of(t))
        return;
    goes = !attune_failure.failed && t->attune_task.instance != me->instance &&
           attune_waits_too_long(t, attune_answer.now);
    if (goes)
        attune_go_out(t, me->instance, cpu);
    attune_unlock();
    if (goes)
        attune_bring_in(t);
#endif
}

/* For the loader. */
static inline void attune_note_rescue(const struct thread ATTUNE_ARENA *t)
{
    uint64_t number = __sync_fetch_and_add(&attune_statistics.rescues, 1);
    struct attune_rescue ATTUNE_ARENA *note = &attune_rescues[number & (ATTUNE_RESCUES - 1)];
    *(volatile uint64_t ATTUNE_ARENA *)&note->number = 0;
    note->thread = t->attune.id;
    note->container = t->attune.where;
    note->waited = attune_waited(t, attune_answer.now);
    note->line = t->attune.line;
    note->policy = attune_domain_of(&t->attune);
    *(volatile uint64_t ATTUNE_ARENA *)&note->number = number + 1;
}

/* Under the lock: the thread's task, if it waits too long and this CPU may run it now. */
static inline struct task_struct *attune_rescuable(const struct thread ATTUNE_ARENA *t,
                                                   uint32_t cpu)
{
    struct task_struct *task;
    if (!attune_waits_too_long(t, attune_answer.now))
        return NULL;
#if ATTUNE_INSTANCES > 1
    if (t->attune_task.instance != attune_held())
        return NULL;
#endif
    task = scx_bpf_tid_to_task(t->attune_task.tid);
    if (!task || !(task->scx.flags & SCX_TASK_QUEUED))
        return NULL;
    /* The kernel has run it by itself, and gives it back in a moment: see enqueue. */
    if (t->attune_task.ran != task->se.sum_exec_runtime)
        return NULL;
    return attune_fits(task, cpu) ? task : NULL;
}

/* In dispatch, under the lock, when the CPU's own thread is settled: the named thread becomes the
 * CPU's guest. 1 if it does. */
static __attribute__((noinline)) int attune_invite(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu,
                                                   struct task_struct *previous,
                                                   struct thread ATTUNE_ARENA *known)
{
    struct thread ATTUNE_ARENA *t = me->named, *running = me->running;
    struct task_struct *task;
    /* Its own thread is on its way here: later. */
    if (!t || (running && !(previous && known == running)))
        return 0;
    me->named = NULL;
    task = attune_rescuable(t, cpu);
    if (!task)
        return 0;
    if (attune_quotas && !attune_allowance(t->attune_task.cgroup, attune_answer.now)) {
        attune_put_aside(t, task, cpu);
        return 0;
    }
    if (running) {
        attune_switch_out(me, cpu, running, 0);
        running->attune_task.leaving = 1;
        scx_bpf_task_set_slice(previous, 0);
    }
    attune_chooses(me);
    attune_note_rescue(t);
    attune_give_out(t, cpu, ATTUNE_AWAY);
    attune_overdraw(me, t, task, ATTUNE_STAY);
    t->attune_task.cpu = cpu;
    t->attune_task.yielded = 0;
    t->attune_task.rescued = t->attune_task.dispatches + 1;
    me->guest = t;
    me->deadline = attune_answer.now + ATTUNE_STAY;
    /* If it may not, its enqueue ends the stay. */
    attune_insert_here(task, cpu);
    return 1;
}

/* Under the lock: no CPU's guest any more. */
static inline void attune_forget_guest(struct thread ATTUNE_ARENA *t)
{
    struct attune_cpu ATTUNE_ARENA *host = &attune_cpus[t->attune_task.cpu];
    if (host->guest != t)
        return;
    attune_pay(host, t);
    host->guest = NULL;
    host->deadline = 0;
}

/* Under the lock: the policy has the thread, which can run, back. */
static __attribute__((noinline)) void attune_end_stay(struct thread ATTUNE_ARENA *t,
                                                      struct task_struct *task, uint32_t cpu)
{
    attune_forget_guest(t);
    attune_take_back(t, task, cpu);
}

/* It cannot run: the policy has it back when it wakes, unless it has ended. */
static inline void attune_guest_stops(struct thread ATTUNE_ARENA *t, int ended)
{
    attune_forget_guest(t);
    if (ended) {
        attune_close_account(t);
        t->attune_task.state = ATTUNE_GONE;
        t->attune_task.was = NULL;
    } else {
        attune_pass_releases(t);
    }
}

/* In dispatch, under the lock: what has become of the CPU's guest. 1 if it stays. */
static __attribute__((noinline)) int attune_guest_stays(struct attune_cpu ATTUNE_ARENA *me,
                                                        uint32_t cpu, struct task_struct *previous,
                                                        struct thread ATTUNE_ARENA *known)
{
    struct thread ATTUNE_ARENA *t = me->guest;
    struct task_struct *task = previous;
    int here = previous && known == t;
    if (!here)
        /* another thread ran here meanwhile, perhaps one of a higher class */
        task = scx_bpf_tid_to_task(t->attune_task.tid);
    if (!task) {
        attune_guest_stops(t, 1);
    } else if (!(task->scx.flags & SCX_TASK_QUEUED) && (here || !task->on_rq)) {
        attune_guest_stops(t, task->__state & TASK_DEAD);
    } else if (here && attune_answer.now < me->deadline && !t->attune_task.yielded) {
        scx_bpf_task_set_slice(previous, SCX_SLICE_INF);
        return 1;
    } else {
        attune_end_stay(t, task, cpu);
        t->attune_task.leaving = here;
    }
    return 0;
}
