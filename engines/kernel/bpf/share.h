/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Two policies share the CPUs: one has the threads of a command, the other has all others. The
 * engine's own policy is no more than this:
 *
 *     spent     on each CPU each domain has a virtual time: what its threads ran there, in inverse
 *               proportion to its share. Both advance equally fast where each gets its part
 *     margin    the domain whose turn it is keeps the CPU until it is so far ahead of the other one
 *     claim     a domain with nothing ready, or whose policy has no thread for this CPU, leaves it
 *               to the other; then what it may claim shrinks to one margin. So a thread that slept
 *               comes first when it wakes, for at most two margins, and what was left unused longer
 *               ago is lost. A domain that was made to wait loses nothing
 *     wanted    a policy that asks `preempt` of a CPU that the other domain has, or when it loses
 *               the CPU, has it back at that time, if its domain is ahead by no more than half a
 *               margin: it runs ahead now and waits later, and shares are what they were
 *
 * With equal shares a margin of 4 ms makes turns of 4 ms. Each CPU is shared by itself: a thread
 * that may run on one CPU only has its domain's part of that CPU, whatever the domain has
 * elsewhere.
 *
 * When the CPU goes over, the policy that loses it is told `switch_out`, and `schedule` not before
 * it has the CPU again: the other one is asked first, so that no thread is switched out in vain.
 */
/* clang-format on */
enum attune_domain_name { ATTUNE_COMMAND, ATTUNE_OTHERS };

#if ATTUNE_DOMAINS > 1

/* Set by the loader: parts of a domain's time, and the margin in virtual ns (virtual time runs
 * twice as fast as the clock while a domain with half the CPU runs). */
const volatile uint64_t attune_shares[ATTUNE_DOMAINS] = {1, 1};
const volatile uint64_t attune_margin = 4000000;

static inline uint32_t attune_domain_of(const struct attune_thread ATTUNE_ARENA *t)
{
    return attune_task(t)->domain & 1;
}

static inline uint32_t attune_domain_here(const struct attune_cpu ATTUNE_ARENA *me)
{
    return me->domain & 1;
}

static inline uint64_t attune_all_shares(void)
{
    return attune_shares[0] + attune_shares[1];
}

/* The domain's threads have run there until then. */
static inline void attune_spend(struct attune_cpu ATTUNE_ARENA *it, uint32_t domain, int64_t until)
{
    int64_t ran = until - it->since;
    if (ran <= 0)
        return;
    it->since = until;
    it->spent[domain] += (int64_t)((uint64_t)ran * attune_all_shares() /
                                   (attune_shares[domain] ? attune_shares[domain] : 1));
    attune_domains[attune_held()][domain].ran += (uint64_t)ran;
}

/* The other domain has left the CPU to this one: it claims no more than a margin. */
static inline void attune_bound(struct attune_cpu ATTUNE_ARENA *it, uint32_t domain)
{
    int64_t least = it->spent[domain] - (int64_t)attune_margin;
    if (it->spent[!domain] < least)
        it->spent[!domain] = least;
}

/* Brings a CPU's account up to date. */
static __attribute__((noinline)) void attune_charge(struct attune_cpu ATTUNE_ARENA *it, int64_t now)
{
    uint32_t domain = attune_domain_here(it);
    struct attune_domain ATTUNE_ARENA *other = &attune_domains[attune_held()][!domain];
    if (!it->running) {
        it->since = now;
        return;
    }
    if (other->ready && other->ready_since > it->since) {
        attune_spend(it, domain, other->ready_since < now ? other->ready_since : now);
        attune_bound(it, domain);
    }
    attune_spend(it, domain, now);
    if (!other->ready)
        attune_bound(it, domain);
}

/* When the other domain, which may not be ready, may have the CPU because its policy wants it. 0:
 * never. The account must be up to date. */
static inline int64_t attune_wanted_at(const struct attune_cpu ATTUNE_ARENA *it, int64_t now)
{
    uint32_t domain = attune_domain_here(it);
    int64_t at = it->wanted[!domain],
            ahead = it->spent[!domain] - it->spent[domain] - (int64_t)attune_margin / 2;
    if (at && at <= now && ahead > 0)
        at = now +
             (int64_t)((uint64_t)ahead * attune_shares[domain] /
                       (attune_all_shares() ? attune_all_shares() : 1)) +
             1;
    return at;
}

