/* What the engine keeps of a thread, in the record that the policy's variables follow. */

/* The thread that runs is READY, too. */
enum attune_state { ATTUNE_FREE, ATTUNE_READY, ATTUNE_WAITING };

struct thread;

struct attune_timer {
    int64_t at; /* tick */
    struct thread *next;
    uint8_t set;
};

#if ATTUNE_HAS_ALARM
#define ATTUNE_ALARM_MEMBERS struct attune_timer alarm_timer; /* `alarm t at T` */
#else
#define ATTUNE_ALARM_MEMBERS
#endif

struct attune_own {
    struct attune_timer wake_timer;
    ATTUNE_ALARM_MEMBERS
    void *stack_pointer; /* while it does not run */
    uint32_t *stack;     /* the lowest word */
    uint32_t stack_words;
    uint8_t thread_state;
    uint8_t is_suspended;
    uint8_t timed_out;
    struct attune_semaphore *waits_for;
    struct thread *waits_behind; /* the next that waits for the semaphore */
    void (*entry)(void *);
    void *argument;
};

#define ATTUNE_MEMBERS struct attune_own attune_own;

/* The policy asks for an alarm (nanoseconds); no preemption here, so `preempt` asks for nothing. */
static void attune_alarm(struct attune_thread *thread, int64_t at);
#define ATTUNE_ALARM(attune, thread, at) attune_alarm(thread, at)
#define ATTUNE_PREEMPT(attune, cpu, at)  ((void)(cpu), (void)(at))
