/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * CPUs that go and come under a policy, which goes on.
 *
 * The engine hears of it as the kernel begins (cpuhp_enter). From then on it chooses nothing for
 * the CPU. The kernel runs there by itself what it has there, and pushes to other CPUs what may run
 * on them. It calls cpu_offline only after a grace period of RCU, on a busy machine a second later,
 * and asks for the CPU meanwhile. But it would push a thread that is chosen there away at once, and
 * run it before those that other CPUs have chosen.
 *
 *     a CPU goes                        its thread: switch_out, leaves; AWAY
 *     the next dispatch on any other    ready threads for which no CPU is left: leaves; AWAY, and
 *                                       put where the kernel wants to run them. Others for which
 *                                       their instance has none: they move (move.h)
 *     enqueue of such a thread          the same
 *     the next enqueue of an AWAY one   arrives (attune_end_stay)
 *     the next dispatch on the CPU      its thread: switch_out; it goes on under the number of the
 *     with the last number              one that went, and `cpus` is one less
 *     a CPU comes                       it has the next number, and is asked again
 *
 * Invariant (under the lock): a CPU that is not there has no thread, no guest, and looks after no
 * alarm and no refill. A READY thread is `stranded` (its instance has no CPU for it) until the next
 * dispatch at most. The last of `cpus` numbers is that of a CPU that is there; so are all others,
 * but for gaps, until those CPUs dispatch that have the last numbers. An instance whose CPUs are
 * all away keeps its `cpus`, and threads that wait: each stays until it wakes, its alarm as well.
 */
/* clang-format on */
#if ATTUNE_CPUS > 1

/* So many are handed over at once: less than the kernel takes from one dispatch. */
#define ATTUNE_HANDED 16

enum attune_what { ATTUNE_WENT, ATTUNE_CAME, ATTUNE_DECIDES };

/* To the loader, through attune_news. */
struct attune_cpu_change {
    int64_t at; /* of the last decision before, or the first one after, in ns */
    uint32_t cpu, what;
};

/* Under the lock of the CPU's instance: it is there from now on, or is not. */
static inline void attune_set_there(uint32_t cpu, uint32_t there)
{
    attune_cpus[cpu].there = there;
    __sync_fetch_and_add(&attune_absent, there ? -1u : 1u);
    attune_ask_search();
}

/* `cpus` counts the numbers up to the last one whose CPU is there. */
static inline void attune_count_cpus(void)
{
    uint32_t there = (uint32_t)ATTUNE_ZERO, cpus = (uint32_t)ATTUNE_ZERO;
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO;
         cpu < ATTUNE_CPUS && cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++) {
        if (!attune_serves(cpu))
            continue;
        there++;
        if (attune_cpus[cpu].local >= cpus)
            cpus = attune_cpus[cpu].local + 1;
    }
    attune_there[attune_held()] = there;
    if (there)
        attune_answer.cpus = cpus;
}

static inline void attune_swap_numbers(uint32_t one, uint32_t other)
{
    uint32_t cpu = attune_number_of(one), its = attune_number_of(other);
    attune_number_of(one) = its;
    attune_number_of(other) = cpu;
    attune_cpus[cpu].local = other;
    attune_cpus[its].local = one;
}

static inline int attune_has_gap(void)
{
    uint32_t there = attune_there[attune_held()];
    return there && there != attune_answer.cpus;
}

/* The CPU with the last number stops what it runs, to close a gap. */
static inline void attune_ask_last(void)
{
    uint32_t last;
    if (!attune_has_gap())
        return;
    last = attune_number_of(attune_answer.cpus - 1);
    attune_cpus[last].preempt = 1;
    attune_kick(last);
}

/* In dispatch, under the lock, on a CPU on which nothing runs. */
static __attribute__((noinline)) void attune_close_gap(uint32_t cpu)
{
    uint32_t number = attune_cpus[cpu].local, gap = (uint32_t)ATTUNE_ZERO;
    if (number + 1 == attune_answer.cpus) {
        while (gap < number && attune_is_there(attune_number_of(gap)) && ATTUNE_MAY_LOOP)
            gap++;
        attune_swap_numbers(gap, number);
        attune_count_cpus();
        attune_ask_last();
    }
}

static inline void attune_tell_change(uint32_t cpu, uint32_t what, int64_t at)
{
    struct attune_cpu_change change = {.at = at, .cpu = cpu, .what = what};
    bpf_ringbuf_output(&attune_news, &change, sizeof change, 0);
}

/* Under the lock: the kernel has it until its next enqueue. */
static inline void attune_hand_to_kernel(struct thread ATTUNE_ARENA *t, uint32_t cpu)
{
    attune_give_out(t, cpu, ATTUNE_AWAY);
    t->attune_task.cpu = cpu;
}

/* In its enqueue, under the lock: 1 if the kernel has it. A worker of a CPU that has gone wakes on
 * another one; and a CPU that goes wakes threads when it can kick no other CPU any more. */
