/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * The engine: puts what sched_ext asks to the policy's handlers.
 *
 *     sched_ext                         the policy is told
 *     enqueue                           newthread, event_raised; nothing of a thread that it knows
 *                                       as ready
 *     dispatch, prev still runnable     [quantum_expired] switch_out, schedule; or prev goes on
 *     dispatch, prev blocked            set_waiting, switch_out, schedule
 *     dispatch, prev ended              set_dead, switch_out, schedule
 *     dispatch, nothing runs            schedule
 *     dispatch, a thread waits too long [switch_out] leaves; the engine runs it (rescue.h)
 *     dispatch, no quota is left        schedule, switch_out, leaves (throttle.h)
 *     enqueue or dispatch, its stay ends arrives; dispatch, its quota is refilled: arrives
 *     dispatch, another domain owed     its policy: schedule; if that chose a thread, this policy:
 *                                       switch_out
 *     exit_task, disable (life.h)       set_dead, if the policy still knows the thread
 *     a CPU goes or comes               see hotplug.h
 */
/* clang-format on */
#define ATTUNE_FALL_BACK_QUEUE 1ull /* the queue of threads without a record */

static inline void attune_insert_fall_back(struct task_struct *task, uint64_t flags)
{
    attune_statistics.fall_backs++;
    scx_bpf_dsq_insert(task, ATTUNE_FALL_BACK_QUEUE, ATTUNE_KERNELS_SLICE, flags);
}

#if ATTUNE_CPUS > 1
ATTUNE_SECTION("struct_ops/select_cpu") int32_t attune_select_cpu(unsigned long long *context)
{
    _Bool idle = 0;
    return scx_bpf_select_cpu_dfl((void *)context[0], (int32_t)context[1], context[2], &idle);
}
#endif

/* The CPU of which a handler hears that tells a thread's wake-up or beginning. */
static inline uint32_t attune_chosen(struct task_struct *task, uint32_t here)
{
    return ATTUNE_INSTANCES > 1 ? (uint32_t)scx_bpf_task_cpu(task) : here;
}

/* A thread is ready, perhaps this one, which the kernel has put on `here`. Where that wakes `here`,
 * no other CPU is asked: the first of two would have the thread, wherever it last ran, and the
 * other would have been woken for nothing. */
static inline void attune_find_room(struct thread ATTUNE_ARENA *t, uint32_t here)
{
    int found = attune_idles(here) || attune_ask_idle(here);
#if ATTUNE_DOMAINS > 1
    if (!found && t->attune_task.state == ATTUNE_READY && here < ATTUNE_CPUS &&
        attune_cpus[here].running)
        attune_claim(attune_domain_of(&t->attune), here, &t->attune);
#endif
}

ATTUNE_SECTION("struct_ops/enqueue") void attune_enqueue(unsigned long long *context)
{
    struct task_struct *task = (void *)context[0];
    uint64_t flags = context[1];
    uint32_t cpu = bpf_get_smp_processor_id(), to = 0;
    struct thread ATTUNE_ARENA *t = attune_record_of(task), *gone = NULL;
    struct attune_cpu ATTUNE_ARENA *me = &attune_cpus[cpu];
    int direct = 0, kernels, left_cpu;
    if (!t || attune_failure.failed) {
        attune_insert_fall_back(task, flags);
        return;
    }
    if (!attune_bring_home(t, task) || !attune_lock_of(t)) {
        attune_wrong(ATTUNE_LOCK_LOST, NULL);
        attune_insert_fall_back(task, flags);
        attune_give_up();
        return;
    }
    attune_note_affinity(t, task);
    left_cpu = t->attune_task.leaving;
    t->attune_task.leaving = 0;
    switch (t->attune_task.state) {
    case ATTUNE_WAITING:
        attune_weigh(t);
        attune_know(t, task);
        if (flags & SCX_ENQ_WAKEUP)
            attune_know_waker(t);
        attune_hear(t);
        attune_call_woken(attune_chosen(task, cpu), &t->attune);
        attune_becomes_ready(t);
        if (me->running && attune_instance_at(cpu) == attune_held())
            attune_deliver_values(me->running);
        break;
    case ATTUNE_UNKNOWN:
        attune_meet(t, task, attune_chosen(task, cpu));
        break;
    case ATTUNE_AWAY:
        /* It has blocked in its stay, or something has come in between. */
        attune_end_stay(t, task, attune_chosen(task, cpu));
        break;
    case ATTUNE_THROTTLED:
        if (!left_cpu) /* its cgroup, its affinity or its class is another one */
            attune_unthrottle(t, task, attune_chosen(task, cpu));
        break;
    case ATTUNE_READY:
        /* It comes back to its queue after it stopped, or with another affinity. CPUs that looked
         * before may have passed over it. Or the kernel gives it back, which runs all threads by
         * itself while the machine goes to sleep: one that it ran begins to wait anew. */
        if (t->attune_task.ran != task->se.sum_exec_runtime)
            t->attune_task.waits_since = attune_answer.now;
        attune_events[attune_held()]++;
        attune_announce();
        break;
    case ATTUNE_RUNNING:
        /* The policy's choice stands: it was chosen while it left another CPU, or a change of
         * attributes, or a higher class, was in between. */
        to = t->attune_task.cpu;
        direct = attune_may_run_on(&t->attune, to) && !attune_is_over(&attune_cpus[to]);
        t->attune_task.placed = direct;
        if (!direct) {
            /* It may not run there any more, or its time is over: that CPU takes it out and chooses
             * again. */
            attune_cpus[to].preempt = 1;
            attune_kick(to);
        }
        break;
#if ATTUNE_INSTANCES > 1
    case ATTUNE_MOVING:
        /* It was ready and still is, though it may have left the class in between. */
        t->attune_task.ended = ATTUNE_STAYS;
        break;
#endif
    }
    t->attune_task.ran = task->se.sum_exec_runtime;
    kernels = attune_keeps_out(t, task);
    if (attune_failure.failed) {
        attune_unlock();
        attune_insert_fall_back(task, flags);
        attune_give_up();
        return;
    }
    if (direct)
        scx_bpf_dsq_insert(task, SCX_DSQ_LOCAL_ON | to, SCX_SLICE_INF, flags);
    else if (kernels)
        scx_bpf_dsq_insert(task, SCX_DSQ_LOCAL, ATTUNE_KERNELS_SLICE, flags | SCX_ENQ_PREEMPT);
    else {
        gone = attune_send(t, cpu);
        if (!gone && attune_all_ready())
            attune_find_room(t, (uint32_t)scx_bpf_task_cpu(task));
    }
    attune_unlock();
    if (gone)
        attune_bring_in(gone);
    if (left_cpu && t->attune_task.cpu == cpu)
        attune_begin_again(me);
    attune_arm(me, cpu);
    attune_watch();
}

