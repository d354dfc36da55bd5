/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * The tree of cgroups, and a thread's part by it: the import `weight`.
 *
 *     load      what is active in a cgroup: the weights of its own threads that are ready or run,
 *               and of its cgroups that have such a thread. A cgroup that has none weighs nothing
 *     part      thread's weight * (weight / load of its cgroup) * (weight / load of the next one)
 *               .. below the root. So cgroups of one parent, and threads beside them, share by
 *               weight; cpu.weight 100 weighs as much as nice 0
 *     scale     parts of many threads in few cgroups would be small numbers. So all parts are
 *               doubled `scale` times, such that their sum is about that of the threads' own
 *               weights. Without cgroups it is 0, and a part is the weight itself
 *     rest      what an integer leaves out of a part is added to the thread's next one
 *
 * A part is as it was when the thread last became ready, or changed itself. With two policies each
 * has loads of its own. Which cgroups there are, hierarchy.h says; how much time they may have,
 * quota.h.
 *
 * Invariant, under all locks: `counted` is not 0 exactly if the thread is READY or RUNNING, and the
 * loads are the sums of what is counted. One instance changes them under its lock, several do so
 * with atomic instructions: a chain of cgroups then takes some instructions to come right.
 */
/* clang-format on */
struct attune_cgroup {
    struct attune_cgroup ATTUNE_ARENA *parent; /* NULL: the root; of a free record, the next one */
    uint64_t weight;                           /* ATTUNE_LOADS * 1024 where cpu.weight is 100 */
    uint64_t load[ATTUNE_DOMAINS];
    uint32_t users; /* itself, its cgroups, its threads: then the record is free */
    uint32_t cpu_weight, idle;
    /* see quota.h: in ns; no quota: 0 */
    uint32_t running;
    int64_t period, quota, burst;
    int64_t used, settled, ends;
};

static struct attune_cgroup ATTUNE_ARENA *ATTUNE_KEPT ATTUNE_ARENA attune_free_cgroups;
static struct attune_cgroup ATTUNE_ARENA *ATTUNE_KEPT ATTUNE_ARENA attune_root_cgroup;

/* Loads are counted in hundredths, so that 1024 / 100 is no fraction. */
#define ATTUNE_LOADS 100ull

#ifdef ATTUNE_WEIGHED
#define ATTUNE_PART_BITS  12
/* With more, the product of a part and a weight might overflow. */
#define ATTUNE_MOST_SCALE 10
#define ATTUNE_RESCALES   50000000ll

/* All threads of one policy that are ready or run. */
struct attune_crowd {
    uint64_t load;
    int64_t rescales_at;
    uint32_t scale;
};

static struct attune_crowd ATTUNE_KEPT ATTUNE_ARENA attune_crowds[ATTUNE_DOMAINS];

static inline int attune_asks_weight(uint32_t domain)
{
#if ATTUNE_DOMAINS > 1
    return domain ? ATTUNE_OTHERS_TAKES_WEIGHT : ATTUNE_TAKES_WEIGHT;
#else
    return ATTUNE_TAKES_WEIGHT;
#endif
}

/* What was there before. */
static inline uint64_t attune_add_load(uint64_t ATTUNE_ARENA *to, uint64_t load)
{
#if ATTUNE_INSTANCES > 1
    return __sync_fetch_and_add(to, load);
#else
    uint64_t before = *to;
    *to = before + load;
    return before;
#endif
}

/* Under the lock: it is ready or runs from now on. */
static __attribute__((noinline)) void attune_count(struct thread ATTUNE_ARENA *t)
{
    uint32_t domain = attune_domain_of(&t->attune);
    uint64_t load = t->attune_task.weight * ATTUNE_LOADS;
    struct attune_cgroup ATTUNE_ARENA *of = t->attune_task.cgroup;
    t->attune_task.counted = load;
    attune_add_load(&attune_crowds[domain].load, load);
    for (; of && ATTUNE_MAY_LOOP; of = of->parent) {
        if (attune_add_load(&of->load[domain], load))
            break;
        load = of->weight;
    }
}

