/* ---- Threads ---- */

typedef struct attune_thread attune_thread;

/* Starts the policy. Call it once, before any other function. */
void attune_init(void);

/* A new thread, which begins in `entry(argument)` and ends when that returns. `stack` has `size`
 * bytes, at least ATTUNE_STACK_LEAST, and is the thread's until it has ended. `imports` is what the
 * thread tells the policy at first; NULL: the defaults. NULL if ATTUNE_THREADS live already or the
 * stack is too small. */
attune_thread *attune_create(void (*entry)(void *), void *argument, void *stack, size_t size,
                             const struct attune_imports *imports);

/* Lets threads run; returns when all have ended. */
void attune_run(void);

/* The running thread. NULL outside of threads. */
attune_thread *attune_self(void);

/* The thread's number, from 1 in the order of creation: messages of failures say it. */
uint32_t attune_number(const attune_thread *thread);

/* What a thread tells the policy, to be read and written while the thread lives. */
struct attune_imports *attune_imports_of(attune_thread *thread);

/* Bytes of the thread's stack that were in use at some time. */
size_t attune_stack_used(const attune_thread *thread);

/* Lets the policy choose; the caller stays ready. */
void attune_yield(void);

/* As attune_yield, and tells the policy that `next` should run. 0 if `next` is not ready or the
 * policy takes no such wish (it has no `set_next_thread`): nothing has happened then, else 1. */
int attune_yield_to(attune_thread *next);

/* Ends the running thread. */
_Noreturn void attune_exit(void);

/* Keeps a thread, maybe the caller, from running until attune_resume. 0 if it is suspended already
 * or has ended, or the policy has no `suspend_thread` and `resume_thread`; else 1. */
int attune_suspend(attune_thread *thread);
/* 0 if the thread is not suspended; else 1. */
int attune_resume(attune_thread *thread);

/* ---- Time ---- */

/* One tick has passed. For the interrupt handler of the board's timer alone. */
void attune_tick(void);

/* Ticks so far. */
uint64_t attune_now(void);

/* Blocks the caller for `ticks`; until that tick, or not at all if it has passed. */
void attune_sleep(uint32_t ticks);
void attune_sleep_until(uint64_t tick);

#define ATTUNE_FOREVER UINT32_MAX

/* ---- Semaphores: threads wait in the order in which they came ---- */

struct attune_semaphore {
    volatile uint32_t count;
    attune_thread *first, *last;         /* threads that wait */
    struct attune_semaphore *registered; /* the next semaphore of all */
};

/* Call it once for each semaphore, which lives as long as the scheduler. */
void attune_semaphore_init(struct attune_semaphore *semaphore, uint32_t count);

/* Takes one, waiting up to `ticks` for it (0: not at all; ATTUNE_FOREVER). Returns 0 if none came,
 * else 1. */
int attune_take(struct attune_semaphore *semaphore, uint32_t ticks);

/* Gives one: to the thread that waits longest, or for a later take. */
void attune_give(struct attune_semaphore *semaphore);
void attune_give_from_interrupt(struct attune_semaphore *semaphore);

/* ---- Queues of messages of one size ---- */

struct attune_queue {
    unsigned char *room;
    uint32_t size, capacity; /* bytes of a message; messages */
    uint32_t head, tail;     /* of the next to receive, to send: below `capacity` */
    struct attune_semaphore filled, free;
};

/* `room` has `size * capacity` bytes. Call it once for each queue. */
void attune_queue_init(struct attune_queue *queue, void *room, uint32_t size, uint32_t capacity);

/* Copies a message in or out, waiting up to `ticks` for room or for a message. Returns 0 if it
 * waited in vain, else 1. */
int attune_send(struct attune_queue *queue, const void *message, uint32_t ticks);
int attune_receive(struct attune_queue *queue, void *message, uint32_t ticks);

/* ---- What the firmware may define; attune.c has weak definitions ---- */

/* Something is wrong, and no thread can go on. `file` and `line` are the scheduler's: of the check
 * that failed, or of the statement that moved the thread last (line 0: none is to blame). */
struct attune_failure {
    const char *file;
    uint32_t line, column;
    const char *what;
    uint32_t thread; /* its number; 0: no thread in particular */
};

/* Must not return. Weak: stops in an endless loop. */
void attune_failed(const struct attune_failure *failure);

/* Nothing is dispatched: wait for an interrupt. Called with interrupts masked, and returns so; an
 * interrupt that is pending must end the wait. Weak: WFI; on a host, sleeps for a tick and reports
 * it. */
void attune_idle(void);

/* Bytes below which a stack is refused. */
#define ATTUNE_STACK_LEAST (32 * sizeof(void *))

#endif
