/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Several policies share the CPUs (domain.h). The engine's own policy is no more than this:
 *
 *     spent     on each CPU each domain has a virtual time: what its threads ran there, in inverse
 *               proportion to its share. All advance equally fast where each gets its part
 *     least     the smallest `spent` of the domains that want the CPU: the one whose turn it is,
 *               and those with something ready
 *     margin    the domain whose turn it is keeps the CPU until it is so far ahead of another one
 *               with something ready; the one that has had least comes then
 *     claim     a domain with nothing ready, or whose policy has no thread for this CPU, leaves it
 *               to the others; then what it may claim shrinks to one margin below `least`. So a
 *               thread that slept comes first when it wakes, for at most two margins, and what was
 *               left unused longer ago is lost. A domain that was made to wait loses nothing
 *     wanted    a policy that asks `preempt` of a CPU that another domain has, or when it loses
 *               the CPU, has it back at that time, if its domain is ahead by no more than half a
 *               margin: it runs ahead now and waits later, and shares are what they were
 *
 *                    least                 the turn's
 *            C         │    B                 │ A
 *     ───────┴─────────┴────┴─────────────────┴─┴────▶ spent
 *            ◀─margin──▶    ◀──────margin─────▶
 *
 * C sleeps: it is no further behind, so it comes as soon as it wakes. A has the CPU, and B comes
 * now. Invariant: the domain whose turn it is is at `least` or ahead of it; hence a domain that has
 * slept for long always comes at once.
 *
 * With two equal shares a margin of 4 ms makes turns of 4 ms. Each CPU is shared by itself: a
 * thread that may run on one CPU only has its domain's part of that CPU, whatever the domain has
 * elsewhere.
 *
 * When the CPU goes over, the policy that loses it is told `switch_out`, and `schedule` not before
 * it has the CPU again: the other one is asked first, so that no thread is switched out in vain.
 */
/* clang-format on */
#if ATTUNE_DOMAINS > 1

/* Set by the loader: parts of a domain's time, their sum, and the margin in virtual ns (virtual
 * time runs twice as fast as the clock while a domain with half the CPU runs). */
const volatile uint64_t attune_shares[ATTUNE_DOMAIN_ROOM] = {0};
const volatile uint64_t attune_all_shares = 1;
const volatile uint64_t attune_margin = 4000000;

static inline uint32_t attune_domain_here(const struct attune_cpu ATTUNE_ARENA *me)
{
    return attune_domain_index(me->domain);
}

static inline struct attune_domain ATTUNE_ARENA *attune_domain_at(uint32_t domain)
{
    return &attune_domains[attune_held()][domain];
}

/* From time of the clock to the domain's virtual time, and back. */
static inline int64_t attune_to_virtual(uint32_t domain, int64_t ran)
{
    uint64_t share = attune_shares[attune_domain_index(domain)];
    return (int64_t)((uint64_t)ran * attune_all_shares / (share ? share : 1));
}

static inline int64_t attune_from_virtual(uint32_t domain, int64_t ahead)
{
    uint64_t share = attune_shares[attune_domain_index(domain)];
    return (int64_t)((uint64_t)ahead * share / (attune_all_shares ? attune_all_shares : 1));
}

/* The domain claims no more than a margin from there. */
static inline void attune_bound(struct attune_cpu ATTUNE_ARENA *it, uint32_t domain, int64_t least)
{
    if (it->spent[domain] < least - (int64_t)attune_margin)
        it->spent[domain] = least - (int64_t)attune_margin;
}

/* Brings a CPU's account up to date. What was ready all the time loses nothing; any other domain
 * claims no more than a margin when it became ready, or now. */
ATTUNE_OUTLINE attune_charge(struct attune_cpu ATTUNE_ARENA *it ATTUNE_IN_ARENA, int64_t now)
{
    uint32_t here = attune_domain_here(it);
    int64_t since = it->since, own = it->spent[here], least = INT64_MAX;
    if (!it->running || now <= since) {
        if (!it->running)
            it->since = now;
        ATTUNE_RETURN;
    }
    for (uint32_t domain = 0; domain < ATTUNE_DOMAINS; domain++) {
        const struct attune_domain ATTUNE_ARENA *other = attune_domain_at(domain);
        if (domain != here && other->ready && other->ready_since <= since &&
            it->spent[domain] < least)
            least = it->spent[domain];
    }
    for (uint32_t domain = 0; domain < ATTUNE_DOMAINS; domain++) {
        const struct attune_domain ATTUNE_ARENA *other = attune_domain_at(domain);
        int64_t until = other->ready && other->ready_since < now ? other->ready_since : now, then;
        if (domain == here || (other->ready && other->ready_since <= since))
            continue;
        then = own + attune_to_virtual(here, until - since);
        attune_bound(it, domain, then < least ? then : least);
    }
    it->since = now;
    it->spent[here] = own + attune_to_virtual(here, now - since);
    attune_domain_at(here)->ran += (uint64_t)(now - since);
    ATTUNE_RETURN;
}

/* When another domain, which may not be ready, may have the CPU because its policy wants it. 0:
 * never. The account must be up to date. */
static inline int64_t attune_wanted_at(const struct attune_cpu ATTUNE_ARENA *it, uint32_t domain,
                                       int64_t now)
{
    uint32_t here = attune_domain_here(it);
    int64_t at = it->wanted[domain],
            ahead = it->spent[domain] - it->spent[here] - (int64_t)attune_margin / 2;
    if (at && at <= now && ahead > 0)
        at = now + attune_from_virtual(here, ahead) + 1;
    return at;
}

/* The domain that is to have the CPU now: of those with something ready whose turn it is, or whose
 * policy wants the CPU, the one that has had least; else the one that has it. Not one of `asked`, a
 * bit each. The account must be up to date. */
