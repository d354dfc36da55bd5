/* The engine's core: which thread runs, and in which order the policy hears of what happens.
 *
 *      create --> READY --dispatched--> running --blocks--> WAITING
 *                   ^                      |                   |
 *                   +------- yields -------+                   |
 *                   +------ what it waited for has come -------+
 *
 * Events from outside (ticks, interrupts) are told while a thread counts as running, just before it
 * stops, or one at a time on the idle processor, where `schedule` follows each: so nothing stands
 * between `switch_out` and `schedule`. Handlers run on the stack of the thread that stops.
 *
 * Invariants: while a thread executes, attune_running is that thread, and it counts as READY; a
 * WAITING thread is in the list of a semaphore, or its wake_timer is set, or both. Whatever comes
 * from outside, or may be due at once, sets attune_raised: while it is 0, no timer is due and
 * attune_clock is up to date.
 */

#ifndef ATTUNE_PORT
#error "attune: no port for this processor: there is one for Cortex-M, x86-64 and AArch64"
#endif

/* All of libc that the engine calls; a compiler may call memset as well. */
void *memcpy(void *to, const void *from, size_t size);

static struct thread attune_pool[ATTUNE_THREADS];
static struct thread *attune_running;
static void *attune_main_stack;
static uint32_t attune_created, attune_living;
/* Counted by the interrupt handler; attune_clock follows it with 64 bits. */
static volatile uint32_t attune_ticked;
static uint64_t attune_clock;
/* Something came from outside: a tick, a gift; a semaphore was given by an interrupt handler. */
static volatile uint8_t attune_raised, attune_given;
static struct attune_semaphore *attune_semaphores;

#define ATTUNE_PATTERN 0xa77e57acu

/* What a switch does is one function, unless the firmware wants to be small; what seldom happens
 * stays outside it. */
#ifdef __OPTIMIZE_SIZE__
#define ATTUNE_SWITCH static
#else
#define ATTUNE_SWITCH static inline __attribute__((always_inline))
#endif
#define ATTUNE_SELDOM __attribute__((noinline, cold))

ATTUNE_SELDOM static void attune_fail_at(const char *file, uint32_t line, uint32_t column,
                                         const char *what, const struct attune_thread *thread)
{
    struct attune_failure failure = {file, line, column, what, thread ? (uint32_t)thread->id : 0};
    attune_mask();
    attune_failed(&failure);
    for (;;) {
    }
}

__attribute__((weak)) void attune_failed(const struct attune_failure *failure)
{
    (void)failure;
    for (;;) {
    }
}

static void attune_halt(struct attune_instance *instance, attune_place check,
                        const struct attune_thread *thread)
{
    (void)instance;
    attune_fail_at(check->file, check->line, check->column, check->what, thread);
}

/* A failure of the policy that no check stands for: the place is the thread's last transfer. */
ATTUNE_SELDOM static void attune_blame(const struct thread *thread, const char *what)
{
    uint32_t line = thread->attune.line & ((1u << ATTUNE_FILE_ABOVE) - 1);
    attune_fail_at(attune_files[thread->attune.line >> ATTUNE_FILE_ABOVE], line, line != 0, what,
                   &thread->attune);
}

static void attune_read_clock(void)
{
    attune_clock += (uint32_t)(attune_ticked - (uint32_t)attune_clock);
}

#define ATTUNE_CALL(EVENT, about) ATTUNE_ON_##EVENT(attune, (struct attune_thread *)(about))

/* Before a handler: the time, as it was read last. */
static void attune_begin_call(void)
{
#if ATTUNE_TELLS_TIME
    attune->now = (int64_t)(attune_clock * ATTUNE_TICK_NS);
#endif
}

/* ---- Timers: a list, the earliest first ---- */

static struct thread *attune_sleepers;
#if ATTUNE_HAS_ALARM
static struct thread *attune_alarms;
#endif

