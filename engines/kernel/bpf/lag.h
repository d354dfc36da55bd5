/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * What each thread received of the machine, and what it should have had: its lag, by which
 * balance.h moves threads between instances. The engine's own books; no policy sees them.
 *
 *     service     time for which the policy gave it a CPU
 *     runnable    time in which it ran or was ready
 *     level       grows at the machine's pace: the service that a weight of 1 should have had
 *     due         since it was settled: weight * (level now - level then), at most `runnable`
 *     lag         sum of due - service; positive: it should have had more
 *
 * A thread is settled when it wakes in another period than it was settled in last, and while it is
 * runnable by the first choice of its instance in each period. So one that sleeps most of the time
 * is due what it wanted, and gathers no lead.
 *
 * The pace is such that all lags add up to 0: the service of the last period is divided by weight
 * among threads that are not due their whole runnable time (one step of Newton's method a period,
 * from sums that instances keep as they settle), and an eighth of what the lags add up to is taken
 * back.
 *
 * Invariant, under the instance's lock: `load` of its book is the sum of its threads' `load`, and a
 * thread has one exactly if it is READY or RUNNING. Another CPU reads a book without the lock, as a
 * hint. Times are in ns.
 */
/* clang-format on */
#if ATTUNE_INSTANCES > 1

/* How often service is compared. */
#define ATTUNE_PERIOD      10000000ll
/* A lag that no move can mend says nothing more by growing. */
#define ATTUNE_LONGEST_LAG 1000000000ll
/* Longer spans are cut, so that no product below overflows. */
#define ATTUNE_LONGEST     (1ll << 32)
/* Binary digits behind the point: of the pace, and of the level. */
#define ATTUNE_PACE_BITS   32
#define ATTUNE_LEVEL_BITS  24
/* Spans times weights are counted in units of 1 << 8. */
#define ATTUNE_SPAN_BITS   8
#define ATTUNE_FASTEST     (1ull << 31)
/* The part of the sum of lags that is taken back in a period. */
#define ATTUNE_TAKEN_BACK  8

/* From `at` on the level grows by `rate` a nanosecond. */
struct attune_pace {
    int64_t at;
    uint64_t level, rate;
};

/* Sums over all settlements so far: service; what threads were due that were due their whole
 * runnable time; weight times span of the other ones, and of all. */
struct attune_sums {
    uint64_t served, sated, wanting, all;
};

struct attune_book {
    int64_t load;       /* weight of its runnable threads */
    int64_t load_since; /* when that changed last */
    uint64_t area;      /* weight times time so far */
    uint64_t area_then; /* when it was settled last */
    int64_t mean;       /* the load over some periods, which a kernel thread hardly changes */
    struct attune_sums sums;
    int64_t lags;            /* changes of its threads' lags, over all periods */
    int64_t settled;         /* when its threads were last settled together */
    int64_t lowest, highest; /* lags at that time */
    int64_t rests_until;     /* it takes part in no move before; see balance.h */
} __attribute__((aligned(64)));

static struct attune_book ATTUNE_ARENA attune_books[ATTUNE_INSTANCES];
/* The one that counts, and the next one as it is written. */
static struct attune_pace ATTUNE_ARENA attune_paces[2];
static uint64_t ATTUNE_ARENA attune_pace_number;
static int64_t ATTUNE_ARENA attune_next_pace;
/* When the pace was last set. */
static struct attune_sums ATTUNE_KEPT ATTUNE_ARENA attune_sums_then;

static inline struct attune_pace ATTUNE_ARENA *attune_pace(void)
{
    return &attune_paces[*(volatile uint64_t ATTUNE_ARENA *)&attune_pace_number & 1];
}

