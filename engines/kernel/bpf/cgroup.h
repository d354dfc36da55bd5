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
 * Where no cgroup is below the root, parts are weights and nothing is counted. Most threads find
 * that no load has changed since their part was found, and keep it:
 *
 *     changes   of any load, weight or scale so far
 *     lingers   a thread that blocks stays counted for ATTUNE_LINGER, unless ATTUNE_LINGERERS of
 *               its instance block meanwhile. So threads that wake each other change no load
 *
 * A part is as it was when the thread last became ready, or changed itself. Where several policies
 * share the machine, each has loads of its own. Which cgroups there are, hierarchy.h says.
 *
 * Invariant, under all locks: `counted` is not 0 only if the thread is READY or RUNNING, or WAITING
 * and lingers; and the loads are the sums of what is counted. One instance changes them under its
 * lock, several do so with atomic instructions: a chain of cgroups then takes some instructions to
 * come right.
 */
/* clang-format on */
struct attune_cgroup {
    struct attune_cgroup ATTUNE_ARENA *parent; /* NULL: the root; of a free record, the next one */
    uint64_t weight;                           /* ATTUNE_LOADS * 1024 where cpu.weight is 100 */
    uint64_t load[ATTUNE_DOMAINS];
    uint32_t users; /* itself, its cgroups, its threads: then the record is free */
    uint32_t cpu_weight, idle;
    int64_t quota, period, burst, left, refills_at; /* ns; see quota.h. No quota: 0 */
};

static struct attune_cgroup ATTUNE_ARENA *ATTUNE_KEPT ATTUNE_ARENA attune_free_cgroups;
static struct attune_cgroup ATTUNE_ARENA *ATTUNE_KEPT ATTUNE_ARENA attune_root_cgroup;
/* Cgroups below the root. */
static uint32_t attune_branches;
static uint64_t ATTUNE_KEPT ATTUNE_ARENA attune_load_changes;

/* Under a lock: parts that were found before are not right any more. */
static inline void attune_loads_change(void)
{
#if ATTUNE_INSTANCES > 1
    __sync_fetch_and_add(&attune_load_changes, 1);
#else
    attune_load_changes++;
#endif
}

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

#define ATTUNE_LINGERERS 8
#define ATTUNE_LINGER    1000000ll
#define ATTUNE_NO_PART   UINT64_MAX

/* Threads of one instance that may linger: those that have `lingers` of their place here. */
struct attune_lingerers {
    int64_t looks_at; /* the next look at them, and at the scale */
    uint64_t next;
    int64_t since[ATTUNE_LINGERERS];
    struct thread ATTUNE_ARENA *thread[ATTUNE_LINGERERS];
};

static struct attune_lingerers ATTUNE_KEPT ATTUNE_ARENA attune_lingerers[ATTUNE_INSTANCES];

static inline int attune_asks_weight(uint32_t domain)
{
    return ATTUNE_WHICH(TAKES_WEIGHT) >> domain & 1;
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
ATTUNE_OUTLINE attune_count(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
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
    attune_loads_change();
    ATTUNE_RETURN;
}

ATTUNE_OUTLINE attune_uncount(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    uint32_t domain = attune_domain_of(&t->attune);
    uint64_t load = t->attune_task.counted;
    struct attune_cgroup ATTUNE_ARENA *of = t->attune_task.cgroup;
    t->attune_task.counted = 0;
    t->attune_task.lingers = 0;
    t->attune_task.found_at = ATTUNE_NO_PART;
    attune_add_load(&attune_crowds[domain].load, -load);
    for (; of && ATTUNE_MAY_LOOP; of = of->parent) {
        if (attune_add_load(&of->load[domain], -load) != load)
            break;
        load = of->weight;
    }
    attune_loads_change();
    ATTUNE_RETURN;
}

/* By one step at most: a thread's lead in virtual time, which it has from the time before, means
 * as much less or more of the CPU. */
ATTUNE_OUTLINE attune_rescale(struct attune_crowd ATTUNE_ARENA *crowd ATTUNE_IN_ARENA,
                              uint32_t domain)
{
    uint64_t top = attune_root_cgroup ? attune_root_cgroup->load[domain] : 0;
    uint64_t scaled = crowd->load >> (crowd->scale & 31);
    crowd->rescales_at = attune_answer.now + ATTUNE_RESCALES;
    if (scaled >= 2 * top && top && crowd->scale < ATTUNE_MOST_SCALE)
        crowd->scale++;
    else if (crowd->scale && scaled < top / 2)
        crowd->scale--;
    else
        ATTUNE_RETURN;
    attune_loads_change();
    ATTUNE_RETURN;
}

/* Under the lock: threads that have lingered long enough weigh nothing. */
ATTUNE_OUTLINE attune_look_at_crowd(void)
{
    struct attune_lingerers ATTUNE_ARENA *all = &attune_lingerers[attune_held()];
    int64_t now = attune_answer.now, next = now + ATTUNE_RESCALES;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_LINGERERS && ATTUNE_MAY_LOOP; i++) {
        struct thread ATTUNE_ARENA *t = all->thread[i];
        if (!t || t->attune_task.lingers != i + 1)
            continue;
        if (now - all->since[i] >= ATTUNE_LINGER)
            attune_uncount(t);
        else
            next = attune_earlier(next, all->since[i] + ATTUNE_LINGER);
    }
    all->looks_at = next;
    for (uint32_t domain = 0; domain < ATTUNE_DOMAINS; domain++)
        if (now >= attune_crowds[domain].rescales_at)
            attune_rescale(&attune_crowds[domain], domain);
    ATTUNE_RETURN;
}

