/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Finds until when a thread waits whose program tells no engine: from the timers that it starts.
 *
 *     clock_nanosleep, poll, select,     a timer that wakes its thread (hrtimer_wakeup): stands
 *     epoll_wait, futex with a time-out  while the thread blocks, and is cancelled if it wakes for
 *                                        another reason
 *     timerfd_settime, or reading a      a timer of a descriptor (timerfd_tmrproc): stands until it
 *     periodic one                       expires or is disarmed, also while its thread computes
 *
 * A thread starts its timers itself, and runs then: `timeouts` in its record is its own, without a
 * lock. The policy hears of it (attune_hear) when it hears of the thread, through imports of its
 * own: `next_release`, the earliest that stands; `polls`, how often one was started; `implicit`, 1.
 * A thread that supplies these itself is believed instead.
 *
 * Arming a timerfd counts as `sched_yield`: the previous timer has been served, and an event loop
 * that knows of cooperation would poll there. A thread that blocks needs no such thing.
 *
 * A release is what the program asked for, without the slack that the kernel may add.
 *
 * The two programs that listen are loaded for `--implicit` only.
 */
/* clang-format on */
#ifdef ATTUNE_IMPLICIT

/* Set by the loader: the kernel's functions that tell these timers from all others. */
const volatile uint64_t attune_wakes_sleeper = 0, attune_wakes_descriptor = 0;

/* Written out, since the verifier would go round a loop too often. */
#define ATTUNE_EACH_ARMED(i) \
    _Pragma("clang loop unroll(full)") for (int i = 0; i < ATTUNE_ARMED; i++)

/* The record of the thread that runs. NULL: it is not one of ours. */
static inline struct thread ATTUNE_ARENA *attune_own_record(void)
{
    return (struct thread ATTUNE_ARENA *)bpf_get_current_task_btf()->scx.dsq_vtime;
}

static inline void attune_start_timeouts(struct thread ATTUNE_ARENA *t)
{
    struct attune_timeouts ATTUNE_ARENA *own = &t->attune_task.timeouts;
    own->told = 0;
    own->sleeper = 0;
    own->release = own->sleeps_until = 0;
    ATTUNE_EACH_ARMED(i)
    {
        own->armed[i].timer = 0;
        own->armed[i].at = 0;
    }
}

/* The earliest that stands. What has expired is done with: the thread was there to see it. */
static inline void attune_find_release(struct attune_timeouts ATTUNE_ARENA *own, int64_t now)
{
    int64_t release;
    if (own->sleeps_until <= now)
        own->sleeps_until = 0;
    release = own->sleeps_until;
    ATTUNE_EACH_ARMED(i)
    {
        if (own->armed[i].at <= now)
            own->armed[i].at = 0;
        release = attune_earlier(release, own->armed[i].at);
    }
    own->release = release;
}

/* A descriptor's timer has its old place, or that of one that is over, or of the one that is
 * furthest away. */
static inline void attune_arms(struct attune_timeouts ATTUNE_ARENA *own, uint64_t timer, int64_t at)
{
    int place = 0;
    ATTUNE_EACH_ARMED(i)
    {
        if (own->armed[i].timer == timer) {
            place = i;
            break;
        }
        if (own->armed[place].at && (!own->armed[i].at || own->armed[i].at > own->armed[place].at))
            place = i;
    }
    own->armed[place].timer = timer;
    own->armed[place].at = at;
}

/* The thread that runs, if the policy chose it. */
static inline void attune_yields(struct thread ATTUNE_ARENA *t)
{
    uint32_t cpu = bpf_get_smp_processor_id();
    if (attune_cpus[cpu].running == t) {
        t->attune_task.yielded = 1;
        attune_kick(cpu);
    }
}

ATTUNE_SECTION("tp_btf/hrtimer_start") int32_t attune_timer_starts(unsigned long long *context)
{
    struct hrtimer *timer = (void *)context[0];
    uint64_t function = (uint64_t)timer->function;
    struct attune_timeouts ATTUNE_ARENA *own;
    struct thread ATTUNE_ARENA *t;
    int64_t at;
    if (function != attune_wakes_sleeper && function != attune_wakes_descriptor)
        return 0;
    ATTUNE_USES_ARENA;
    t = attune_own_record();
    if (!t)
        return 0;
    own = &t->attune_task.timeouts;
    at = timer->_softexpires - timer->base->offset;
    if (function == attune_wakes_sleeper) {
        own->sleeper = (uint64_t)timer;
        own->sleeps_until = at;
    } else {
        attune_arms(own, (uint64_t)timer, at);
        /* It has seen the time before: as if it yielded. */
        attune_yields(t);
    }
    own->told++;
    attune_find_release(own, attune_clock());
    return 0;
}

ATTUNE_SECTION("tp_btf/hrtimer_cancel") int32_t attune_timer_ends(unsigned long long *context)
{
    struct hrtimer *timer = (void *)context[0];
    uint64_t function = (uint64_t)timer->function;
    struct attune_timeouts ATTUNE_ARENA *own;
    struct thread ATTUNE_ARENA *t;
    if (function != attune_wakes_sleeper && function != attune_wakes_descriptor)
        return 0;
    ATTUNE_USES_ARENA;
    t = attune_own_record();
    if (!t)
        return 0;
    own = &t->attune_task.timeouts;
    if (attune_clock() >= own->release)
        /* it expires, whatever runs; the policy will want to know when it was */
        return 0;
    if (own->sleeper == (uint64_t)timer)
        own->sleeps_until = 0;
    ATTUNE_EACH_ARMED(i)
    {
        if (own->armed[i].timer == (uint64_t)timer)
            own->armed[i].at = 0;
    }
    attune_find_release(own, attune_clock());
    return 0;
}

/* Under the lock: the thread blocks, so it has seen what expired. */
static inline void attune_pass_releases(struct thread ATTUNE_ARENA *t)
{
    struct attune_timeouts ATTUNE_ARENA *own = &t->attune_task.timeouts;
    if (own->release && own->release <= attune_answer.now)
        attune_find_release(own, attune_answer.now);
}

/* Under the lock: what the policy learns of a thread that it is about to be told of. */
static inline void attune_tell_thread(struct thread ATTUNE_ARENA *t)
{
#define ATTUNE_TELL_ONE(of, ROLE, ending, t) \
    case of:                                 \
        if (ATTUNE_##ROLE##TAKES_TIMEOUTS)   \
            attune_tell##ending(t);          \
        break;
    if (attune_wakes_sleeper)
        ATTUNE_IN_DOMAIN(attune_domain_of(&t->attune), ATTUNE_TELL_ONE, t);
}
#else
#define attune_start_timeouts(t) (void)0
#define attune_pass_releases(t)  (void)0
#define attune_tell_thread(t)    (void)0
#endif

/* Under the lock: all that tables and processes say of the thread, and the kernel. */
static inline void attune_hear(struct thread ATTUNE_ARENA *t)
{
    attune_read_tables(t);
    attune_exchange_values(t);
    attune_tell_thread(t);
}
