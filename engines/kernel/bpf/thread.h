/* SPDX-License-Identifier: GPL-2.0 */
/* What the engine keeps of a thread, behind the runtime's head of its record and in front of the policy's attributes.
 *
 *                       newthread                       schedule dispatches it
 *     UNKNOWN ───first enqueue──▶ READY ◀──────────────────────────────────────────▶ RUNNING
 *        ▲                          ▲             switch_out (yield, slice, preempt)     │
 *        │ leaves                   │ event_raised                                       │ set_waiting, switch_out
 *        │ sched_ext                └─────────────── WAITING ◀───────────────────────────┘ set_dead, switch_out: GONE
 *
 * These are the policy's states, not the kernel's: RUNNING means that the policy has given this thread the CPU `cpu`, also while
 * a higher class or a change of its attributes keeps it away from there.
 *
 * Invariant (under the lock): cpus[c].running is t exactly when t is RUNNING and t.cpu is c; READY and WAITING threads sit in a
 * container of their policy; `attune_domains[d].ready` counts the READY ones of domain d. A thread's domain never changes.
 */
enum attune_state { ATTUNE_UNKNOWN, ATTUNE_READY, ATTUNE_RUNNING, ATTUNE_WAITING, ATTUNE_GONE };

#define ATTUNE_WORDS ((ATTUNE_CPUS + 63) / 64)

#ifdef ATTUNE_IMPLICIT
#define ATTUNE_ARMED 2

/* What a thread waits until: see implicit.h. Times are of CLOCK_MONOTONIC, 0: none. Only the thread itself writes this, as it runs. */
struct attune_timeouts {
    uint64_t told;                                      /* time-outs so far */
    int64_t release;                                    /* the earliest that stands */
    uint64_t sleeper;                                   /* the kernel's timer that it blocks with */
    int64_t sleeps_until;
    struct {
        uint64_t timer;                                 /* of a descriptor */
        int64_t at;
    } armed[ATTUNE_ARMED];
};
#endif

struct attune_task {
    struct attune_container ATTUNE_ARENA *was;          /* where it sat when the policy forgot it */
    uint64_t tid;                                       /* the kernel's, never used twice */
    int32_t pid, tgid;
    uint32_t cpu;                                       /* RUNNING: where */
    uint8_t state;                                      /* enum attune_state */
    uint8_t pinned;                                     /* may not run everywhere: `allowed` counts */
    uint8_t yielded;                                    /* called sched_yield since it was dispatched */
    uint8_t placed;                                     /* RUNNING: enqueue has put it on that CPU's own queue */
    uint8_t domain;                                     /* whose policy it follows: enum attune_domain_name */
    uint8_t leaving;                                    /* stopped, but still on the CPU where it ran: enqueue follows */
    uint32_t weight;                                    /* 1024 at nice 0 */
    uint32_t bound;                                     /* whose values it has: see values.h */
    uint64_t allowed[ATTUNE_WORDS];
    uint64_t dispatches;
#ifdef ATTUNE_IMPLICIT
    struct attune_timeouts timeouts;
#endif
};

/* The part of a record that does not depend on the policy. */
struct attune_known {
    struct attune_thread attune;
    struct attune_task task;
};

_Static_assert(offsetof(struct attune_known, task.domain) == 104, "threads.rs reads it there");

#define ATTUNE_MEMBERS struct attune_task attune_task;

static inline struct attune_task ATTUNE_ARENA *attune_task(const struct attune_thread ATTUNE_ARENA *t)
{
    return &((struct attune_known ATTUNE_ARENA *)t)->task;
}

#if ATTUNE_CPUS > 1
/* Threads that may not run everywhere. */
static uint32_t ATTUNE_ARENA attune_pinned;

static inline int attune_may_run(const struct attune_thread ATTUNE_ARENA *t, uint32_t cpu)
{
    const struct attune_task ATTUNE_ARENA *task = attune_task(t);
    return !task->pinned || (task->allowed[cpu / 64] >> cpu % 64 & 1);
}
#else
#define attune_pinned 0
#define attune_may_run(thread, cpu) 1
#endif
