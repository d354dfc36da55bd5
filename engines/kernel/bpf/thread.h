/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * What the engine keeps of a thread, behind the runtime's head of its record and in front of the
 * policy's attributes.
 *
 *                newthread                     schedule dispatches it
 *     UNKNOWN ──first enqueue──▶ READY ◀─────────────────────────────────────▶ RUNNING
 *        ▲                         ▲         switch_out (yield, slice, preempt)  │
 *        │ leaves                  │ event_raised                                │
 *        │ sched_ext               └────────── WAITING ◀─────────────────────────┤ set_waiting,
 *                                                                                │ switch_out
 *                                               GONE ◀───────────────────────────┘ set_dead,
 *                                                                                  switch_out
 *
 * These are the policy's states, not the kernel's: RUNNING means that the policy has given this
 * thread the CPU `cpu`, also while a higher class or a change of its attributes keeps it away from
 * there.
 *
 * Invariant (under the lock): cpus[c].running is t exactly when t is RUNNING and t.cpu is c; READY
 * and WAITING threads sit in a container of their policy; `attune_domains[d].ready` counts the
 * READY ones of domain d. A thread's domain never changes.
 */
/* clang-format on */
enum attune_state {
    ATTUNE_UNKNOWN,
    ATTUNE_READY,
    ATTUNE_RUNNING,
    ATTUNE_WAITING,
    ATTUNE_GONE,
    /* between two instances (move.h): it sits in no container, and no handler sees it */
    ATTUNE_MOVING,
    /* the engine runs it, or has let it run until it blocked (rescue.h): the same */
    ATTUNE_AWAY,
    /* its cgroup has used up its quota (throttle.h): the same, but for the engine's own queue */
    ATTUNE_THROTTLED
};

struct thread;
struct attune_cgroup;

#define ATTUNE_WORDS ((ATTUNE_CPUS + 63) / 64)

#ifdef ATTUNE_IMPLICIT
#define ATTUNE_ARMED 2

/* What a thread waits until: see implicit.h. Times are of CLOCK_MONOTONIC, 0: none. Only the thread
 * itself writes this, as it runs. */
struct attune_timeouts {
    uint64_t told;    /* time-outs so far */
    int64_t release;  /* the earliest that stands */
    uint64_t sleeper; /* the kernel's timer that it blocks with */
    int64_t sleeps_until;
    struct {
        uint64_t timer; /* of a descriptor */
        int64_t at;
    } armed[ATTUNE_ARMED];
};
#endif

#if ATTUNE_INSTANCES > 1
/* See lag.h. Times in ns. */
struct attune_account {
    int64_t settled; /* when its lag was last brought up to date, */
    uint64_t level;  /* and the machine's level then */
    int64_t lag;
    int64_t runnable, service; /* since then */
    int64_t runnable_from;     /* where `load` is not 0 */
    int64_t serves_from;       /* RUNNING; 0: not */
    int64_t load;              /* its weight in the book of its instance; 0: it is not runnable */
    uint32_t sent;             /* 1 + the instance where its next enqueue takes it; 0: none */
};
#endif

struct attune_task {
    struct attune_container ATTUNE_ARENA *was; /* where it sat when the policy forgot it */
    uint64_t tid;                              /* the kernel's, never used twice */
    int32_t pid, tgid;
    uint32_t cpu;  /* RUNNING: where; otherwise where it was last */
    uint8_t state; /* enum attune_state */
    /* called sched_yield since it was dispatched */
    uint8_t yielded;
    /* RUNNING: enqueue has put it on that CPU's own queue */
    uint8_t placed;
    /* whose policy it follows: see share.h */
    uint8_t domain;
    /* stopped, but still on the CPU where it ran: enqueue follows */
    uint8_t leaving;
    uint32_t weight;                /* its own: 1024 at nice 0 */
    uint32_t bound;                 /* whose values it has: see values.h */
    uint32_t changes;               /* of tables that it has seen: see table.h */
    uint64_t process;               /* the key of its process there */
    uint64_t allowed[ATTUNE_WORDS]; /* of a pinned thread: the CPUs where it may run */
    uint64_t dispatches;
    int64_t waits_since; /* READY: since then, in whichever instance */
    uint64_t ran;        /* its time on all CPUs, by the kernel, at its last enqueue */
    int64_t rings_at;    /* MOVING, AWAY, THROTTLED: when its alarm rings, 0: never */
    /* since when it has not run because of its cgroup's quota, and its time by the kernel then */
    int64_t idle_since;
    uint64_t idle_at;
    uint64_t rescued;  /* dispatches + 1 when the engine ran it last, 0: it never did */
    uint8_t of_kernel; /* a thread of the kernel's own */
    struct attune_cgroup ATTUNE_ARENA *cgroup; /* NULL: the kernel has told of none */
#ifdef ATTUNE_WEIGHED                          /* see cgroup.h */
    uint64_t counted;                          /* in the loads; 0: it is not */
    uint64_t found_at, exact;                  /* attune_load_changes then; the part found */
    uint32_t part, rest;
    uint8_t lingers; /* its place among those of its instance + 1; 0: it does not */
#endif
#if ATTUNE_INSTANCES > 1 /* see move.h */
    uint32_t instance;
    uint8_t moves_as; /* MOVING: READY or WAITING */
    uint8_t ended;    /* MOVING: enum attune_ended */
    /* READY: in the list of its instance */
    int64_t ready_since;
    struct thread ATTUNE_ARENA *ready_before, *ready_behind;
    struct attune_account account;
#endif
#ifdef ATTUNE_IMPLICIT
    struct attune_timeouts timeouts;
#endif
};

