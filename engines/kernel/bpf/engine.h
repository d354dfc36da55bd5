/* SPDX-License-Identifier: GPL-2.0 */
/* The engine: what sched_ext asks, put to the policy's handlers.
 *
 *   sched_ext                       what the policy is told
 *   enqueue                         newthread, event_raised; nothing if it knows the thread as ready
 *   dispatch, prev still runnable   [quantum_expired] switch_out, schedule; or prev goes on
 *   dispatch, prev blocked          set_waiting, switch_out, schedule
 *   dispatch, prev ended            set_dead, switch_out, schedule
 *   dispatch, nothing runs          schedule
 *   exit_task, disable              set_dead, if the policy still knows it
 *
 * One lock makes handlers atomic. It is taken with interrupts off, and nothing that takes a run queue's lock is called under it;
 * what only marks or buffers (inserting, kicking) is. Timers never take it: they kick, and dispatch looks at the clock.
 */
struct attune_cpu {
    struct thread ATTUNE_ARENA *running;                /* the policy's; NULL: idle to the policy */
    int64_t deadline;                                   /* end of its slice, 0: none */
    int64_t armed;                                      /* when this CPU's timer fires, 0: it does not */
    uint64_t asked;                                     /* attune_events when `schedule` last ran here */
    uint32_t preempt;                                   /* `preempt c` */
    uint32_t others;                                    /* the last choice was a thread without a record */
};

struct attune_statistics {
    uint64_t calls[ATTUNE_EVENTS];
    uint64_t dispatches, kept, kicks, timers, strangers, records;
};

/* The loader finds everything in the arena from here on. */
static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_locked;
static struct attune_cpu ATTUNE_KEPT ATTUNE_ARENA attune_cpus[ATTUNE_CPUS];
static struct attune_statistics ATTUNE_KEPT ATTUNE_ARENA attune_statistics;
static struct attune_call ATTUNE_KEPT ATTUNE_ARENA attune_answer;
static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_ready;
static uint64_t ATTUNE_KEPT ATTUNE_ARENA attune_events;

struct attune_chunk;

/* For the loader, which looks for threads. */
static struct attune_chunk ATTUNE_ARENA *ATTUNE_KEPT ATTUNE_ARENA attune_chunks;
uint32_t attune_record_size;

/* Set by the loader before it loads. */
const volatile uint64_t attune_seed = 0;
const volatile uint32_t attune_cpu_count = 1;

/* Read by the loader after the end. */
uint64_t attune_origin;                                 /* address of attune_locked */
uint32_t attune_exit_kind;
int64_t attune_exit_code;
char attune_exit_reason[128], attune_exit_message[1024];

/* The arena lies at one address here and in the loader. */
struct {
    int (*type)[BPF_MAP_TYPE_ARENA];
    int (*map_flags)[BPF_F_MMAPABLE];
    int (*max_entries)[65536];                          /* pages */
    enum { ATTUNE_ARENA_AT = 1ull << 44 } map_extra;
} attune_arena ATTUNE_SECTION(".maps");

struct attune_slot {
    uint64_t record;
};

struct {
    int (*type)[BPF_MAP_TYPE_TASK_STORAGE];
    int (*map_flags)[BPF_F_NO_PREALLOC];
    int *key;
    struct attune_slot *value;
} attune_slots ATTUNE_SECTION(".maps");

struct attune_timer {
    struct bpf_timer timer;
};

struct {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    int (*max_entries)[ATTUNE_CPUS];
    uint32_t *key;
    struct attune_timer *value;
} attune_timers ATTUNE_SECTION(".maps");

/* ---- The lock ------------------------------------------------------------------------------------------------------- */

/* Compare and swap rather than the kernel's resilient lock: a dozen instructions, it may be held over functions that the
 * verifier looks at by themselves, and it is patient. In a virtual machine the holder's CPU may be away for longer than the
 * quarter of a second after which the resilient lock, and a loop with ATTUNE_MAY_LOOP, give up. */
