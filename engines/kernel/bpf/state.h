/* SPDX-License-Identifier: GPL-2.0 */
/* What the engine keeps beside the threads: its CPUs, its figures, its maps, and what the loader
 * says and reads.
 *
 * Invariant: what is in the arena is written under the lock, but for `armed`, which belongs to its
 * CPU, `kicked` and `called`.
 */
struct attune_cpu {
    struct thread ATTUNE_ARENA *running; /* the policy's; NULL: idle to the policy */
    int64_t deadline;                    /* end of its slice, 0: none */
    /* when the slice began, if it was chosen among many and may begin anew; else 0 */
    int64_t begun;
    /* when this CPU's timer fires, 0: it does not */
    int64_t armed;
    /* attune_events when `schedule` last ran here, and when that was */
    uint64_t asked;
    int64_t asked_at;
    int64_t preempt_at; /* `preempt c at T`, 0: not asked for */
    uint32_t preempt;   /* `preempt c` */
    uint32_t kicked;    /* to choose again, and not asked since */
    /* see rescue.h; `deadline` is the end of the guest's stay */
    struct thread ATTUNE_ARENA *named, *guest;
    /* see quota.h: what it has drawn for the thread that runs, ns, and when that is used up; the
     * thread's time by the kernel when it drew */
    struct attune_cgroup ATTUNE_ARENA *draws_on;
    int64_t drawn, draught_ends;
    uint64_t drawn_from;
#if ATTUNE_DOMAINS > 1 /* see share.h */
    uint32_t domain;   /* whose turn it is */
    int64_t since;     /* when that domain was last charged */
    /* when another one may be owed the CPU; 0: it will say so itself */
    int64_t turn;
    int64_t spent[ATTUNE_DOMAINS]; /* virtual times, ns */
    /* when that domain's policy wants it, though another one has it; 0: never */
    int64_t wanted[ATTUNE_DOMAINS];
#endif
#if ATTUNE_INSTANCES > 1 /* see move.h */
    uint32_t instance, cache;
    uint32_t unfit;  /* instances that it looked into last have threads, none for this CPU */
    uint32_t called; /* to look at other instances, as it idles */
    /* attune_readied when it last looked at other instances */
    uint64_t looked;
#endif
    /* the last choice was a thread without a record */
    uint32_t others;
#if ATTUNE_CPUS > 1
    uint32_t there; /* see attune_is_there */
    uint32_t local; /* its number in its instance */
#endif
};

/* The earlier of two times of which 0 is never. */
static inline int64_t attune_earlier(int64_t one, int64_t other)
{
    return one && (!other || one < other) ? one : other;
}

/* The threads that follow one policy. */
struct attune_domain {
    uint64_t ready; /* threads */
    /* when that was 0 last; only where there are several domains, as the next */
    int64_t ready_since;
    /* ns that its threads had CPUs, as far as charged */
    uint64_t ran;
    uint64_t dispatches;
    uint64_t calls[ATTUNE_EVENTS];
};

struct attune_statistics {
    uint64_t kept, kicks, timers, fall_backs, records;
    /* threads that went to another instance; those of them that a CPU pulled; those of them that
     * moved because of somebody's lag */
    uint64_t moves, pulls, balanced;
    /* times that a lock was held, and ns; only with ATTUNE_TIMES_LOCK (the lab) */
    uint64_t locks, held;
    /* times that a CPU went idle; those of them beside a ready thread that it could run; only with
     * ATTUNE_COUNTS_IDLE (the lab) */
    uint64_t idles, neglects;
    uint64_t rescues;
};

/* A thread that the engine has run in the policy's place: see rescue.h. */
struct attune_rescue {
    uint64_t number; /* from 1; 0: it is being written */
    uint64_t thread;
    struct attune_container ATTUNE_ARENA *container; /* where it sat */
    int64_t waited;
    uint32_t line, policy;
};
#define ATTUNE_RESCUES 64

/* The loader finds everything in the arena from here on. */
static struct attune_rescue ATTUNE_KEPT ATTUNE_ARENA attune_rescues[ATTUNE_RESCUES];
static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_locked[ATTUNE_INSTANCES];
static struct attune_cpu ATTUNE_KEPT ATTUNE_ARENA attune_cpus[ATTUNE_CPUS];
static struct attune_statistics ATTUNE_KEPT ATTUNE_ARENA attune_statistics;
static struct state ATTUNE_KEPT ATTUNE_ARENA attune_instances[ATTUNE_INSTANCES];
/* The call in the instance whose lock this CPU holds. */
#define attune_answer attune_instances[attune_held()].attune
static struct attune_domain ATTUNE_KEPT ATTUNE_ARENA
    attune_domains[ATTUNE_INSTANCES][ATTUNE_DOMAINS];
static uint64_t ATTUNE_KEPT ATTUNE_ARENA attune_events[ATTUNE_INSTANCES];

/* The slice of a thread that no policy dispatches, in ns. */
#define ATTUNE_KERNELS_SLICE 5000000ull