ATTUNE_OUTLINE attune_owed(const struct attune_cpu ATTUNE_ARENA *it ATTUNE_IN_ARENA, int64_t now,
                           uint64_t asked)
{
    uint32_t here = attune_domain_here(it), owed = here;
    int64_t own = it->spent[here], least = INT64_MAX;
    for (uint32_t domain = 0; domain < ATTUNE_DOMAINS; domain++) {
        int64_t spent = it->spent[domain], wanted;
        if (domain == here || asked >> domain & 1 || !attune_domain_at(domain)->ready ||
            spent >= least)
            continue;
        wanted = attune_wanted_at(it, domain, now);
        if (own < spent + (int64_t)attune_margin && (!wanted || wanted > now))
            continue;
        owed = domain;
        least = spent;
    }
    return (int)owed;
}

/* The domain that has had least, of those with something ready that are not `asked`;
 * ATTUNE_DOMAINS: none. */
ATTUNE_OUTLINE attune_poorest(const struct attune_cpu ATTUNE_ARENA *it ATTUNE_IN_ARENA,
                              uint64_t asked)
{
    uint32_t poorest = ATTUNE_DOMAINS;
    int64_t least = INT64_MAX;
    for (uint32_t domain = 0; domain < ATTUNE_DOMAINS; domain++) {
        int64_t spent = it->spent[domain];
        if (asked >> domain & 1 || !attune_domain_at(domain)->ready || spent >= least)
            continue;
        poorest = domain;
        least = spent;
    }
    return (int)poorest;
}

/* Notes when the turn may end. A domain that gets ready later and is owed the CPU then claims it.
 * The account must be up to date. */
ATTUNE_OUTLINE attune_set_turn(struct attune_cpu ATTUNE_ARENA *me ATTUNE_IN_ARENA, int64_t now)
{
    uint32_t here = attune_domain_here(me);
    int64_t turn = 0;
    for (uint32_t domain = 0; domain < ATTUNE_DOMAINS; domain++) {
        int64_t left = me->spent[domain] + (int64_t)attune_margin - me->spent[here];
        if (domain == here)
            continue;
        if (left > 0)
            turn = attune_earlier(turn, now + attune_from_virtual(here, left) + 1);
        else if (attune_domain_at(domain)->ready) /* its policy wanted no thread here */
            turn = attune_earlier(turn, now + (int64_t)attune_margin);
    }
    me->turn = turn;
    ATTUNE_RETURN;
}

/* Some of them were asked, and had no thread for this CPU, which `domain` has. The account must be
 * up to date. */
static inline void attune_pass_over(struct attune_cpu ATTUNE_ARENA *me, uint64_t asked,
                                    uint32_t domain, int64_t now)
{
    for (uint32_t other = 0; other < ATTUNE_DOMAINS; other++)
        if (other != domain && asked >> other & 1)
            attune_bound(me, other, me->spent[domain]);
    attune_set_turn(me, now);
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
    it->wanted[domain] = 0;
}

/* What runs there stops. What its policy asked for while it was told, it wants later if it is not
 * asked at once. No policy is asked while nothing is ready, so nothing of the stay may keep the
 * timer busy. */
static inline void attune_ends(struct attune_cpu ATTUNE_ARENA *it)
{
    it->wanted[attune_domain_here(it)] = it->preempt ? attune_answer.now : it->preempt_at;
    attune_charge(it, attune_answer.now);
    it->running = NULL;
    it->deadline = 0;
    it->turn = 0;
}

/* When the CPU's timer is needed; 0: not at all. */
static inline int64_t attune_end(const struct attune_cpu ATTUNE_ARENA *me)
{
    uint32_t here = attune_domain_here(me);
    int64_t at = attune_earlier(attune_earlier(me->turn, me->draught_ends),
                                attune_earlier(me->deadline, me->preempt_at));
    for (uint32_t domain = 0; domain < ATTUNE_DOMAINS; domain++)
        if (domain != here && me->wanted[domain] && attune_domain_at(domain)->ready)
            at = attune_earlier(at, attune_wanted_at(me, domain, me->since));
    return at;
}

/* For the timer: no thread waits for the turn's end. */
static inline void attune_look_at_turn(struct attune_cpu ATTUNE_ARENA *me, int64_t now)
{
    uint32_t here = attune_domain_here(me);
    if (!me->turn || me->turn > now)
        return;
    for (uint32_t domain = 0; domain < ATTUNE_DOMAINS; domain++)
        if (domain != here && attune_domain_at(domain)->ready)
            return;
    me->turn = 0;
}

/* Under the lock, before it is counted as ready. */
static inline void attune_note_ready(uint32_t domain)
{
    if (!attune_domain_at(domain)->ready)
        attune_domain_at(domain)->ready_since = attune_answer.now;
}

#else
#define attune_begins(me, thread) (void)0
#define attune_stay_ends(it)      (void)0
#define attune_asks(it, domain)   (void)0
#define attune_ends(it)           ((it)->running = NULL)
#define attune_end(me) \
    attune_earlier(attune_earlier((me)->deadline, (me)->preempt_at), (me)->draught_ends)
#define attune_look_at_turn(me, now) (void)0
#define attune_note_ready(domain)    (void)0
#endif

/* Threads of an instance that are ready. */
static inline uint64_t attune_ready_in(uint32_t instance)
{
    uint64_t ready = 0;
    for (uint32_t domain = 0; domain < ATTUNE_DOMAINS; domain++)
        ready += attune_domains[instance][domain].ready;
    return ready;
}

static inline uint64_t attune_all_ready(void)
{
    return attune_ready_in(attune_held());
}