/* It is the other domain's turn, or its policy wants the CPU, and a thread there is ready. The
 * account must be up to date. */
static inline int attune_is_owed(const struct attune_cpu ATTUNE_ARENA *it, int64_t now)
{
    uint32_t domain = attune_domain_here(it);
    int64_t wanted;
    if (!attune_domains[attune_held()][!domain].ready)
        return 0;
    wanted = attune_wanted_at(it, now);
    return it->spent[domain] >= it->spent[!domain] + (int64_t)attune_margin ||
           (wanted && wanted <= now);
}

/* Notes when the turn ends. A domain that gets ready later and is owed the CPU then claims it. The
 * account must be up to date. */
static inline void attune_set_turn(struct attune_cpu ATTUNE_ARENA *me, int64_t now)
{
    uint32_t domain = attune_domain_here(me);
    int64_t left = me->spent[!domain] + (int64_t)attune_margin - me->spent[domain];
    if (left > 0)
        me->turn = now +
                   (int64_t)((uint64_t)left * attune_shares[domain] /
                             (attune_all_shares() ? attune_all_shares() : 1)) +
                   1;
    else
        /* its policy wanted no thread here */
        me->turn = attune_domains[attune_held()][!domain].ready ? now + (int64_t)attune_margin : 0;
}

/* The thread has the CPU from now on. */
static inline void attune_begins(struct attune_cpu ATTUNE_ARENA *me,
                                 const struct attune_thread ATTUNE_ARENA *t)
{
    int64_t now = attune_answer.now;
    me->domain = attune_domain_of(t);
    me->since = now;
    attune_set_turn(me, now);
}

/* What was asked of the thread that stops. */
static inline void attune_stay_ends(struct attune_cpu ATTUNE_ARENA *it)
{
    it->preempt = 0;
    it->preempt_at = 0;
}

/* The domain's policy is asked. */
static inline void attune_asks(struct attune_cpu ATTUNE_ARENA *it, uint32_t domain)
{
    it->wanted[domain & 1] = 0;
}

/* What runs there stops. What its policy asked for while it was told, it wants later if it is not
 * asked at once. */
static inline void attune_ends(struct attune_cpu ATTUNE_ARENA *it)
{
    it->wanted[attune_domain_here(it)] = it->preempt ? attune_answer.now : it->preempt_at;
    attune_charge(it, attune_answer.now);
    it->running = NULL;
    it->turn = 0;
}

/* When the CPU's timer is needed; 0: not at all. */
static inline int64_t attune_end(const struct attune_cpu ATTUNE_ARENA *me)
{
    int64_t wanted = attune_domains[attune_held()][!attune_domain_here(me)].ready
                         ? attune_wanted_at(me, me->since)
                         : 0;
    return attune_earlier(attune_earlier(attune_earlier(me->turn, wanted), me->draught_ends),
                          attune_earlier(me->deadline, me->preempt_at));
}

/* For the timer: no thread waits for the turn's end. */
static inline void attune_look_at_turn(struct attune_cpu ATTUNE_ARENA *me, int64_t now)
{
    if (me->turn && me->turn <= now &&
        !attune_domains[attune_held()][!attune_domain_here(me)].ready)
        me->turn = 0;
}

/* Under the lock, before it is counted as ready. */
static inline void attune_note_ready(uint32_t domain)
{
    if (!attune_domains[attune_held()][domain].ready)
        attune_domains[attune_held()][domain].ready_since = attune_answer.now;
}

#else
#define attune_domain_of(thread)  0
#define attune_begins(me, thread) (void)0
#define attune_stay_ends(it)      (void)0
#define attune_asks(it, domain)   (void)0
#define attune_ends(it)           ((it)->running = NULL)
#define attune_end(me) \
    attune_earlier(attune_earlier((me)->deadline, (me)->preempt_at), (me)->draught_ends)
#define attune_look_at_turn(me, now) (void)0
#define attune_note_ready(domain)    (void)0
#endif

/* Threads that are ready. */
static inline uint64_t attune_all_ready(void)
{
    uint64_t ready = attune_domains[attune_held()][0].ready;
#if ATTUNE_DOMAINS > 1
    ready += attune_domains[attune_held()][1].ready;
#endif
    return ready;
}