#define ATTUNE_TIMER_FUNCTIONS(name, list, member)                 \
    static void name##_cancel(struct thread *t)                    \
    {                                                              \
        struct thread **at = &list;                                \
        if (!t->attune_own.member.set)                             \
            return;                                                \
        while (*at != t)                                           \
            at = &(*at)->attune_own.member.next;                   \
        *at = t->attune_own.member.next;                           \
        t->attune_own.member.set = 0;                              \
    }                                                              \
    static void name##_set(struct thread *t, int64_t when)         \
    {                                                              \
        struct thread **at = &list;                                \
        name##_cancel(t);                                          \
        while (*at && (*at)->attune_own.member.at <= when)         \
            at = &(*at)->attune_own.member.next;                   \
        t->attune_own.member.at = when;                            \
        t->attune_own.member.next = *at;                           \
        t->attune_own.member.set = 1;                              \
        *at = t;                                                   \
    }                                                              \
    static struct thread *name##_due(void)                         \
    {                                                              \
        struct thread *t = list;                                   \
        if (!t || t->attune_own.member.at > (int64_t)attune_clock) \
            return NULL;                                           \
        name##_cancel(t);                                          \
        return t;                                                  \
    }

ATTUNE_TIMER_FUNCTIONS(attune_wake_timer, attune_sleepers, wake_timer)
#if ATTUNE_HAS_ALARM
ATTUNE_TIMER_FUNCTIONS(attune_alarm_timer, attune_alarms, alarm_timer)

/* At the first tick that is not before the time; a time that is not positive cancels. */
static void attune_alarm(struct attune_thread *thread, int64_t at)
{
    struct thread *t = ATTUNE_RECORD(thread);
    if (at <= 0)
        attune_alarm_timer_cancel(t);
    else
        attune_alarm_timer_set(t, at / ATTUNE_TICK_NS + (at % ATTUNE_TICK_NS != 0));
    attune_raised = 1;
}
#else
static inline void attune_alarm(struct attune_thread *thread, int64_t at)
{
    (void)thread;
    (void)at;
}
#endif

/* ---- What the policy is told ---- */

#define ATTUNE_WAITS_BY_SUSPENDING (!ATTUNE_HAS_SET_WAITING && ATTUNE_HAS_SUSPEND_THREAD)
#define ATTUNE_WAKES_BY_RESUMING   (!ATTUNE_HAS_EVENT_RAISED && ATTUNE_HAS_RESUME_THREAD)

/* What the thread waited for has come. */
static void attune_wake(struct thread *t)
{
    attune_begin_call();
    attune_wake_timer_cancel(t);
    t->attune_own.waits_for = NULL;
    t->attune_own.thread_state = ATTUNE_READY;
    if (!ATTUNE_WAKES_BY_RESUMING) {
        ATTUNE_CALL(EVENT_RAISED, t);
    } else if (!t->attune_own.is_suspended) {
        ATTUNE_CALL(RESUME_THREAD, t);
    }
}

/* Takes the thread out of the list of those that wait for its semaphore. */
static void attune_forsake(struct thread *t)
{
    struct attune_semaphore *semaphore = t->attune_own.waits_for;
    struct thread *before = NULL, *at;
    if (!semaphore)
        return;
    for (at = ATTUNE_RECORD(semaphore->first); at != t; at = at->attune_own.waits_behind)
        before = at;
    if (before)
        before->attune_own.waits_behind = t->attune_own.waits_behind;
    else
        semaphore->first = (struct attune_thread *)t->attune_own.waits_behind;
    if (semaphore->last == &t->attune)
        semaphore->last = (struct attune_thread *)before;
}

/* A thread of a semaphore that an interrupt has given, or NULL. */
static struct thread *attune_take_given(void)
{
    if (!attune_given)
        return NULL;
    attune_given = 0;
    for (struct attune_semaphore *at = attune_semaphores; at; at = at->registered) {
        if (at->count && at->first) {
            uint32_t before = attune_mask();
            at->count--;
            attune_unmask(before);
            attune_given = 1;
            return ATTUNE_RECORD(at->first);
        }
    }
    return NULL;
}