/* The part of a record that does not depend on the policy. */
struct attune_known {
    struct attune_thread attune;
    struct attune_task task;
};

#define ATTUNE_MEMBERS struct attune_task attune_task;

static inline struct attune_task ATTUNE_ARENA *
attune_task(const struct attune_thread ATTUNE_ARENA *t)
{
    return &((struct attune_known ATTUNE_ARENA *)t)->task;
}

#if ATTUNE_INSTANCES > 1
/* By CPU: the instance whose lock it holds. None holds two. */
static uint32_t ATTUNE_ARENA attune_holds[ATTUNE_CPUS];

static inline uint32_t attune_held(void)
{
    return attune_holds[bpf_get_smp_processor_id()];
}
#else
#define attune_held() 0
#endif

#if ATTUNE_CPUS > 1
/* The machine's numbers of an instance's CPUs, those that are there first: its policy numbers them
 * from 0, without a gap. */
static uint32_t ATTUNE_ARENA attune_cpu_of[ATTUNE_INSTANCES][ATTUNE_CPUS];
#define attune_number_of(cpu) attune_cpu_of[attune_held()][cpu]
/* How many of them are there. */
static uint32_t ATTUNE_ARENA attune_there[ATTUNE_INSTANCES];

/* By the machine's number of the CPU. */
static inline int attune_may_run_on(const struct attune_thread ATTUNE_ARENA *t, uint32_t cpu)
{
    return !t->pinned || (attune_task(t)->allowed[cpu / 64] >> cpu % 64 & 1);
}

/* Counts a pinned thread that has come to the container (1) or leaves it (-1). */
ATTUNE_OUTLINE attune_count_pinned(struct attune_container ATTUNE_ARENA *c ATTUNE_IN_ARENA,
                                   const struct attune_thread ATTUNE_ARENA *t ATTUNE_IN_ARENA,
                                   int by)
{
    c->pinned += (uint32_t)by;
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < ATTUNE_CPUS && ATTUNE_MAY_LOOP; cpu++)
        if (attune_may_run_on(t, cpu))
            c->pinned_on[cpu] += (uint32_t)by;
    ATTUNE_RETURN;
}

ATTUNE_OUTLINE attune_forget_passed(struct attune_container ATTUNE_ARENA *c ATTUNE_IN_ARENA)
{
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < ATTUNE_CPUS && ATTUNE_MAY_LOOP; cpu++)
        c->passed[cpu] = NULL;
    c->passes = 0;
    ATTUNE_RETURN;
}

/* Around a change of `pinned` and `allowed`: the thread's container stops counting it, and counts
 * it anew. CPUs that have passed it look again. */
static inline void attune_uncount_pins(const struct attune_thread ATTUNE_ARENA *t)
{
    struct attune_container ATTUNE_ARENA *c = t->where;
    if (!c)
        return;
    if (t->pinned)
        attune_count_pinned(c, t, -1);
    if (c->passes)
        attune_forget_passed(c);
}

static inline void attune_recount_pins(const struct attune_thread ATTUNE_ARENA *t)
{
    if (t->where && t->pinned)
        attune_count_pinned(t->where, t, 1);
}

#define attune_may_run(t, cpu) attune_may_run_on(t, attune_number_of(cpu))
#else
#define attune_may_run_on(thread, cpu) 1
#define attune_may_run(thread, cpu)    1
#endif