static __attribute__((noinline)) void attune_uncount(struct thread ATTUNE_ARENA *t)
{
    uint32_t domain = attune_domain_of(&t->attune);
    uint64_t load = t->attune_task.counted;
    struct attune_cgroup ATTUNE_ARENA *of = t->attune_task.cgroup;
    t->attune_task.counted = 0;
    attune_add_load(&attune_crowds[domain].load, -load);
    for (; of && ATTUNE_MAY_LOOP; of = of->parent) {
        if (attune_add_load(&of->load[domain], -load) != load)
            break;
        load = of->weight;
    }
}

/* By one step at most: a thread's lead in virtual time, which it has from the time before, means
 * as much less or more of the CPU. */
static __attribute__((noinline)) void attune_rescale(struct attune_crowd ATTUNE_ARENA *crowd,
                                                     uint32_t domain)
{
    uint64_t top = attune_root_cgroup ? attune_root_cgroup->load[domain] : 0;
    uint64_t scaled = crowd->load >> (crowd->scale & 31);
    crowd->rescales_at = attune_answer.now + ATTUNE_RESCALES;
    if (scaled >= 2 * top && top && crowd->scale < ATTUNE_MOST_SCALE)
        crowd->scale++;
    else if (crowd->scale && scaled < top / 2)
        crowd->scale--;
}

/* Under the lock: the part of a thread that is counted. */
static inline uint32_t attune_part(struct thread ATTUNE_ARENA *t, uint32_t domain)
{
    struct attune_cgroup ATTUNE_ARENA *of = t->attune_task.cgroup;
    struct attune_crowd ATTUNE_ARENA *crowd = &attune_crowds[domain];
    uint64_t part = t->attune_task.weight;
    if (attune_answer.now >= crowd->rescales_at)
        attune_rescale(crowd, domain);
    part <<= ATTUNE_PART_BITS + (crowd->scale & 15);
    for (; of && of->parent && ATTUNE_MAY_LOOP; of = of->parent)
        part = part * of->weight / of->load[domain];
    part += t->attune_task.rest;
    t->attune_task.rest = part & ((1 << ATTUNE_PART_BITS) - 1);
    part >>= ATTUNE_PART_BITS;
    return part ? (uint32_t)part : 1;
}

/* Under the lock, before the policy hears that the thread is ready. */
static __attribute__((noinline)) void attune_weigh(struct thread ATTUNE_ARENA *t)
{
    uint32_t domain = attune_domain_of(&t->attune);
    if (!attune_asks_weight(domain))
        return;
    if (!t->attune_task.counted)
        attune_count(t);
    t->attune_task.part = attune_part(t, domain);
#if ATTUNE_DOMAINS > 1
    if (domain) {
#if ATTUNE_OTHERS_TAKES_WEIGHT
        attune_supply_part_others(t);
#endif
        return;
    }
#endif
#if ATTUNE_TAKES_WEIGHT
    attune_supply_part(t);
#endif
}

/* Under the lock: it waits, ends, or goes away. */
static inline void attune_weighs_no_more(struct thread ATTUNE_ARENA *t)
{
    if (t->attune_task.counted)
        attune_uncount(t);
}

/* Under the lock: the thread belongs to another cgroup, or has another weight, than before. */
static inline void attune_change_weight(struct thread ATTUNE_ARENA *t, uint32_t weight,
                                        struct attune_cgroup ATTUNE_ARENA *cgroup)
{
    int counts = t->attune_task.counted != 0;
    attune_weighs_no_more(t);
    t->attune_task.weight = weight;
    t->attune_task.cgroup = cgroup;
    if (counts)
        attune_weigh(t);
}
#else
#define attune_weigh(t)          (void)0
#define attune_weighs_no_more(t) (void)0

static inline void attune_change_weight(struct thread ATTUNE_ARENA *t, uint32_t weight,
                                        struct attune_cgroup ATTUNE_ARENA *cgroup)
{
    t->attune_task.weight = weight;
    t->attune_task.cgroup = cgroup;
}
#endif