static __attribute__((noinline)) int attune_wait(void)
{
    struct bpf_iter_num outer, inner;
    int have = 0;
    bpf_iter_num_new(&outer, 0, 64);
    while (!have && bpf_iter_num_next(&outer)) {
        bpf_iter_num_new(&inner, 0, 1 << 20);
        while (bpf_iter_num_next(&inner)) {
            if (*(volatile uint32_t ATTUNE_ARENA *)&attune_locked == 0 &&
                !__sync_val_compare_and_swap(&attune_locked, 0, 1)) {
                have = 1;
                break;
            }
        }
        bpf_iter_num_destroy(&inner);
    }
    bpf_iter_num_destroy(&outer);
    return have;
}

/* 0 when it could not be had in some ten seconds. */
static inline int attune_lock(void)
{
    return !__sync_val_compare_and_swap(&attune_locked, 0, 1) || attune_wait();
}

static inline void attune_unlock(void)
{
#ifdef __TARGET_ARCH_x86
    __asm__ volatile("" ::: "memory");                  /* stores are not reordered with older ones */
    *(volatile uint32_t ATTUNE_ARENA *)&attune_locked = 0;
#else
    __sync_lock_test_and_set(&attune_locked, 0);
#endif
}

/* ---- Giving up ------------------------------------------------------------------------------------------------------ */

/* The loader makes the sentence from attune_failure. */
static __attribute__((noinline)) void attune_give_up(void)
{
    static char text[] = "attune: check %llu failed";
    unsigned long long number = attune_failure.check;
    scx_bpf_error_bstr(text, &number, sizeof number);
}

enum attune_wrong { ATTUNE_WRONG_DISPATCH = 3, ATTUNE_LOCK_LOST = 4 };

/* Not a check of the scheduler's text: it did what the engine cannot do for it. */
static __attribute__((noinline)) void attune_wrong(uint32_t about, struct attune_thread ATTUNE_ARENA *t)
{
    if (!attune_first_failure(UINT32_MAX, about) || !t)
        return;
    attune_failure.thread = t->id;
    attune_failure.index = attune_task(t)->state;
    attune_failure.length = t->line;
    attune_failure.contents[0].container = t->where;
}

/* ---- Records -------------------------------------------------------------------------------------------------------- */

#define ATTUNE_CHUNK 16                                 /* pages asked for at once */

struct attune_chunk {
    struct attune_chunk ATTUNE_ARENA *before;
    uint64_t records;
    struct thread record[];
};

#define ATTUNE_CHUNK_RECORDS ((ATTUNE_CHUNK * 4096 - sizeof(struct attune_chunk)) / sizeof(struct thread))

static struct thread ATTUNE_ARENA *ATTUNE_KEPT ATTUNE_ARENA attune_free;
static struct thread ATTUNE_ARENA *ATTUNE_KEPT ATTUNE_ARENA attune_fresh;
static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_fresh_left;

/* Under the lock. NULL: there is none left. */
static inline struct thread ATTUNE_ARENA *attune_take_record(void)
{
    struct thread ATTUNE_ARENA *t = attune_free;
    if (t) {
        attune_free = ATTUNE_RECORD(t->attune.next);
        return t;
    }
    if (!attune_fresh_left)
        return NULL;
    attune_fresh_left--;
    attune_statistics.records++;
    return attune_fresh++;
}

/* Under the lock. */
static inline void attune_give_record(struct thread ATTUNE_ARENA *t)
{
    t->attune.next = &attune_free->attune;
    attune_free = t;
}

/* The kernel's task knows its record by its virtual time, which nothing else uses: the engine's queues are first in, first out. */
static inline struct thread ATTUNE_ARENA *attune_record_of(struct task_struct *task)
{
    struct attune_slot *slot;
    uint64_t record = task->scx.dsq_vtime;
    if (record)
        return (struct thread ATTUNE_ARENA *)record;
    slot = bpf_task_storage_get(&attune_slots, task, NULL, 0);
    if (!slot || !slot->record)
        return NULL;
    scx_bpf_task_set_dsq_vtime(task, slot->record);
    return (struct thread ATTUNE_ARENA *)slot->record;
}