/* Tells one thing that has come from outside. 0: there is none. */
ATTUNE_SELDOM static int attune_hear(void)
{
    struct thread *t;
    if (!attune_raised)
        return 0;
    /* Before the search: what comes meanwhile is found by the next. */
    attune_raised = 0;
    attune_read_clock();
    t = attune_wake_timer_due();
    if (t) {
        t->attune_own.timed_out = 1;
    } else {
#if ATTUNE_HAS_ALARM
        t = attune_alarm_timer_due();
        if (t) {
            attune_raised = 1;
            attune_begin_call();
            ATTUNE_CALL(ALARM, t);
            return 1;
        }
#endif
        t = attune_take_given();
        if (!t)
            return 0;
    }
    attune_raised = 1;
    attune_forsake(t);
    attune_wake(t);
    return 1;
}

/* Waits for an interrupt, unless one has come that nobody has heard of. */
static void attune_wait(void)
{
    uint32_t before = attune_mask();
    if (!attune_raised)
        attune_idle();
    attune_unmask(before);
}

/* A policy that leaves the processor idle for too long while a thread is ready has lost it. */
static void attune_watch_idle(uint64_t since)
{
    if (attune_clock - since < ATTUNE_PATIENCE)
        return;
    for (uint32_t i = 0; i < ATTUNE_THREADS; i++) {
        const struct thread *t = &attune_pool[i];
        if (t->attune_own.thread_state == ATTUNE_READY && !t->attune_own.is_suspended)
            attune_blame(t, "the policy dispatches nothing while this thread is ready");
    }
}

/* Lets the policy choose. NULL: it dispatches nothing. */
ATTUNE_SWITCH struct thread *attune_ask(void)
{
    struct thread *next;
    attune_begin_call();
    attune->dispatched = NULL;
    ATTUNE_CALL(SCHEDULE, NULL);
    next = ATTUNE_RECORD(attune->dispatched);
    if (!next)
        return NULL;
    if (next->attune_own.thread_state != ATTUNE_READY || next->attune_own.is_suspended)
        attune_blame(next, "the policy dispatched a thread that cannot run");
    return next;
}

/* Nothing is dispatched: tells what comes, one thing at a time, until the policy dispatches. */
ATTUNE_SELDOM static struct thread *attune_stay_idle(void)
{
    uint64_t idle_since = attune_clock;
    struct thread *next;
    do {
        while (!attune_hear()) {
            attune_wait();
            attune_watch_idle(idle_since);
        }
        next = attune_ask();
    } while (!next);
    return next;
}

ATTUNE_SWITCH struct thread *attune_choose(void)
{
    struct thread *next = attune_ask();
    return next ? next : attune_stay_idle();
}

ATTUNE_SWITCH void attune_check_stack(const struct thread *t)
{
#if ATTUNE_CHECK_STACKS
    /* Four words that nothing may touch. */
    const uint32_t *end = t->attune_own.stack, pattern = ATTUNE_PATTERN;
    if ((end[0] ^ pattern) | (end[1] ^ pattern) | (end[2] ^ pattern) | (end[3] ^ pattern))
        attune_fail_at(attune_files[0], 0, 0, "the thread has overrun its stack", &t->attune);
#else
    (void)t;
#endif
}

/* Before the running thread stops: everything from outside is told while it still runs. */
static inline void attune_begin_stop(void)
{
    while (attune_raised)
        attune_hear();
}

/* The running thread stops, in a state that is set; returns when it is dispatched again. */
ATTUNE_SWITCH void attune_stop(void)
{
    struct thread *me = attune_running, *next;
    attune_begin_call();
    ATTUNE_CALL(SWITCH_OUT, me);
    if (!me->attune.where)
        attune_blame(me, "switch_out has put a living thread into no container");
    next = attune_choose();
    attune_check_stack(me); /* the handlers ran on it, too */
    if (next == me)
        return;
    attune_running = next;
    attune_switch_stacks(&me->attune_own.stack_pointer, next->attune_own.stack_pointer);
}

/* Blocks the running thread, whose timer and place in a semaphore's list are set up. */
static void attune_block(void)
{
    attune_begin_call();
    attune_running->attune_own.timed_out = 0;
    attune_running->attune_own.thread_state = ATTUNE_WAITING;
    if (ATTUNE_WAITS_BY_SUSPENDING)
        ATTUNE_CALL(SUSPEND_THREAD, attune_running);
    else
        ATTUNE_CALL(SET_WAITING, attune_running);
    attune_stop();
}