/* Under the lock: the part of a thread that is counted, with its fraction. */
static inline uint64_t attune_find_part(const struct thread ATTUNE_ARENA *t, uint32_t domain)
{
    struct attune_cgroup ATTUNE_ARENA *of = t->attune_task.cgroup;
    uint64_t part = t->attune_task.weight;
    part <<= ATTUNE_PART_BITS + (attune_crowds[domain].scale & 15);
    for (; of && of->parent && ATTUNE_MAY_LOOP; of = of->parent)
        part = part * of->weight / of->load[domain];
    return part;
}

static inline void attune_tell_part(struct thread ATTUNE_ARENA *t, uint32_t domain)
{
#define ATTUNE_TELL_PART_ONE(of, ROLE, ending, t) \
    case of:                                      \
        attune_supply_part##ending(t);            \
        break;
    ATTUNE_IN_DOMAIN(domain, ATTUNE_TELL_PART_ONE, t);
}

#define ATTUNE_FRACTION ((1ull << ATTUNE_PART_BITS) - 1)

ATTUNE_OUTLINE attune_weigh_anew(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    uint32_t domain = attune_domain_of(&t->attune);
    uint64_t part;
    if (attune_answer.now >= attune_lingerers[attune_held()].looks_at)
        attune_look_at_crowd();
    own->lingers = 0;
    if (attune_branches ? !own->counted : own->counted) {
        if (own->counted)
            attune_uncount(t);
        else
            attune_count(t);
    }
    if (own->found_at != attune_load_changes) {
        own->found_at = attune_load_changes;
        own->exact = attune_branches ? attune_find_part(t, domain)
                                     : (uint64_t)own->weight << ATTUNE_PART_BITS;
    }
    part = own->exact + own->rest;
    own->rest = part & ATTUNE_FRACTION;
    part >>= ATTUNE_PART_BITS;
    own->part = part ? (uint32_t)part : 1;
    attune_tell_part(t, domain);
    ATTUNE_RETURN;
}

/* Under the lock, before the policy hears that the thread is ready. */
static inline void attune_weigh(struct thread ATTUNE_ARENA *t)
{
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    if (!attune_asks_weight(attune_domain_of(&t->attune)))
        return;
    if (own->found_at == attune_load_changes && !(own->exact & ATTUNE_FRACTION) &&
        attune_answer.now < attune_lingerers[attune_held()].looks_at)
        own->lingers = 0;
    else
        attune_weigh_anew(t);
}

/* Under the lock: its policy does not know it yet. */
static inline void attune_is_unweighed(struct thread ATTUNE_ARENA *t)
{
    t->attune_task.counted = 0;
    t->attune_task.lingers = 0;
    t->attune_task.found_at = ATTUNE_NO_PART;
}

/* Under the lock: it ends, goes away, or does not linger any more. */
static inline void attune_weighs_no_more(struct thread ATTUNE_ARENA *t)
{
    if (t->attune_task.counted)
        attune_uncount(t);
}

/* Under the lock: it blocks. */
static inline void attune_lingers(struct thread ATTUNE_ARENA *t)
{
    struct attune_lingerers ATTUNE_ARENA *all = &attune_lingerers[attune_held()];
    struct thread ATTUNE_ARENA *was;
    uint32_t place = all->next % ATTUNE_LINGERERS;
    if (!t->attune_task.counted)
        return;
    was = all->thread[place];
    if (was && was->attune_task.lingers == place + 1)
        attune_uncount(was);
    all->thread[place] = t;
    all->since[place] = attune_answer.now;
    all->next++;
    t->attune_task.lingers = (uint8_t)(place + 1);
    if (all->looks_at > attune_answer.now + ATTUNE_LINGER)
        all->looks_at = attune_answer.now + ATTUNE_LINGER;
}

/* Under the lock: the thread belongs to another cgroup, or has another weight, than before. */
static inline void attune_change_weight(struct thread ATTUNE_ARENA *t, uint32_t weight,
                                        struct attune_cgroup ATTUNE_ARENA *cgroup)
{
    uint8_t state = t->attune_task.state;
    attune_weighs_no_more(t);
    t->attune_task.found_at = ATTUNE_NO_PART;
    t->attune_task.weight = weight;
    t->attune_task.cgroup = cgroup;
    if (state == ATTUNE_READY || state == ATTUNE_RUNNING)
        attune_weigh(t);
}
#else
#define attune_weigh(t)          (void)0
#define attune_is_unweighed(t)   (void)0
#define attune_weighs_no_more(t) (void)0
#define attune_lingers(t)        (void)0

static inline void attune_change_weight(struct thread ATTUNE_ARENA *t, uint32_t weight,
                                        struct attune_cgroup ATTUNE_ARENA *cgroup)
{
    t->attune_task.weight = weight;
    t->attune_task.cgroup = cgroup;
}
#endif