/* ---- Affinity ------------------------------------------------------------------------------------------------------- */

/* Under the lock: where the task may run, as `schedule` sees it. */
static inline void attune_note_affinity(struct thread ATTUNE_ARENA *t, struct task_struct *task)
{
#if ATTUNE_CPUS > 1
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    /* A task that is being enqueued while it runs is seen with migration disabled: by this very program. */
    int fixed = task->migration_disabled > (bpf_get_current_task_btf() == task);
    uint8_t pinned = fixed || task->nr_cpus_allowed < (int)attune_cpu_count;
    if (pinned != own->pinned) {
        own->pinned = pinned;
        attune_pinned += pinned ? 1 : -1;
    }
    if (!pinned)
        return;
    const struct cpumask *mask = task->cpus_ptr;
    int32_t here = scx_bpf_task_cpu(task);
    for (uint32_t word = 0; word < ATTUNE_WORDS; word++)
        own->allowed[word] = !fixed ? mask->bits[word] : here / 64 == (int32_t)word ? 1ull << here % 64 : 0;
#endif
}

#include "alarm.h"
#include "values.h"

/* ---- Handlers ------------------------------------------------------------------------------------------------------- */

#define ATTUNE_CALL(NAME, where, thread) do { \
    if (ATTUNE_HAS_##NAME) { \
        attune_answer.cpu = (where); \
        attune_statistics.calls[ATTUNE_##NAME]++; \
        ATTUNE_ON_##NAME(&attune_answer, thread); \
    } \
} while (0)

/* A policy that does not know of waiting is told by the handlers for suspending. */
static inline void attune_call_waiting(uint32_t cpu, struct attune_thread ATTUNE_ARENA *t)
{
    if (ATTUNE_HAS_SET_WAITING)
        ATTUNE_CALL(SET_WAITING, cpu, t);
    else
        ATTUNE_CALL(SUSPEND_THREAD, cpu, t);
}

static inline void attune_call_woken(uint32_t cpu, struct attune_thread ATTUNE_ARENA *t)
{
    if (ATTUNE_HAS_EVENT_RAISED)
        ATTUNE_CALL(EVENT_RAISED, cpu, t);
    else
        ATTUNE_CALL(RESUME_THREAD, cpu, t);
}

#if ATTUNE_HAS_ALARM
/* The alarms that are due. */
static inline void attune_ring(uint32_t cpu)
{
    int64_t now;
    if (!attune_alarms.first)
        return;
    now = attune_now();
    while (attune_alarms.first && attune_alarms.first->key <= now && ATTUNE_MAY_LOOP) {
        struct attune_thread ATTUNE_ARENA *node = attune_alarms.first;
        attune_remove(node);
        ATTUNE_CALL(ALARM, cpu, &attune_alarmed(node)->attune);
        attune_events++;
    }
    attune_alarm_cpu = cpu;
}
#endif

static inline void attune_becomes_ready(struct thread ATTUNE_ARENA *t)
{
    t->attune_task.state = ATTUNE_READY;
    attune_ready++;
    attune_events++;
}

/* The policy meets a thread. */
static __attribute__((noinline)) void attune_meet(struct thread ATTUNE_ARENA *t, uint32_t cpu)
{
    struct attune_thread ATTUNE_ARENA *head = &t->attune;
    head->where = NULL;
    head->destroyed = 0;
    head->line = 0;
    attune_answer.cpu = cpu;
    attune_answer.now = attune_now();
    attune_thread_init(&attune_answer, head);
    attune_supply(t);
    attune_exchange_values(t);
    ATTUNE_CALL(NEWTHREAD, cpu, head);
    attune_becomes_ready(t);
}

