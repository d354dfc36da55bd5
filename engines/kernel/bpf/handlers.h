/* SPDX-License-Identifier: GPL-2.0 */
/* Calls the policy's handlers, and gives the policy up when one goes wrong. Handlers run under
 * the lock; attune_give_up runs without it. */
/* The loader makes the sentence from attune_failure. */
static __attribute__((noinline)) void attune_give_up(void)
{
    static char text[] = "attune: check %llu failed";
    unsigned long long number = attune_failure.check;
    scx_bpf_error_bstr(text, &number, sizeof number);
}

enum attune_wrong { ATTUNE_WRONG_DISPATCH = ATTUNE_CUT + 1, ATTUNE_LOCK_LOST };

/* Not a check of the scheduler's text: it did what the engine cannot do for it. */
static __attribute__((noinline)) void attune_wrong(uint32_t about,
                                                   struct attune_thread ATTUNE_ARENA *t)
{
    if (!attune_first_failure(UINT32_MAX, about) || !t)
        return;
    attune_failure.policy = attune_domain_of(t);
    attune_failure.thread = t->id;
    attune_failure.index = attune_task(t)->state;
    attune_failure.length = t->line;
    attune_failure.contents[0].container = t->where;
}

#if ATTUNE_DOMAINS > 1
static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_calling; /* whose handler runs */
#define ATTUNE_NOW_CALLS(domain) (attune_calling = (domain))
#else
#define ATTUNE_NOW_CALLS(domain) (void)0
#endif