/* The policy's thread on this CPU and what has become of it. 1 if it goes on, or will as soon as
 * the kernel has put it back. */
static inline int attune_settle(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu,
                                struct thread ATTUNE_ARENA *running, struct task_struct *previous,
                                struct thread ATTUNE_ARENA *known)
{
    struct task_struct *task;
    if (previous && known == running) {
        running->attune_task.placed = 0;
        if (previous->scx.flags & SCX_TASK_QUEUED) {
            if (!attune_is_over(me) && !running->attune_task.yielded &&
                attune_draws_again(me, running)) {
                attune_statistics.kept++;
                scx_bpf_task_set_slice(previous, SCX_SLICE_INF);
                return 1;
            }
            attune_switch_out(me, cpu, running, me->deadline && attune_answer.now >= me->deadline);
            running->attune_task.leaving = 1;
        } else {
            attune_know(running, previous);
            attune_stop(me, cpu, running, previous->__state & TASK_DEAD);
        }
        return 0;
    }
    if (running->attune_task.leaving)
        /* another CPU still puts it back: enqueue follows */
        return 1;
    /* Another thread ran here meanwhile, perhaps one of a higher class. */
    task = scx_bpf_tid_to_task(running->attune_task.tid);
    if (!task)
        attune_stop(me, cpu, running, 1);
    else if (task->scx.flags & SCX_TASK_QUEUED) {
        if (running->attune_task.placed)
            return 1;
        attune_switch_out(me, cpu, running, 0);
    } else {
        if (task->on_rq)
            /* its attributes are being changed: enqueue follows */
            return 1;
        attune_know(running, task);
        attune_stop(me, cpu, running, task->__state & TASK_DEAD);
    }
    return 0;
}

/* Asks the domain's policy for this CPU's next thread, and gives it the CPU; `previous`, if it runs
 * here still and is of another domain, stops then. 1 if there is a next thread. */