/* The policy forgets a thread. Under the lock; `t` is READY, WAITING or, where `leaving`, RUNNING. */
static __attribute__((noinline)) void attune_forget(struct thread ATTUNE_ARENA *t, uint32_t cpu)
{
    if (t->attune_task.state == ATTUNE_READY)
        attune_ready--;
    t->attune_task.state = ATTUNE_GONE;
    attune_alarm(&t->attune, 0);
    t->attune_task.was = t->attune.where;               /* a stall's message wants to know */
    attune_thread_remove(&t->attune);
    (void)cpu;
}

/* The thread that runs on `cpu` stops: [quantum_expired] switch_out. It is ready afterwards. */
static inline void attune_switch_out(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu, struct thread ATTUNE_ARENA *t, int expired)
{
    attune_exchange_values(t);
    if (expired)
        ATTUNE_CALL(QUANTUM_EXPIRED, cpu, &t->attune);
    ATTUNE_CALL(SWITCH_OUT, cpu, &t->attune);
    me->running = NULL;
    attune_becomes_ready(t);
}

/* It blocks, or ends. */
static inline void attune_stop(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu, struct thread ATTUNE_ARENA *t, int ended)
{
    attune_exchange_values(t);
    if (ended)
        ATTUNE_CALL(SET_DEAD, cpu, &t->attune);
    else
        attune_call_waiting(cpu, &t->attune);
    ATTUNE_CALL(SWITCH_OUT, cpu, &t->attune);
    me->running = NULL;
    attune_events++;
    t->attune_task.state = ATTUNE_WAITING;
    if (ended)
        attune_forget(t, cpu);
}

/* ---- Timers --------------------------------------------------------------------------------------------------------- */


/* One timer a CPU, for whatever comes first. A slice that is not used up costs nothing but the look: the timer stays armed for
 * the earliest end that it ever had, and finds out when it fires. */