struct attune_chunk;

/* For the loader, which looks for threads. */
static struct attune_chunk ATTUNE_ARENA *ATTUNE_KEPT ATTUNE_ARENA attune_chunks;
uint32_t attune_record_size;

/* Whether the engine chooses threads for the CPU: it is in use and does not go (hotplug.h). */
static inline int attune_is_there(uint32_t cpu)
{
#if ATTUNE_CPUS > 1
    return attune_cpus[cpu].there;
#else
    return 1;
#endif
}

/* CPUs that are not there. Instances count under locks of their own. */
static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_absent;

/* The instance to which a CPU belongs. */
static inline uint32_t attune_instance_at(uint32_t cpu)
{
#if ATTUNE_INSTANCES > 1
    return attune_cpus[cpu].instance;
#else
    return 0;
#endif
}

/* Under the lock: whether the CPU is one of the instance's that are there. */
static inline int attune_serves(uint32_t cpu)
{
    return attune_is_there(cpu) && attune_instance_at(cpu) == attune_held();
}

/* Instances in which threads may be stranded since their CPUs changed (hotplug.h), and whether
 * there is one. */
static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_to_search[ATTUNE_INSTANCES];
static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_any_to_search;

/* The first of the instance's CPUs that are there; any one if there is none. */
static inline uint32_t attune_some_cpu(void)
{
    uint32_t cpu = (uint32_t)ATTUNE_ZERO;
    while (cpu + 1 < ATTUNE_CPUS && !attune_serves(cpu) && ATTUNE_MAY_LOOP)
        cpu++;
    return cpu;
}

/* Whether an interrupt comes that a program asks for here. A CPU that goes takes none any more, and
 * the kernel keeps what was asked for. Once the CPU is back, the kernel waits for that one instead
 * of asking for others: no kick from there arrives, and no timer that starts there fires. */
static inline int attune_may_interrupt(void)
{
    return attune_is_there(bpf_get_smp_processor_id());
}

static inline void attune_interrupt(uint32_t cpu, uint64_t flags)
{
    if (attune_may_interrupt())
        scx_bpf_kick_cpu((int32_t)cpu, flags);
}

/* The CPU stops what it runs and asks. */
static inline void attune_kick(uint32_t cpu)
{
    attune_cpus[cpu].kicked = 1;
    attune_interrupt(cpu, SCX_KICK_PREEMPT);
}

/* Under the lock: the next dispatch anywhere looks through the instance's threads. */
static inline void attune_ask_search(void)
{
    attune_to_search[attune_held()] = 1;
    __sync_lock_test_and_set(&attune_any_to_search, 1);
    attune_kick(bpf_get_smp_processor_id());
}

/* In a program that names nothing else in the arena: it may use no addresses of it otherwise. */
#define ATTUNE_USES_ARENA ((void)*(volatile uint32_t ATTUNE_ARENA *)attune_locked)

/* Set by the loader before it loads. */
const volatile uint64_t attune_seed = 0;
const volatile uint32_t attune_cpu_count = 1;
/* A ready thread that waits for longer than this at most, whatever its policy, is run by the engine
 * (rescue.h): ns. 0: by none. */
const volatile int64_t attune_longest_wait = 0;
#if ATTUNE_INSTANCES > 1
/* Each CPU's instance and last-level cache. */
const volatile uint32_t attune_instance_of[ATTUNE_CPUS] = {0};
const volatile uint32_t attune_cache_of[ATTUNE_CPUS] = {0};
#endif

/* Read by the loader after the end. */
uint64_t attune_origin; /* address of attune_failure */
uint32_t attune_exit_kind;
int64_t attune_exit_code;
char attune_exit_reason[128], attune_exit_message[1024];

/* Wakes the loader at the end, and when a CPU came or went (hotplug.h). */
struct {
    int (*type)[BPF_MAP_TYPE_RINGBUF];
    int (*max_entries)[4096];
} attune_news ATTUNE_SECTION(".maps");

/* The arena lies at one address here and in the loader. */
struct {
    int (*type)[BPF_MAP_TYPE_ARENA];
    int (*map_flags)[BPF_F_MMAPABLE];
    int (*max_entries)[65536]; /* pages */
    enum { ATTUNE_ARENA_AT = 1ull << 44 } map_extra;
} attune_arena ATTUNE_SECTION(".maps");

/* What outlives a reload of what the engine knows of a thread. */
struct attune_slot {
    uint64_t record;
    uint32_t bound; /* whose values it has: see values.h */
};

struct {
    int (*type)[BPF_MAP_TYPE_TASK_STORAGE];
    int (*map_flags)[BPF_F_NO_PREALLOC];
    int *key;
    struct attune_slot *value;
} attune_slots ATTUNE_SECTION(".maps");

struct attune_timer {
    struct bpf_timer timer;
};

struct {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    int (*max_entries)[ATTUNE_CPUS];
    uint32_t *key;
    struct attune_timer *value;
} attune_timers ATTUNE_SECTION(".maps");
