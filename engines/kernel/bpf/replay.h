/* SPDX-License-Identifier: GPL-2.0 */
/* In the engine's place: the policy's handlers, one at a time, as user space orders
 * (src/replay.rs). Nothing is scheduled, and no sched_ext is needed. Scheduler, runtime and records
 * are the same as under the engine.
 *
 * Invariant: the instance's answer, the alarms, the preemptions and `attune_failure` are those of
 * the last order. Alarms and preemptions beyond ATTUNE_REPLAY_KEPT are counted, not kept.
 */
#define ATTUNE_REPLAY_THREADS   64
#define ATTUNE_REPLAY_INSTANCES 2
#define ATTUNE_REPLAY_KEPT      4096

/* Beside the events. */
enum attune_replay_what {
    /* the instance begins anew; `value` seeds `random` */
    ATTUNE_REPLAY_START = ATTUNE_EVENTS,
    /* the thread begins: its record holds nothing but its number */
    ATTUNE_REPLAY_BEGIN,
    /* the thread is taken out of wherever it is: it ends, or has left its instance */
    ATTUNE_REPLAY_REMOVE,
    /* the thread may run on the CPUs whose bits stand in `value` */
    ATTUNE_REPLAY_AFFINITY,
};

struct attune_order {
    /* enum attune_event or enum attune_replay_what */
    uint32_t what;
    /* the record's index; ATTUNE_REPLAY_THREADS: none */
    uint32_t thread;
    uint32_t cpu, cpus;
    uint64_t value;
    uint32_t instance;
};

struct attune_kept_alarm {
    uint64_t thread;
    int64_t at;
};

struct attune_kept_preemption {
    int64_t cpu, at;
};

/* The program that orders reads and writes these. */
static struct attune_order ATTUNE_KEPT ATTUNE_ARENA attune_order = {.what = ATTUNE_REPLAY_START};
static struct state ATTUNE_KEPT ATTUNE_ARENA attune_instances[ATTUNE_REPLAY_INSTANCES];
_Static_assert(offsetof(struct attune_instance, now) == 0, "replay.rs says the time there");
static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_alarm_count,
    ATTUNE_KEPT ATTUNE_ARENA attune_preempt_count;
static struct attune_kept_alarm ATTUNE_KEPT ATTUNE_ARENA attune_alarms[ATTUNE_REPLAY_KEPT];
static struct attune_kept_preemption ATTUNE_KEPT ATTUNE_ARENA attune_preempts[ATTUNE_REPLAY_KEPT];
static struct thread ATTUNE_KEPT ATTUNE_ARENA attune_records[ATTUNE_REPLAY_THREADS];

/* address of attune_failure, once anything was ordered */
uint64_t attune_origin;
uint32_t attune_record_size;

struct {
    int (*type)[BPF_MAP_TYPE_ARENA];
    int (*map_flags)[BPF_F_MMAPABLE];
    int (*max_entries)[65536]; /* pages */
} attune_arena ATTUNE_SECTION(".maps");

static void attune_alarm(struct attune_instance ATTUNE_ARENA *attune,
                         struct attune_thread ATTUNE_ARENA *thread, int64_t at)
{
    uint32_t index = attune_alarm_count++;
    if (index < ATTUNE_REPLAY_KEPT) {
        attune_alarms[index].thread = thread->id;
        attune_alarms[index].at = at;
    }
}

static void attune_preempt(struct attune_instance ATTUNE_ARENA *attune, int64_t cpu, int64_t at)
{
    uint32_t index = attune_preempt_count++;
    if (index < ATTUNE_REPLAY_KEPT) {
        attune_preempts[index].cpu = cpu;
        attune_preempts[index].at = at;
    }
}

static inline void attune_allow(struct thread ATTUNE_ARENA *t, uint64_t cpus, uint32_t count)
{
#if ATTUNE_CPUS > 1
    uint64_t all = (1ull << (count & 63)) - 1;
    attune_uncount_pins(&t->attune);
    t->attune.pinned = (cpus & all) != all;
    t->attune_task.allowed[0] = cpus;
    attune_recount_pins(&t->attune);
#endif
}