static inline void attune_arm(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu)
{
    int64_t at = me->deadline;
    int64_t alarm = attune_next_alarm(cpu);
    struct attune_timer *timer;
    if (alarm && (!at || alarm < at))
        at = alarm;
    if (!at || (me->armed && me->armed <= at))
        return;
    timer = bpf_map_lookup_elem(&attune_timers, &cpu);
    if (!timer)
        return;
    me->armed = at;
    bpf_timer_start(&timer->timer, (uint64_t)at, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
}

static int attune_fires(void *map, uint32_t *key, struct attune_timer *timer)
{
    uint32_t cpu = *key;
    struct attune_cpu ATTUNE_ARENA *me = &attune_cpus[cpu];
    int64_t now = attune_now(), at = me->deadline, alarm = attune_next_alarm(cpu);
    attune_statistics.timers++;
    if (alarm && (!at || alarm < at))
        at = alarm;
    if (!at) {
        me->armed = 0;
    } else if (at <= now) {
        me->armed = 0;
        scx_bpf_kick_cpu((int32_t)cpu, SCX_KICK_PREEMPT);
    } else {
        me->armed = at;
        bpf_timer_start(&timer->timer, (uint64_t)at, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
    }
    return 0;
}

/* `preempt c`. */
static void attune_preempt(int64_t cpu)
{
    struct attune_cpu ATTUNE_ARENA *it;
    if (cpu < 0 || cpu >= (int64_t)attune_cpu_count)
        return;
    it = &attune_cpus[cpu];
    if (!it->running || it->preempt)
        return;
    it->preempt = 1;
    attune_statistics.kicks++;
    scx_bpf_kick_cpu((int32_t)cpu, SCX_KICK_PREEMPT);
}

/* Somebody is ready and CPUs are idle: those that have not been asked since the last event are. */
static inline void attune_ask_idle(uint32_t but)
{
#if ATTUNE_CPUS > 1
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++) {
        struct attune_cpu ATTUNE_ARENA *it = &attune_cpus[cpu];
        if (cpu == but || it->running || it->asked == attune_events)
            continue;
        if (scx_bpf_test_and_clear_cpu_idle((int32_t)cpu)) {
            attune_statistics.kicks++;
            scx_bpf_kick_cpu((int32_t)cpu, SCX_KICK_IDLE);
            return;                                     /* it asks the next one */
        }
    }
#endif
}

/* The running thread's time on that CPU is over. */
static inline int attune_is_over(struct attune_cpu ATTUNE_ARENA *it)
{
    return it->preempt || (it->deadline && attune_now() >= it->deadline);
}

/* ---- What sched_ext asks -------------------------------------------------------------------------------------------- */

#define ATTUNE_STRANGERS 1ull                           /* the queue of threads without a record */
#define ATTUNE_STRANGERS_SLICE 5000000ull

static inline void attune_insert_stranger(struct task_struct *task, uint64_t flags)
{
    attune_statistics.strangers++;
    scx_bpf_dsq_insert(task, ATTUNE_STRANGERS, ATTUNE_STRANGERS_SLICE, flags);
}

#if ATTUNE_CPUS > 1
ATTUNE_SECTION("struct_ops/select_cpu") int32_t attune_select_cpu(unsigned long long *context)
{
    _Bool idle = 0;
    return scx_bpf_select_cpu_dfl((void *)context[0], (int32_t)context[1], context[2], &idle);
}
#endif

ATTUNE_SECTION("struct_ops/enqueue") void attune_enqueue(unsigned long long *context)
{
    struct task_struct *task = (void *)context[0];
    uint64_t flags = context[1];
    uint32_t cpu = bpf_get_smp_processor_id(), to = 0;
    struct thread ATTUNE_ARENA *t = attune_record_of(task);
    struct attune_cpu ATTUNE_ARENA *me = &attune_cpus[cpu];
    int direct = 0;
    if (!t || attune_failure.failed) {
        attune_insert_stranger(task, flags);
        return;
    }
    if (!attune_lock()) {
        attune_wrong(ATTUNE_LOCK_LOST, NULL);
        attune_insert_stranger(task, flags);
        attune_give_up();
        return;
    }
    attune_note_affinity(t, task);
    switch (t->attune_task.state) {
    case ATTUNE_WAITING:
        attune_exchange_values(t);
        attune_call_woken(cpu, &t->attune);
        attune_becomes_ready(t);
        break;
    case ATTUNE_UNKNOWN:
        attune_meet(t, cpu);
        break;
    case ATTUNE_RUNNING:
        /* The policy's choice stands: a change of attributes, or a higher class, was in between. */
        to = t->attune_task.cpu;
        if (attune_may_run(&t->attune, to) && !attune_is_over(&attune_cpus[to])) {
            direct = 1;
            t->attune_task.placed = 1;
        } else {
            /* It may not run there any more, or its time is over: that CPU takes it out and chooses again. */
            attune_cpus[to].preempt = 1;
            scx_bpf_kick_cpu((int32_t)to, SCX_KICK_PREEMPT);
        }
        break;
    }
    if (attune_failure.failed) {
        attune_unlock();
        attune_insert_stranger(task, flags);
        attune_give_up();
        return;
    }
    if (direct)
        scx_bpf_dsq_insert(task, SCX_DSQ_LOCAL_ON | to, SCX_SLICE_INF, flags);
    else if (attune_ready)
        attune_ask_idle((uint32_t)scx_bpf_task_cpu(task));
    attune_unlock();
    attune_arm(me, cpu);
}

/* The policy's thread on this CPU and what has become of it. 1 if it goes on, or will as soon as the kernel has put it back. */
static inline int attune_settle(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu, struct thread ATTUNE_ARENA *running,
                                struct task_struct *previous, struct thread ATTUNE_ARENA *known)
{
    struct task_struct *task;
    if (previous && known == running) {
        running->attune_task.placed = 0;
        if (previous->scx.flags & SCX_TASK_QUEUED) {
            int expired = me->deadline && attune_now() >= me->deadline;
            if (!expired && !me->preempt && !running->attune_task.yielded) {
                attune_statistics.kept++;
                scx_bpf_task_set_slice(previous, SCX_SLICE_INF);
                return 1;
            }
            attune_switch_out(me, cpu, running, expired);
        } else {
            attune_stop(me, cpu, running, previous->__state & TASK_DEAD);
        }
        return 0;
    }
    /* Somebody else ran here meanwhile, a higher class perhaps. */
    task = scx_bpf_tid_to_task(running->attune_task.tid);
    if (!task)
        attune_stop(me, cpu, running, 1);
    else if (task->scx.flags & SCX_TASK_QUEUED) {
        if (running->attune_task.placed)
            return 1;
        attune_switch_out(me, cpu, running, 0);
    } else {
        if (task->on_rq)
            return 1;                                   /* its attributes are being changed: enqueue follows */
        attune_stop(me, cpu, running, task->__state & TASK_DEAD);
    }
    return 0;
}

/* Asks the policy for this CPU's next thread, and gives it the CPU. 1 if there is one. */
static inline int attune_choose(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu, struct task_struct *previous,
                                struct thread ATTUNE_ARENA *known)
{
    for (int attempt = (int)ATTUNE_ZERO; attempt < 16 && ATTUNE_MAY_LOOP; attempt++) {
        struct attune_thread ATTUNE_ARENA *head;
        struct thread ATTUNE_ARENA *t;
        struct task_struct *task;
        attune_answer.dispatched = NULL;
        attune_answer.slice = -1;
        me->asked = attune_events;
        me->preempt = 0;
        me->deadline = 0;
        ATTUNE_CALL(SCHEDULE, cpu, NULL);
        head = attune_answer.dispatched;
        if (!head || attune_failure.failed)
            return 0;
        t = ATTUNE_RECORD(head);
        if (t->attune_task.state != ATTUNE_READY) {
            attune_wrong(ATTUNE_WRONG_DISPATCH, head);
            return 0;
        }
        attune_ready--;
        t->attune_task.state = ATTUNE_RUNNING;
        t->attune_task.cpu = cpu;
        t->attune_task.yielded = 0;
        t->attune_task.placed = 0;
        t->attune_task.dispatches++;
        me->running = t;
        attune_statistics.dispatches++;
        if (attune_answer.slice >= 0)
            me->deadline = attune_now() + (attune_answer.slice ? attune_answer.slice : 1);
        if (previous && t == known && (previous->scx.flags & SCX_TASK_QUEUED)) {
            scx_bpf_task_set_slice(previous, SCX_SLICE_INF);
            return 1;
        }
        task = scx_bpf_tid_to_task(t->attune_task.tid);
        if (!task) {
            attune_stop(me, cpu, t, 1);
            continue;
        }
        if (!(task->scx.flags & SCX_TASK_QUEUED)) {
            if (task->on_rq)
                return 1;                               /* its attributes are being changed: enqueue places it */
            /* It ran and blocked while the engine was not asked. */
            attune_stop(me, cpu, t, task->__state & TASK_DEAD);
            continue;
        }
#if ATTUNE_CPUS > 1
        if (!bpf_cpumask_test_cpu(cpu, task->cpus_ptr) ||
            (task->migration_disabled && scx_bpf_task_cpu(task) != (int32_t)cpu)) {
            attune_note_affinity(t, task);
            attune_switch_out(me, cpu, t, 0);
            continue;
        }
#endif
        scx_bpf_dsq_insert(task, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
        return 1;
    }
    return 0;
}

ATTUNE_SECTION("struct_ops/dispatch") void attune_dispatch(unsigned long long *context)
{
    uint32_t cpu = (uint32_t)context[0];
    struct task_struct *previous = (void *)context[1];
    struct attune_cpu ATTUNE_ARENA *me = &attune_cpus[cpu];
    struct thread ATTUNE_ARENA *known = NULL, *running;
    int runs = 0;
    if (attune_failure.failed) {
        scx_bpf_dsq_move_to_local(ATTUNE_STRANGERS);
        return;
    }
    /* Threads without a record take turns with the policy's. */
    if (attune_statistics.strangers) {
        me->others = !me->others && scx_bpf_dsq_move_to_local(ATTUNE_STRANGERS);
        if (me->others && !me->running)
            return;
    }
    if (previous)
        known = attune_record_of(previous);
    if (!attune_lock()) {
        attune_wrong(ATTUNE_LOCK_LOST, NULL);
        attune_give_up();
        return;
    }
    attune_ring(cpu);
    /* It ran when the scheduler was attached: this is its first enqueue, as it were. */
    if (known && known->attune_task.state == ATTUNE_UNKNOWN && (previous->scx.flags & SCX_TASK_QUEUED))
        attune_meet(known, cpu);
    running = me->running;
    if (running)
        runs = attune_settle(me, cpu, running, previous, known);
    if (!runs && !me->others)
        runs = attune_choose(me, cpu, previous, known);
    if (attune_failure.failed) {
        attune_unlock();
        attune_give_up();
        return;
    }
    if (attune_ready)
        attune_ask_idle(cpu);
    attune_unlock();
    attune_arm(me, cpu);
    if (!runs && !me->others && attune_statistics.strangers)
        scx_bpf_dsq_move_to_local(ATTUNE_STRANGERS);
}

ATTUNE_SECTION("struct_ops/yield") _Bool attune_yield(unsigned long long *context)
{
    struct task_struct *from = (void *)context[0];
    struct thread ATTUNE_ARENA *t = attune_record_of(from);
    if (t && !attune_failure.failed)
        t->attune_task.yielded = 1;
    scx_bpf_task_set_slice(from, 0);
    return 0;
}

static inline void attune_leaves(struct task_struct *task, int ends)
{
    struct attune_slot *slot = bpf_task_storage_get(&attune_slots, task, NULL, 0);
    uint32_t cpu = bpf_get_smp_processor_id();
    struct thread ATTUNE_ARENA *t;
    unsigned long interrupts;
    if (!slot || !slot->record)
        return;
    t = (struct thread ATTUNE_ARENA *)slot->record;
    bpf_local_irq_save(&interrupts);
    if (!attune_lock()) {
        bpf_local_irq_restore(&interrupts);
        return;
    }
    if (!attune_failure.failed) {
        uint32_t state = t->attune_task.state;
        if (state == ATTUNE_READY || state == ATTUNE_WAITING || state == ATTUNE_RUNNING) {
            ATTUNE_CALL(SET_DEAD, cpu, &t->attune);
            if (state == ATTUNE_RUNNING) {
                attune_cpus[t->attune_task.cpu].running = NULL;
                scx_bpf_kick_cpu((int32_t)t->attune_task.cpu, SCX_KICK_PREEMPT);
            }
            attune_forget(t, cpu);
        }
    }
    t->attune_task.state = ATTUNE_UNKNOWN;
    if (ends) {
#if ATTUNE_CPUS > 1
        attune_pinned -= t->attune_task.pinned;
#endif
        attune_give_record(t);
        slot->record = 0;
    }
    attune_unlock();
    bpf_local_irq_restore(&interrupts);
}

ATTUNE_SECTION("struct_ops/disable") void attune_disable(unsigned long long *context)
{
    attune_leaves((void *)context[0], 0);
}

ATTUNE_SECTION("struct_ops/exit_task") void attune_exit_task(unsigned long long *context)
{
    attune_leaves((void *)context[0], 1);
}

ATTUNE_SECTION("struct_ops.s/init_task") int32_t attune_init_task(unsigned long long *context)
{
    struct task_struct *task = (void *)context[0];
    struct attune_slot *slot;
    struct attune_chunk ATTUNE_ARENA *fresh = NULL;
    struct thread ATTUNE_ARENA *t;
    unsigned long flags;
    slot = bpf_task_storage_get(&attune_slots, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!slot)
        return 0;                                       /* it will be a stranger */
    if (!attune_free && !attune_fresh_left)
        fresh = bpf_arena_alloc_pages(&attune_arena, NULL, ATTUNE_CHUNK, -1, 0);
    bpf_local_irq_save(&flags);
    if (!attune_lock()) {
        bpf_local_irq_restore(&flags);
        return 0;
    }
    if (fresh && !attune_fresh_left) {
        fresh->before = attune_chunks;
        fresh->records = ATTUNE_CHUNK_RECORDS;
        attune_chunks = fresh;
        attune_fresh = fresh->record;
        attune_fresh_left = ATTUNE_CHUNK_RECORDS;
    }
    t = attune_take_record();
    if (t) {
        t->attune.id = (uint64_t)task->pid;
        t->attune.where = NULL;
        t->attune_task.was = NULL;
        t->attune_task.tid = task->scx.tid;
        t->attune_task.pid = task->pid;
        t->attune_task.tgid = task->tgid;
        t->attune_task.state = ATTUNE_UNKNOWN;
        t->attune_task.pinned = 0;
        t->attune_task.yielded = 0;
        t->attune_task.dispatches = 0;
        attune_find_values(t);
        t->attune_task.weight = task->scx.weight * 1024 / 100;
        slot->record = (uint64_t)t;
    }
    attune_unlock();
    bpf_local_irq_restore(&flags);
    return 0;
}

ATTUNE_SECTION("struct_ops.s/init") int32_t attune_init(unsigned long long *context)
{
    attune_origin = (uint64_t)&attune_locked;
    attune_record_size = sizeof(struct thread);
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < ATTUNE_CPUS && ATTUNE_MAY_LOOP; cpu++) {
        uint32_t key = cpu;
        struct attune_timer *timer = bpf_map_lookup_elem(&attune_timers, &key);
        if (!timer)
            return -2;
        bpf_timer_init(&timer->timer, &attune_timers, CLOCK_MONOTONIC);
        bpf_timer_set_callback(&timer->timer, attune_fires);
    }
    attune_answer.cpus = attune_cpu_count;
    attune_start(attune_seed, attune_cpu_count);
    attune_start_alarms();
    ATTUNE_CALL(INIT, 0, NULL);
    return scx_bpf_create_dsq(ATTUNE_STRANGERS, -1);
}

ATTUNE_SECTION("struct_ops/exit") void attune_exit(unsigned long long *context)
{
    struct scx_exit_info *info = (void *)context[0];
    attune_exit_code = info->exit_code;
    bpf_probe_read_kernel_str(attune_exit_reason, sizeof attune_exit_reason, info->reason);
    bpf_probe_read_kernel_str(attune_exit_message, sizeof attune_exit_message, info->msg);
    attune_exit_kind = (uint32_t)info->kind;
}

_Static_assert(offsetof(struct sched_ext_ops, flags) == 88, "the loader changes flags, timeout_ms and name");

ATTUNE_SECTION(".struct_ops.link") struct sched_ext_ops attune_ops = {
#if ATTUNE_CPUS > 1
    .select_cpu = (void *)attune_select_cpu,
#endif
    .enqueue = (void *)attune_enqueue,
    .dispatch = (void *)attune_dispatch,
    .yield = (void *)attune_yield,
    .init_task = (void *)attune_init_task,
    .exit_task = (void *)attune_exit_task,
    .disable = (void *)attune_disable,
    .init = (void *)attune_init,
    .exit = (void *)attune_exit,
    .flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED | SCX_OPS_TID_TO_TASK,
    .timeout_ms = 5000,
    .name = "attune",
};

const char attune_license[] ATTUNE_SECTION("license") = "GPL";
