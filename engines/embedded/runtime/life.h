/* Threads: creating, yielding, suspending, ending. */

void attune_init(void)
{
    attune_start(attune, ATTUNE_SEED, 1);
    attune->cpus = 1;
    attune_begin_call();
    ATTUNE_CALL(INIT, NULL);
}

static void attune_begin(void)
{
    attune_running->attune_own.entry(attune_running->attune_own.argument);
    attune_exit();
}

attune_thread *attune_create(void (*entry)(void *), void *argument, void *stack, size_t size,
                             const struct attune_imports *imports)
{
    uintptr_t lowest = ((uintptr_t)stack + 7) & ~(uintptr_t)7;
    size_t lost = lowest - (uintptr_t)stack;
    struct thread *t = attune_pool;
    attune_read_clock();
    attune_begin_call();
    while (t < attune_pool + ATTUNE_THREADS && t->attune_own.thread_state != ATTUNE_FREE)
        t++;
    if (t == attune_pool + ATTUNE_THREADS || size < ATTUNE_STACK_LEAST + lost)
        return NULL;
    *t = (struct thread){
        .attune_own = {.thread_state = ATTUNE_READY, .entry = entry, .argument = argument}};
    t->attune_id = ++attune_created;
    t->attune_own.stack = (uint32_t *)lowest;
    t->attune_own.stack_words = (uint32_t)((size - lost) / sizeof(uint32_t));
    for (uint32_t i = 0; i < t->attune_own.stack_words; i++)
        t->attune_own.stack[i] = ATTUNE_PATTERN;
    t->attune_own.stack_pointer =
        attune_prepare(t->attune_own.stack, t->attune_own.stack_words, attune_begin);
    attune_living++;
    attune_thread_init(attune, &t->attune);
#if ATTUNE_HAS_IMPORTS
    if (imports)
        t->attune_imports = *imports;
#else
    (void)imports;
#endif
    ATTUNE_CALL(NEWTHREAD, t);
    return &t->attune;
}

void attune_run(void)
{
    if (!attune_living)
        return;
    attune_read_clock();
    attune_running = attune_choose();
    attune_switch_stacks(&attune_main_stack, attune_running->attune_own.stack_pointer);
    attune_running = NULL;
}

attune_thread *attune_self(void)
{
    return (attune_thread *)attune_running;
}

uint32_t attune_number(const attune_thread *thread)
{
    return (uint32_t)thread->id;
}

struct attune_imports *attune_imports_of(attune_thread *thread)
{
#if ATTUNE_HAS_IMPORTS
    return &ATTUNE_RECORD(thread)->attune_imports;
#else
    static struct attune_imports none;
    (void)thread;
    return &none;
#endif
}

size_t attune_stack_used(const attune_thread *thread)
{
    const struct thread *t = (const struct thread *)thread;
    uint32_t free = 0;
    while (free < t->attune_own.stack_words && t->attune_own.stack[free] == ATTUNE_PATTERN)
        free++;
    return (t->attune_own.stack_words - free) * sizeof(uint32_t);
}

void attune_yield(void)
{
    attune_begin_stop();
    attune_stop();
}

int attune_yield_to(attune_thread *next)
{
#if ATTUNE_HAS_SET_NEXT_THREAD
    struct thread *t = ATTUNE_RECORD(next);
    attune_begin_stop();
    attune_begin_call();
    if (t == attune_running || t->attune_own.thread_state != ATTUNE_READY ||
        t->attune_own.is_suspended)
        return 0;
#if ATTUNE_HAS_CAN_SWITCH_TO
    attune->value = 0;
    ATTUNE_CALL(CAN_SWITCH_TO, t);
    if (!attune->value)
        return 0;
#endif
    ATTUNE_CALL(SET_NEXT_THREAD, t);
    attune_stop();
    return 1;
#else
    (void)next;
    return 0;
#endif
}

_Noreturn void attune_exit(void)
{
    struct thread *me = attune_running;
    void *next = attune_main_stack;
    attune_begin_stop();
    attune_begin_call();
    ATTUNE_CALL(SET_DEAD, me);
    ATTUNE_CALL(SWITCH_OUT, me);
    attune_check_stack(me);
    attune_thread_remove(&me->attune);
#if ATTUNE_HAS_ALARM
    attune_alarm_timer_cancel(me);
#endif
    /* Nobody takes the record before another thread runs; its stack is in use until then. */
    me->attune_own.thread_state = ATTUNE_FREE;
    if (--attune_living) {
        attune_running = attune_choose();
        next = attune_running->attune_own.stack_pointer;
    }
    attune_switch_stacks(&me->attune_own.stack_pointer, next);
    for (;;) {
    }
}

int attune_suspend(attune_thread *thread)
{
#if ATTUNE_HAS_SUSPEND_THREAD && ATTUNE_HAS_RESUME_THREAD
    struct thread *t = ATTUNE_RECORD(thread);
    if (t->attune_own.is_suspended || t->attune_own.thread_state == ATTUNE_FREE)
        return 0;
    if (t == attune_running)
        attune_begin_stop();
    else
        attune_read_clock();
    attune_begin_call();
    t->attune_own.is_suspended = 1;
    /* Where blocking is told as suspending, the policy knows already. */
    if (t->attune_own.thread_state != ATTUNE_WAITING || !ATTUNE_WAITS_BY_SUSPENDING)
        ATTUNE_CALL(SUSPEND_THREAD, t);
    if (t == attune_running) {
        attune_stop();
    }
    return 1;
#else
    (void)thread;
    return 0;
#endif
}

int attune_resume(attune_thread *thread)
{
#if ATTUNE_HAS_SUSPEND_THREAD && ATTUNE_HAS_RESUME_THREAD
    struct thread *t = ATTUNE_RECORD(thread);
    attune_read_clock();
    attune_begin_call();
    if (!t->attune_own.is_suspended)
        return 0;
    t->attune_own.is_suspended = 0;
    if (t->attune_own.thread_state != ATTUNE_WAITING || !ATTUNE_WAKES_BY_RESUMING)
        ATTUNE_CALL(RESUME_THREAD, t);
    return 1;
#else
    (void)thread;
    return 0;
#endif
}