static inline int attune_keeps_out(struct thread ATTUNE_ARENA *t, struct task_struct *task)
{
    if (t->attune_task.state != ATTUNE_READY || !attune_absent ||
        (attune_may_interrupt() && attune_host_of(t) < ATTUNE_CPUS))
        return 0;
    attune_hand_to_kernel(t, (uint32_t)scx_bpf_task_cpu(task));
    return 1;
}

/* What a dispatch has handed over. */
struct attune_handed {
    uint32_t cpu;  /* where it is */
    uint32_t room; /* for so many more */
    /* those that go to another instance, each by `ready_behind` */
    struct thread ATTUNE_ARENA *moving;
};

/* In dispatch, under the lock: a stranded thread. */
static __attribute__((noinline)) void attune_hand_over_one(struct thread ATTUNE_ARENA *t,
                                                           struct attune_handed *handed)
{
    struct task_struct *task;
    uint32_t host = attune_host_of(t);
#if ATTUNE_INSTANCES > 1
    uint32_t to = attune_instance_at(handed->cpu);
    if (host < ATTUNE_CPUS) {
        if (attune_allowed_in(t, to) >= ATTUNE_CPUS)
            to = attune_instance_at(host);
        attune_go_out(t, to, handed->cpu);
        t->attune_task.ready_behind = handed->moving;
        handed->moving = t;
        handed->room--;
        return;
    }
#endif
    task = scx_bpf_tid_to_task(t->attune_task.tid);
    if (!task) /* its end follows */
        return;
    host = (uint32_t)scx_bpf_task_cpu(task);
    attune_hand_to_kernel(t, host);
    scx_bpf_dsq_insert(task, SCX_DSQ_LOCAL_ON | host, ATTUNE_KERNELS_SLICE, 0);
    handed->room--;
}

/* Under the lock: those of a chunk. One that leaves a CPU is enqueued in a moment. */
static __attribute__((noinline)) void attune_hand_over_of(struct attune_chunk ATTUNE_ARENA *chunk,
                                                          struct attune_handed *handed)
{
    for (uint64_t i = (uint64_t)ATTUNE_ZERO; i < chunk->records && handed->room && ATTUNE_MAY_LOOP;
         i++) {
        struct thread ATTUNE_ARENA *t = &chunk->record[i];
        if (attune_is_stranded(t) && !t->attune_task.leaving)
            attune_hand_over_one(t, handed);
    }
}

/* Under the lock: those of the instance. Nobody looks any more after its threads without quota if
 * it has no CPU: they are ready then. */
static __attribute__((noinline)) void attune_hand_over_in(struct attune_handed *handed)
{
    struct attune_chunk ATTUNE_ARENA *chunk;
    if (!attune_there[attune_held()])
        attune_release_all(handed->cpu);
    attune_ask_last(); /* the CPU that goes cannot kick it */
    for (chunk = attune_chunks; chunk && handed->room && ATTUNE_MAY_LOOP; chunk = chunk->before)
        attune_hand_over_of(chunk, handed);
}

/* 0 when a lock could not be had. */
static __attribute__((noinline)) int attune_hand_over_all(uint32_t cpu)
{
    struct attune_handed handed = {.cpu = cpu, .room = ATTUNE_HANDED + (uint32_t)ATTUNE_ZERO};
    __sync_lock_test_and_set(&attune_any_to_search, 0);
    attune_tell_change(cpu, ATTUNE_DECIDES, attune_clock());
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && handed.room && ATTUNE_MAY_LOOP;
         i++) {
        if (!attune_to_search[i])
            continue;
        if (!attune_lock(i))
            return 0;
        attune_to_search[i] = 0;
        attune_hand_over_in(&handed);
        if (!handed.room) /* there may be more */
            attune_ask_search();
        attune_unlock();
    }
#if ATTUNE_INSTANCES > 1
    while (handed.moving && ATTUNE_MAY_LOOP) {
        struct thread ATTUNE_ARENA *t = handed.moving;
        handed.moving = t->attune_task.ready_behind;
        attune_bring_in(t);
    }
#endif
    return 1;
}

/* In dispatch, without a lock: what is stranded, if CPUs have changed. 0 when a lock could not be
 * had. */
static inline int attune_hand_over(uint32_t cpu)
{
    return !attune_any_to_search || attune_hand_over_all(cpu);
}

/* The last decision on any CPU. */
ATTUNE_OUTLINE_AS(int64_t) attune_last_decision(void)
{
    int64_t last = 0;
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO;
         cpu < ATTUNE_CPUS && cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++)
        if (attune_cpus[cpu].asked_at > last)
            last = attune_cpus[cpu].asked_at;
    return last;
}

/* Every CPU that is there chooses again. */
static inline void attune_kick_all(void)
{
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO;
         cpu < ATTUNE_CPUS && cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++)
        if (attune_is_there(cpu))
            attune_kick(cpu);
}