static inline int64_t attune_within(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static inline uint64_t attune_level_at(int64_t now)
{
    struct attune_pace ATTUNE_ARENA *pace = attune_pace();
    uint64_t past = (uint64_t)attune_within(now - pace->at, 0, ATTUNE_LONGEST);
    return pace->level + (pace->rate * past >> (ATTUNE_PACE_BITS - ATTUNE_LEVEL_BITS));
}

/* As the policy sees it: threads of one that does not ask for weights weigh the same. At the
 * machine's pace a thread may be due more than a CPU. */
static inline uint32_t attune_weight_in_books(const struct thread ATTUNE_ARENA *t)
{
#ifdef ATTUNE_WEIGHED
    uint32_t weight = t->attune_task.part;
    return weight ? weight : 1;
#else
    return 1024;
#endif
}

/* Its weight beside others of its instance: no more than what is due one CPU, for it keeps no more
 * than one from them. */
static inline int64_t attune_weight_beside(const struct thread ATTUNE_ARENA *t)
{
    uint64_t weight = attune_weight_in_books(t), rate = attune_pace()->rate;
    uint64_t most = rate ? (1ull << ATTUNE_PACE_BITS) / rate : weight;
    return (int64_t)(weight <= most ? weight : most ? most : 1);
}

/* Under the lock: the load of its instance changes. */
static inline void attune_change_load(int64_t change)
{
    struct attune_book ATTUNE_ARENA *book = &attune_books[attune_held()];
    int64_t now = attune_answer.now;
    book->area += (uint64_t)(book->load * (now - book->load_since)) >> ATTUNE_SPAN_BITS;
    book->load_since = now;
    book->load += change;
}

/* Under the lock, once in a period: what the load was since the last time, and before. */
static inline void attune_note_mean(struct attune_book ATTUNE_ARENA *book, int64_t now)
{
    uint64_t area, span = (uint64_t)(now - book->settled) >> ATTUNE_SPAN_BITS;
    attune_change_load(0);
    area = book->area - book->area_then;
    book->area_then = book->area;
    if (span)
        book->mean += ((int64_t)(area / span) - book->mean) / 4;
    book->settled = now;
}

/* Under the lock of its instance: brings a thread's lag up to date. */
ATTUNE_OUTLINE attune_settle_lag(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    struct attune_account ATTUNE_ARENA *account = &t->attune_task.account;
    struct attune_book ATTUNE_ARENA *book = &attune_books[attune_held()];
    int64_t now = attune_answer.now, due, lag;
    uint64_t level = attune_level_at(now), grown = level - account->level;
    uint64_t weight = attune_weight_in_books(t), runnable, span;
    if (account->load) {
        account->runnable += now - account->runnable_from;
        account->runnable_from = now;
        attune_change_load(attune_weight_beside(t) - account->load);
        account->load = attune_weight_beside(t);
    }
    if (account->serves_from) {
        account->service += now - account->serves_from;
        account->serves_from = now;
    }
    runnable = (uint64_t)attune_within(account->runnable, 0, ATTUNE_LONGEST);
    if (runnable) {
        span =
            (uint64_t)attune_within(now - account->settled, 0, ATTUNE_LONGEST) >> ATTUNE_SPAN_BITS;
        if ((int64_t)grown < 0)
            grown = 0;
        if (grown > (runnable << ATTUNE_LEVEL_BITS) / weight) {
            due = (int64_t)runnable;
            book->sums.sated += runnable;
        } else {
            due = (int64_t)(grown * weight >> ATTUNE_LEVEL_BITS);
            book->sums.wanting += span * weight;
        }
        book->sums.all += span * weight;
        book->sums.served += (uint64_t)account->service;
        lag = attune_within(account->lag + due - account->service, -ATTUNE_LONGEST_LAG,
                            ATTUNE_LONGEST_LAG);
        book->lags += lag - account->lag;
        account->lag = lag;
    }
    account->runnable = account->service = 0;
    account->settled = now;
    account->level = level;
    ATTUNE_RETURN;
}

/* The policy meets it. */
static inline void attune_open_account(struct thread ATTUNE_ARENA *t)
{
    struct attune_account ATTUNE_ARENA *account = &t->attune_task.account;
    account->lag = account->load = account->runnable = account->service = 0;
    account->serves_from = 0;
    account->settled = attune_answer.now;
    account->level = attune_level_at(attune_answer.now);
}

/* It runs or is ready from now on. */
static inline void attune_counts(struct thread ATTUNE_ARENA *t)
{
    struct attune_account ATTUNE_ARENA *account = &t->attune_task.account;
    if (account->load)
        return;
    if (account->settled < attune_pace()->at)
        attune_settle_lag(t);
    account->load = attune_weight_beside(t);
    account->runnable_from = attune_answer.now;
    attune_change_load(account->load);
}

/* It waits, ends, or goes to another instance. */
static inline void attune_counts_no_more(struct thread ATTUNE_ARENA *t)
{
    struct attune_account ATTUNE_ARENA *account = &t->attune_task.account;
    if (!account->load)
        return;
    account->runnable += attune_answer.now - account->runnable_from;
    attune_change_load(-account->load);
    account->load = 0;
}

static inline void attune_is_served(struct thread ATTUNE_ARENA *t)
{
    t->attune_task.account.serves_from = attune_answer.now;
    t->attune_task.account.sent = 0;
}

static inline void attune_was_served(struct thread ATTUNE_ARENA *t)
{
    struct attune_account ATTUNE_ARENA *account = &t->attune_task.account;
    if (account->serves_from)
        account->service += attune_answer.now - account->serves_from;
    account->serves_from = 0;
}

/* The lags of the others add up to 0 from now on. */
static inline void attune_close_account(struct thread ATTUNE_ARENA *t)
{
    attune_counts_no_more(t);
    attune_books[attune_held()].lags -= t->attune_task.account.lag;
    t->attune_task.account.lag = 0;
}

/* Whether an instance with this load has less of it for each CPU than another one with that. */
static inline int attune_is_lighter(uint32_t one, int64_t load, uint32_t other, int64_t other_load)
{
    return load * (int64_t)attune_there[other] < other_load * (int64_t)attune_there[one];
}

/* How fast the level is to grow: `last` is what was settled in the period that is over, `lags` the
 * sum of all lags. */
static inline uint64_t attune_next_rate(const struct attune_sums *last, int64_t lags, uint64_t rate)
{
    uint64_t wanting = last->wanting ? last->wanting : last->all, least, back;
    int64_t left = (int64_t)(last->served - last->sated);
    const int bits = ATTUNE_PACE_BITS - ATTUNE_SPAN_BITS;
    if (!last->all)
        return rate;
    /* Without a thread that wants more, the pace is right or too fast. */
    if (!last->wanting && -left <= (int64_t)(last->served / 16))
        return rate;
    least = ((uint64_t)attune_within((int64_t)last->served, 0, 1ll << 38) << bits) / last->all;
    rate = ((uint64_t)attune_within(left, 0, 1ll << 38) << bits) / wanting;
    if (rate < least)
        rate = least;
    back = ((uint64_t)attune_within(lags < 0 ? -lags : lags, 0, 1ll << 38) << bits) / wanting /
           ATTUNE_TAKEN_BACK;
    if (lags < 0)
        rate += back < rate ? back : rate;
    else
        rate -= back < rate / 2 ? back : rate / 2;
    return rate < ATTUNE_FASTEST ? rate : ATTUNE_FASTEST;
}

/* Without a lock, by each CPU as it chooses: one of them sets the pace when a period is over. */
static __attribute__((noinline)) void attune_set_pace(int64_t now)
{
    int64_t next = attune_next_pace, lags = (int64_t)ATTUNE_ZERO;
    struct attune_sums now_sums = {}, last;
    struct attune_pace ATTUNE_ARENA *pace;
    if (now < next ||
        __sync_val_compare_and_swap(&attune_next_pace, next, now + ATTUNE_PERIOD) != next)
        return;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP; i++) {
        struct attune_book ATTUNE_ARENA *book = &attune_books[i];
        now_sums.served += book->sums.served;
        now_sums.sated += book->sums.sated;
        now_sums.wanting += book->sums.wanting;
        now_sums.all += book->sums.all;
        lags += book->lags;
    }
    last.served = now_sums.served - attune_sums_then.served;
    last.sated = now_sums.sated - attune_sums_then.sated;
    last.wanting = now_sums.wanting - attune_sums_then.wanting;
    last.all = now_sums.all - attune_sums_then.all;
    attune_sums_then.served = now_sums.served;
    attune_sums_then.sated = now_sums.sated;
    attune_sums_then.wanting = now_sums.wanting;
    attune_sums_then.all = now_sums.all;
    pace = &attune_paces[(attune_pace_number + 1) & 1];
    pace->at = now;
    pace->level = attune_level_at(now);
    pace->rate = attune_next_rate(&last, lags, attune_pace()->rate);
    __sync_fetch_and_add(&attune_pace_number, 1);
}
#else
#define attune_open_account(t)   (void)0
#define attune_counts(t)         (void)0
#define attune_counts_no_more(t) (void)0
#define attune_is_served(t)      (void)0
#define attune_was_served(t)     (void)0
#define attune_close_account(t)  (void)0
#endif