static inline int attune_choose(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu, uint32_t domain,
                                struct task_struct *previous, struct thread ATTUNE_ARENA *known)
{
    struct thread ATTUNE_ARENA *displaced = ATTUNE_DOMAINS > 1 ? me->running : NULL;
    for (int attempt = (int)ATTUNE_ZERO; attempt < 16 && ATTUNE_MAY_LOOP; attempt++) {
        struct attune_thread ATTUNE_ARENA *head;
        struct thread ATTUNE_ARENA *t;
        struct task_struct *task;
        int64_t slice;
        attune_answer.dispatched = NULL;
        attune_answer.slice = -1;
        me->asked = attune_events[attune_held()];
        me->asked_at = attune_answer.now;
        if (!displaced)
            attune_chooses(me);
        attune_asks(me, domain);
        ATTUNE_CALL_IN(domain, SCHEDULE, cpu, NULL);
        head = attune_answer.dispatched;
        slice = attune_answer.slice;
        if (!head || attune_failure.failed)
            return 0;
        t = ATTUNE_RECORD(head);
        if (t->attune_task.state != ATTUNE_READY) {
            attune_wrong(ATTUNE_WRONG_DISPATCH, head);
            return 0;
        }
        if (displaced) {
            attune_switch_out(me, cpu, displaced, 0);
            displaced->attune_task.leaving = displaced == known;
            if (previous)
                /* else the kernel would leave it where it is */
                scx_bpf_task_set_slice(previous, 0);
            displaced = NULL;
            attune_chooses(me);
        }
        attune_domains[attune_held()][domain].ready--;
        attune_unlist(t);
        t->attune_task.state = ATTUNE_RUNNING;
        t->attune_task.cpu = cpu;
        t->attune_task.yielded = 0;
        t->attune_task.placed = 0;
        t->attune_task.dispatches++;
        attune_is_served(t);
        me->running = t;
        attune_begins(me, head);
        attune_deliver_values(t);
        attune_domains[attune_held()][domain].dispatches++;
        if (slice >= 0)
            attune_begin_slice(me, domain, slice);
        if (!attune_draws(me, t)) {
            attune_throttle(me, cpu, t);
            continue;
        }
        if (previous && t == known && (previous->scx.flags & SCX_TASK_QUEUED)) {
            t->attune_task.leaving = 0;
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
                /* its attributes are being changed: enqueue places it */
                return 1;
            /* It ran and blocked while the engine was not asked. */
            attune_know(t, task);
            attune_stop(me, cpu, t, task->__state & TASK_DEAD);
            continue;
        }
        /* A thread that still leaves another CPU cannot be inserted yet: the kernel would forget
         * it, ask again, and not find it here. */
        if (t->attune_task.leaving ? !attune_fits(task, cpu) : !attune_insert_here(task, cpu)) {
            attune_note_affinity(t, task);
            attune_switch_out(me, cpu, t, 0);
            continue;
        }
        return 1;
    }
    /* asked often enough for now: ask once more, and soon */
    attune_kick(cpu);
    return 0;
}

#if ATTUNE_DOMAINS > 1
/* The domain that is asked next, those in `asked` having had no thread for this CPU;
 * ATTUNE_DOMAINS: none. */
static inline uint32_t attune_next_domain(const struct attune_cpu ATTUNE_ARENA *me, uint64_t asked)
{
    return (uint32_t)(me->running || !asked ? attune_owed(me, attune_answer.now, asked)
                                            : attune_poorest(me, asked));
}

/* Several domains: the one whose turn it is comes first. `runs`: its thread may go on. 1 if some
 * thread runs. */
static inline int attune_share(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu,
                               struct task_struct *previous, struct thread ATTUNE_ARENA *known,
                               int runs)
{
    uint32_t here = attune_domain_here(me);
    uint64_t asked = 0;
    attune_charge(me, attune_answer.now);
    /* Do not stop a thread that is not on this CPU: it is on its way back, or already on this CPU's
     * own queue. */
    if (runs && (!previous || known != me->running)) {
        attune_set_turn(me, attune_answer.now);
        return 1;
    }
    for (int i = (int)ATTUNE_ZERO; i < ATTUNE_DOMAINS && ATTUNE_MAY_LOOP; i++) {
        uint32_t domain = attune_next_domain(me, asked);
        int displaces = me->running != NULL;
        if (domain >= ATTUNE_DOMAINS || (displaces && domain == here))
            break;
        asked |= 1ull << domain;
        if (!attune_domain_at(domain)->ready)
            continue;
        if (attune_choose(me, cpu, domain, previous, known)) {
            if (asked & (asked - 1) && me->running)
                attune_pass_over(me, asked, domain, attune_answer.now);
            if (displaces && attune_domain_at(here)->ready)
                attune_claim(here, cpu, NULL);
            return 1;
        }
        if (attune_failure.failed)
            return 0;
    }
    if (!me->running)
        return 0;
    attune_pass_over(me, asked, here, attune_answer.now);
    return 1;
}
#endif