#ifdef ATTUNE_GLOBALS
static void attune_has_written(void)
{
}
#endif

#define ATTUNE_ORDERED(NAME)            \
    case ATTUNE_##NAME:                 \
        ATTUNE_ON_##NAME(attune, head); \
        break;

ATTUNE_SECTION("syscall") int32_t attune_replay(void *context)
{
    struct attune_instance ATTUNE_ARENA *attune =
        &attune_instances[attune_order.instance & (ATTUNE_REPLAY_INSTANCES - 1)].attune;
    uint32_t index = attune_order.thread;
    struct thread ATTUNE_ARENA *t = &attune_records[index & (ATTUNE_REPLAY_THREADS - 1)];
    struct attune_thread ATTUNE_ARENA *head = index < ATTUNE_REPLAY_THREADS ? &t->attune : NULL;
    attune_origin = (uint64_t)&attune_failure;
    attune_record_size = sizeof(struct thread);
    attune_failure.failed = attune_failure.about = 0;
    attune_alarm_count = attune_preempt_count = 0;
    attune->cpu = attune_order.cpu;
    attune->cpus = attune_order.cpus;
    attune->dispatched = attune->value_thread = NULL;
    attune->slice = -1;
    attune->value = 0;
    switch (attune_order.what) {
        ATTUNE_ORDERED(INIT)
        ATTUNE_ORDERED(NEWTHREAD)
        ATTUNE_ORDERED(SCHEDULE)
        ATTUNE_ORDERED(SWITCH_OUT)
        ATTUNE_ORDERED(EVENT_RAISED)
        ATTUNE_ORDERED(SET_NEXT_THREAD)
        ATTUNE_ORDERED(SET_WAITING)
        ATTUNE_ORDERED(SET_DEAD)
        ATTUNE_ORDERED(SUSPEND_THREAD)
        ATTUNE_ORDERED(RESUME_THREAD)
        ATTUNE_ORDERED(QUANTUM_EXPIRED)
        ATTUNE_ORDERED(ALARM)
        ATTUNE_ORDERED(TIMESLICE_LEFT)
        ATTUNE_ORDERED(THREADS_NEW)
        ATTUNE_ORDERED(THREADS_READY)
        ATTUNE_ORDERED(THREADS_WAITING)
        ATTUNE_ORDERED(THREADS_SUSPENDED)
        ATTUNE_ORDERED(THREADS_TOTAL)
        ATTUNE_ORDERED(IS_NEW)
        ATTUNE_ORDERED(IS_READY)
        ATTUNE_ORDERED(IS_WAITING)
        ATTUNE_ORDERED(CAN_SWITCH_TO)
        ATTUNE_ORDERED(FIRST_WAITING)
        ATTUNE_ORDERED(LEAVES)
        ATTUNE_ORDERED(ARRIVES)
    case ATTUNE_REPLAY_START:
#if ATTUNE_CPUS > 1
        for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < ATTUNE_CPUS && ATTUNE_MAY_LOOP; cpu++)
            attune_cpu_of[0][cpu] = cpu;
#endif
        attune->divisions_by_zero = 0;
        attune_start(attune, attune_order.value, attune_order.cpus);
        break;
    case ATTUNE_REPLAY_BEGIN:
        attune_thread_init(attune, &t->attune);
        break;
    case ATTUNE_REPLAY_REMOVE:
        attune_thread_remove(&t->attune);
        attune_allow(t, UINT64_MAX, attune_order.cpus);
        break;
    case ATTUNE_REPLAY_AFFINITY:
        attune_allow(t, attune_order.value, attune_order.cpus);
        break;
    default:
        return -22;
    }
    return 0;
}

const char attune_license[] ATTUNE_SECTION("license") = "GPL";