/* Whether the kernel has a thread that was chosen for the CPU, on which this runs: it is there, or
 * waits in the kernel's queue of it, or comes back by its enqueue. Else it waits for a choice. */
static inline int attune_kernel_has(const struct thread ATTUNE_ARENA *t, struct task_struct *task)
{
    return !(task->scx.flags & SCX_TASK_QUEUED) || task->scx.dsq || t->attune_task.leaving ||
           attune_record_of(bpf_get_current_task_btf()) == t;
}

/* Under the lock: what runs on a CPU that goes. It may be on another CPU by now. */
static inline void attune_take_from_cpu(struct attune_cpu ATTUNE_ARENA *it, uint32_t cpu)
{
    struct thread ATTUNE_ARENA *t = it->running;
    struct task_struct *task;
    if (it->guest)
        attune_forget_guest(it->guest);
    it->named = NULL;
    if (t) {
        attune_switch_out(it, cpu, t, 0);
        task = scx_bpf_tid_to_task(t->attune_task.tid);
        if (task && attune_kernel_has(t, task)) {
            attune_hand_to_kernel(t, cpu);
            scx_bpf_task_set_slice(task, ATTUNE_KERNELS_SLICE); /* it had no end */
        }
    }
    attune_chooses(it);
}

/* On the CPU, which goes. */
static __attribute__((noinline)) void attune_cpu_goes(uint32_t cpu)
{
    unsigned long interrupts;
    int goes = 0;
    if (cpu >= ATTUNE_CPUS || attune_failure.failed)
        return;
    bpf_local_irq_save(&interrupts);
    if (attune_lock(attune_instance_at(cpu))) {
        goes = attune_is_there(cpu);
        if (goes) {
            attune_tell_change(cpu, ATTUNE_WENT, attune_last_decision());
            attune_set_there(cpu, 0);
            attune_count_cpus();
            attune_take_from_cpu(&attune_cpus[cpu], cpu);
            attune_pass_on_alarms();
            attune_pass_on_throttled();
        }
        attune_unlock();
    }
    if (goes)
        attune_kick_all();
    bpf_local_irq_restore(&interrupts);
    if (attune_failure.failed)
        attune_give_up();
}

static __attribute__((noinline)) void attune_cpu_comes(uint32_t cpu)
{
    unsigned long interrupts;
    int comes = 0;
    if (cpu >= ATTUNE_CPUS || attune_failure.failed)
        return;
    bpf_local_irq_save(&interrupts);
    if (attune_lock(attune_instance_at(cpu))) {
        comes = !attune_is_there(cpu);
        if (comes) {
            attune_tell_change(cpu, ATTUNE_CAME, attune_last_decision());
            attune_set_there(cpu, 1);
            if (attune_cpus[cpu].local > attune_answer.cpus)
                attune_swap_numbers(attune_cpus[cpu].local, attune_answer.cpus);
            attune_count_cpus();
            attune_pass_on_alarms();
            attune_pass_on_throttled();
            attune_cpus[cpu].armed = 0;
            attune_events[attune_held()]++; /* it has not been asked since */
        }
        attune_unlock();
    }
    if (comes)
        attune_kick_all();
    bpf_local_irq_restore(&interrupts);
}

/* The step at which a CPU is no longer used, by this kernel's number (BPF_ENUMVAL_VALUE). */
#define ATTUNE_ACTIVE __builtin_preserve_enum_value(*(enum cpuhp_state *)CPUHP_AP_ACTIVE, 1)

/* The kernel begins to take the CPU out of use. */
ATTUNE_SECTION("tp_btf/cpuhp_enter") int32_t attune_cpu_leaves(unsigned long long *context)
{
    int32_t target = (int32_t)context[1], step = (int32_t)context[2];
    ATTUNE_USES_ARENA;
    if (step == (int32_t)ATTUNE_ACTIVE && target < step)
        attune_cpu_goes((uint32_t)context[0]);
    return 0;
}

/* It could not: the CPU stays. */
ATTUNE_SECTION("tp_btf/cpuhp_exit") int32_t attune_cpu_stays(unsigned long long *context)
{
    int32_t step = (int32_t)context[2], failed = (int32_t)context[3];
    ATTUNE_USES_ARENA;
    if (step == (int32_t)ATTUNE_ACTIVE && failed)
        attune_cpu_comes((uint32_t)context[0]);
    return 0;
}

ATTUNE_SECTION("struct_ops/cpu_offline") void attune_cpu_offline(unsigned long long *context)
{
    attune_cpu_goes((uint32_t)context[0]);
}

ATTUNE_SECTION("struct_ops/cpu_online") void attune_cpu_online(unsigned long long *context)
{
    attune_cpu_comes((uint32_t)context[0]);
}
#else
#define attune_keeps_out(t, task) 0
#define attune_hand_over(cpu)     1
#endif