/* A handler of one policy. `ROLE` stands in its macros: nothing for the first one's. */
#define ATTUNE_CALL_ONE(of, ROLE, ending, NAME, where, thread)        \
    case of:                                                          \
        ATTUNE_NOW_CALLS(of);                                         \
        if (ATTUNE_##ROLE##HAS_##NAME) {                              \
            attune_answer.cpu = attune_local(where);                  \
            attune_domains[attune_held()][of].calls[ATTUNE_##NAME]++; \
            ATTUNE_##ROLE##ON_##NAME(&attune_answer, thread);         \
        }                                                             \
        break;

/* A handler of the domain's policy. */
#define ATTUNE_CALL_IN(domain, NAME, where, thread) \
    ATTUNE_IN_DOMAIN(domain, ATTUNE_CALL_ONE, NAME, where, thread)

/* Whether the domain's policy has it. */
#define ATTUNE_HAS(domain, NAME) (ATTUNE_WHICH(HAS_##NAME) >> (domain) & 1)

/* A handler of the policy that the thread follows. */
#define ATTUNE_CALL(NAME, where, thread) \
    ATTUNE_CALL_IN(attune_domain_of(thread), NAME, where, thread)

/* A policy that does not know of waiting is told by the handlers for suspending. */
static inline void attune_call_waiting(uint32_t cpu, struct attune_thread ATTUNE_ARENA *t)
{
    if (ATTUNE_HAS(attune_domain_of(t), SET_WAITING))
        ATTUNE_CALL(SET_WAITING, cpu, t);
    else
        ATTUNE_CALL(SUSPEND_THREAD, cpu, t);
}

static inline void attune_call_woken(uint32_t cpu, struct attune_thread ATTUNE_ARENA *t)
{
    if (ATTUNE_HAS(attune_domain_of(t), EVENT_RAISED))
        ATTUNE_CALL(EVENT_RAISED, cpu, t);
    else
        ATTUNE_CALL(RESUME_THREAD, cpu, t);
}

/* What the kernel knows of the thread, for imports of that name. */
static inline void attune_supply_thread(struct thread ATTUNE_ARENA *t)
{
#define ATTUNE_SUPPLY_ONE(of, ROLE, ending, t) \
    case of:                                   \
        attune_supply##ending(t);              \
        break;
    ATTUNE_IN_DOMAIN(attune_domain_of(&t->attune), ATTUNE_SUPPLY_ONE, t);
}

/* The same of the kernel's task: before each event that tells the policy of its waiting. */
static inline void attune_know(struct thread ATTUNE_ARENA *t, struct task_struct *task)
{
#define ATTUNE_SUPPLY_TASK_ONE(of, ROLE, ending, t, task) \
    case of:                                              \
        attune_supply_task##ending(t, task);              \
        break;
    attune_find_process(t, task);
    ATTUNE_IN_DOMAIN(attune_domain_of(&t->attune), ATTUNE_SUPPLY_TASK_ONE, t, task);
}

/* On the CPU where the thread is woken. */
static inline void attune_know_waker(struct thread ATTUNE_ARENA *t)
{
#define ATTUNE_SUPPLY_WAKER_ONE(of, ROLE, ending, t) \
    case of:                                         \
        attune_supply_waker##ending(t);              \
        break;
    ATTUNE_IN_DOMAIN(attune_domain_of(&t->attune), ATTUNE_SUPPLY_WAKER_ONE, t);
}

#if ATTUNE_WHICH(HAS_ALARM)
/* The alarms that are due. */
static inline void attune_ring(uint32_t cpu)
{
    int64_t now;
    struct attune_container ATTUNE_ARENA *alarms = &attune_alarms[attune_held()];
    if (!alarms->first)
        return;
    now = attune_answer.now;
    while (alarms->first && alarms->first->key <= now && ATTUNE_MAY_LOOP) {
        struct attune_thread ATTUNE_ARENA *node = alarms->first;
        attune_remove(node);
        ATTUNE_CALL(ALARM, cpu, &attune_alarmed(node)->attune);
        attune_events[attune_held()]++;
    }
    attune_alarm_cpu[attune_held()] = cpu;
}
#endif

/* It is ready here now, and was elsewhere before or not at all. */
static inline void attune_enters_ready(struct thread ATTUNE_ARENA *t)
{
    uint32_t domain = attune_domain_of(&t->attune);
    t->attune_task.state = ATTUNE_READY;
    t->attune_task.waits_since = attune_answer.now;
    attune_list(t);
    attune_counts(t);
    attune_note_ready(domain);
    attune_domains[attune_held()][domain].ready++;
    attune_events[attune_held()]++;
    if (attune_absent && attune_is_stranded(t)) /* its last CPU has gone meanwhile */
        attune_ask_search();
}

static inline void attune_becomes_ready(struct thread ATTUNE_ARENA *t)
{
    attune_enters_ready(t);
    attune_announce();
}

/* The policy meets a thread. */
static __attribute__((noinline)) void attune_meet(struct thread ATTUNE_ARENA *t,
                                                  struct task_struct *task, uint32_t cpu)
{
#define ATTUNE_THREAD_INIT_ONE(of, ROLE, ending, head)    \
    case of:                                              \
        attune_thread_init##ending(&attune_answer, head); \
        break;
    struct attune_thread ATTUNE_ARENA *head = &t->attune;
    head->where = NULL;
    head->destroyed = 0;
    head->line = 0;
    t->attune_task.cpu = cpu;
    attune_answer.cpu = attune_local(cpu);
    ATTUNE_IN_DOMAIN(attune_domain_of(head), ATTUNE_THREAD_INIT_ONE, head);
    attune_supply_thread(t);
    attune_is_unweighed(t);
    attune_weigh(t);
    attune_know(t, task);
    attune_hear(t);
    attune_open_account(t);
    ATTUNE_CALL(NEWTHREAD, cpu, head);
    attune_becomes_ready(t);
}

/* The policy forgets a thread. Under the lock; `t` is READY, WAITING or, where `leaving`, RUNNING.
 */
ATTUNE_OUTLINE attune_forget(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    if (t->attune_task.state == ATTUNE_READY) {
        attune_domains[attune_held()][attune_domain_of(&t->attune)].ready--;
        attune_unlist(t);
    }
    attune_close_account(t);
    attune_weighs_no_more(t);
    t->attune_task.state = ATTUNE_GONE;
    attune_alarm(&attune_answer, &t->attune, 0);
    t->attune_task.was = t->attune.where; /* a stall's message wants to know */
    attune_thread_remove(&t->attune);
    ATTUNE_RETURN;
}

/* The thread that runs on `cpu` stops: [quantum_expired] switch_out. It is ready afterwards. */
static inline void attune_switch_out(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu,
                                     struct thread ATTUNE_ARENA *t, int expired)
{
    attune_weigh(t);
    attune_hear(t);
    attune_stay_ends(me);
    attune_pay(me, t);
    if (expired)
        ATTUNE_CALL(QUANTUM_EXPIRED, cpu, &t->attune);
    ATTUNE_CALL(SWITCH_OUT, cpu, &t->attune);
    attune_ends(me);
    attune_was_served(t);
    attune_becomes_ready(t);
}

/* It blocks, or ends. */
static inline void attune_stop(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu,
                               struct thread ATTUNE_ARENA *t, int ended)
{
    attune_pass_releases(t);
    attune_hear(t);
    attune_stay_ends(me);
    attune_pay(me, t);
    if (ended)
        ATTUNE_CALL(SET_DEAD, cpu, &t->attune);
    else
        attune_call_waiting(cpu, &t->attune);
    ATTUNE_CALL(SWITCH_OUT, cpu, &t->attune);
    attune_ends(me);
    attune_was_served(t);
    attune_counts_no_more(t);
    attune_lingers(t);
    attune_events[attune_held()]++;
    t->attune_task.state = ATTUNE_WAITING;
    if (ended)
        attune_forget(t);
}