ATTUNE_SECTION("struct_ops/dispatch") void attune_dispatch(unsigned long long *context)
{
    uint32_t cpu = (uint32_t)context[0];
    struct task_struct *previous = (void *)context[1];
    struct attune_cpu ATTUNE_ARENA *me = &attune_cpus[cpu];
    struct thread ATTUNE_ARENA *known = NULL, *running;
#if ATTUNE_INSTANCES > 1
    struct thread ATTUNE_ARENA *gone = NULL, *stopped = NULL;
    int lonely = 0;
    int64_t now;
#endif
    int runs = 0, hosts;
    me->kicked = 0;
    if (attune_failure.failed) {
        scx_bpf_dsq_move_to_local(ATTUNE_FALL_BACK_QUEUE);
        return;
    }
#if ATTUNE_CPUS > 1
    if (!attune_is_there(cpu)) /* it goes */
        return;
#endif
    /* Threads without a record take turns with the policy's. */
    if (attune_statistics.fall_backs) {
        me->others = !me->others && scx_bpf_dsq_move_to_local(ATTUNE_FALL_BACK_QUEUE);
        if (me->others && !me->running)
            return;
    }
    if (previous)
        known = attune_record_of(previous);
    attune_fetch_named(me, cpu);
    if (!attune_hand_over(cpu) || !attune_lock(attune_instance_at(cpu))) {
        attune_wrong(ATTUNE_LOCK_LOST, NULL);
        attune_give_up();
        return;
    }
    attune_ring(cpu);
    attune_release_due(cpu);
    /* It ran when the scheduler was attached: this is its first enqueue, as it were. */
    if (known && known->attune_task.state == ATTUNE_UNKNOWN &&
        (previous->scx.flags & SCX_TASK_QUEUED)) {
#if ATTUNE_INSTANCES > 1
        known->attune_task.instance = attune_held();
#endif
        attune_meet(known, previous, cpu);
    }
    hosts = me->guest && attune_guest_stays(me, cpu, previous, known);
    running = me->running;
    if (running)
        runs = attune_settle(me, cpu, running, previous, known);
    if (!hosts && me->named && !me->others)
        hosts = attune_invite(me, cpu, previous, known);
    runs |= hosts;
#if ATTUNE_CPUS > 1
    if (attune_has_gap() && !me->running)
        attune_close_gap(cpu);
#endif
#if ATTUNE_DOMAINS > 1
    if (!me->others && !hosts)
        runs = attune_share(me, cpu, previous, known, runs);
#else
    if (!runs && !me->others)
        runs = attune_choose(me, cpu, 0, previous, known);
#endif
#if ATTUNE_INSTANCES > 1
    me->unfit = 0;
    if (!runs && !me->others && !attune_failure.failed) {
        me->called = 0;
        me->looked = attune_readied;
        if (!attune_longest_ready(cpu)) {
            struct thread ATTUNE_ARENA *pulled;
            attune_unlock();
            pulled = attune_pull(cpu);
            if (!attune_lock(attune_instance_at(cpu))) {
                attune_wrong(ATTUNE_LOCK_LOST, NULL);
                attune_give_up();
                return;
            }
            if (pulled) {
                runs = attune_choose(me, cpu, 0, previous, known);
                if (runs ? me->running != pulled : !attune_may_run_on(&pulled->attune, cpu))
                    attune_announce();
                if (!runs && !attune_longest_ready(cpu))
                    me->looked--;                /* another one has taken it: there may be more */
                gone = attune_send(pulled, cpu); /* its affinity has changed while it moved */
            }
        }
    }
#endif
    if (attune_failure.failed) {
        attune_unlock();
        attune_give_up();
        return;
    }
    if (attune_all_ready())
        attune_ask_idle(cpu);
#if ATTUNE_INSTANCES > 1
    if (me->unfit)
        attune_ask_idle_to(cpu, 1); /* another one may run what this one may not */
    now = attune_answer.now;
    if (running)
        stopped = attune_send(running, cpu);
    if (!gone && !stopped)
        gone = attune_balance(cpu, &lonely);
#endif
    attune_unlock();
#if ATTUNE_INSTANCES > 1
    if (gone)
        attune_bring_in(gone);
    if (stopped)
        attune_bring_in(stopped);
    if (lonely)
        attune_find_company(cpu, now);
    attune_set_pace(now);
#endif
    attune_arm(me, cpu);
    if (runs || me->others)
        return;
    if (attune_statistics.fall_backs)
        scx_bpf_dsq_move_to_local(ATTUNE_FALL_BACK_QUEUE);
    attune_look_again(me, cpu);
}

/* A higher class gives the CPU back, and the kernel goes on with the thread that it interrupted: a
 * kick that was lost meanwhile is repeated, and counts as soon as that thread runs. */
ATTUNE_SECTION("struct_ops/cpu_acquire") void attune_cpu_acquire(unsigned long long *context)
{
    uint32_t cpu = (uint32_t)context[0];
    if (attune_cpus[cpu].kicked)
        attune_kick(cpu);
}

/* A kick was lost, and the kernel does not tell of CPUs that come back. */
ATTUNE_SECTION("struct_ops/tick") void attune_tick(unsigned long long *context)
{
    struct task_struct *running = (void *)context[0];
    uint32_t cpu = bpf_get_smp_processor_id();
    if (attune_cpus[cpu].kicked)
        scx_bpf_task_set_slice(running, 0);
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
