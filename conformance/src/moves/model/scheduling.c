/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's side: each CPU's own queue, and when it calls the engine. */

static void append(uint32_t cpu, struct task *t)
{
    struct cpu *it = &cpus[cpu];
    t->next = NULL;
    if (it->last)
        it->last->next = t;
    else
        it->first = t;
    it->last = t;
    t->place = QUEUED;
    t->cpu = cpu;
}

static void drop(struct task *t)
{
    struct cpu *it = &cpus[t->cpu];
    struct task *before = NULL;
    for (struct task *u = it->first; u; before = u, u = u->next) {
        if (u != t)
            continue;
        if (before)
            before->next = t->next;
        else
            it->first = t->next;
        if (it->last == t)
            it->last = before;
        return;
    }
}

static int is_allowed(const struct task *t, uint32_t cpu)
{
    return (int)(t->mask.bits[0] >> cpu & 1);
}

/* Under the lock of its CPU. The engine may put it on a CPU's own queue; that of another CPU has it
 * when this lock is given back: 1 + that CPU. */
static int enqueue(struct task *t, uint64_t flags)
{
    unsigned long long context[2] = {(uintptr_t)t, flags};
    int to;
    t->it.scx.flags |= SCX_TASK_QUEUED;
    t->it.on_rq = 1;
    t->number++;
    if (cpus[t->cpu].presence == AWAY) {
        append(t->cpu, t);
        return 0;
    }
    t->place = ENGINES;
    t->put_on = 0;
    cpus[here].enqueued = t;
    attune_enqueue(context);
    cpus[here].enqueued = NULL;
    to = t->put_on;
    t->put_on = 0;
    if (to == 1 + (int)t->cpu) {
        append(t->cpu, t);
        to = 0;
    }
    if (!cpus[t->cpu].current)
        cpus[t->cpu].must = 1;
    return to;
}

/* Without a lock: the thread that an enqueue has put on another CPU's queue. */
static void forward(struct task *t, int to, uint64_t number)
{
    uint32_t from;
    if (!to)
        return;
    from = t->cpu;
    take(&cpus[from].lock);
    if (t->place != ENGINES || t->number != number || t->cpu != from) {
        cpus[from].lock = 0;
        return;
    }
    t->it.on_rq = 2;
    cpus[from].lock = 0;
    take(&cpus[to - 1].lock);
    t->it.on_rq = 1;
    if (t->place == ENGINES && t->number == number) {
        if (!is_allowed(t, (uint32_t)to - 1))
            broken("thread %d is put on CPU %d, where it may not run", t->it.pid, to - 1);
        append((uint32_t)to - 1, t);
        if (!cpus[to - 1].current)
            cpus[to - 1].must = 1;
    }
    cpus[to - 1].lock = 0;
}

/* Under the lock of its CPU: it is runnable no more, or about to be moved. */
static void dequeue(struct task *t)
{
    if (t->place == QUEUED)
        drop(t);
    t->it.scx.flags &= ~SCX_TASK_QUEUED;
    t->number++;
}

/* The lock of the thread itself, and of the CPU where it is. */
static void take_both(struct task *t)
{
    take(&t->lock);
    for (;;) {
        uint32_t cpu = t->cpu;
        take(&cpus[cpu].lock);
        /* what moves a running thread has that thread's CPU */
        if (t->cpu == cpu && t->it.on_rq != 2 && !(t->place == RUNS && cpus[cpu].schedules))
            return;
        cpus[cpu].lock = 0;
        let_others();
    }
}

/* Under both its locks: to a CPU where it may run. */
static void migrate(struct task *t)
{
    t->it.on_rq = 2;
    cpus[t->cpu].lock = 0;
    t->cpu = some_allowed(t);
    take(&cpus[t->cpu].lock);
}

static void give_both(struct task *t)
{
    cpus[t->cpu].lock = 0;
    t->lock = 0;
}

static void end_task(struct task *t)
{
    unsigned long long context[2] = {(uintptr_t)t, 0};
    t->alive = 0;
    if (t->in_class)
        attune_disable(context);
    attune_exit_task(context);
}

/* What dispatch has chosen comes to this CPU's queue, if it is still what it was. Under the lock of
 * the CPU, which is given back for a while. */
static void bring_chosen(uint32_t cpu)
{
    struct cpu *me = &cpus[cpu];
    struct task *t = me->chosen;
    uint64_t number = me->chosen_number;
    uint32_t from;
    me->chosen = NULL;
    if (!t || !t->alive || t->number != number || t->place != ENGINES)
        return;
    from = t->cpu;
    if (from != cpu) {
        me->lock = 0;
        take(&cpus[from].lock);
        if (!t->alive || t->number != number || t->place != ENGINES || t->cpu != from) {
            cpus[from].lock = 0;
            take(&me->lock);
            return;
        }
        if (!is_allowed(t, cpu))
            broken("thread %d is dispatched on CPU %u, where it may not run", t->it.pid, cpu);
        t->it.on_rq = 2;
        t->cpu = cpu;
        cpus[from].lock = 0;
        take(&me->lock);
        t->it.on_rq = 1;
    } else if (!is_allowed(t, cpu))
        broken("thread %d is dispatched on CPU %u, where it may not run", t->it.pid, cpu);
    if (t->alive && t->number == number && t->place == ENGINES)
        append(cpu, t);
}

/* What dispatch has handed over comes to the queues of the CPUs where it is. Under the lock of this
 * CPU, which is given back for a while. */
static void bring_handed(struct cpu *me)
{
    for (; me->handed_count; me->handed_count--) {
        struct handed it = me->handed[me->handed_count - 1];
        uint32_t to = it.task->cpu;
        me->lock = 0;
        take(&cpus[to].lock);
        if (it.task->alive && it.task->number == it.number && it.task->place == ENGINES &&
            it.task->cpu == to) {
            append(to, it.task);
            cpus[to].must = 1;
        }
        cpus[to].lock = 0;
        take(&me->lock);
    }
}

static void schedule(uint32_t cpu)
{
    struct cpu *me = &cpus[cpu];
    struct task *previous, *next = NULL;
    uint64_t number = 0;
    int keeps = 0, to = 0, ends;
    take(&me->lock);
    me->schedules = 1;
    previous = me->current;
    ends = previous && previous->dies;
    me->must = 0;
    for (int turns = 0; turns < 32; turns++) {
        int runnable = previous && previous->it.scx.flags & SCX_TASK_QUEUED;
        unsigned long long context[2] = {
            cpu, (uintptr_t)(previous && previous->in_class ? previous : NULL)};
        struct task *chosen;
        if (runnable && previous->it.scx.slice) {
            keeps = 1;
            break;
        }
        if (me->first)
            break;
        attune_dispatch(context);
        chosen = me->chosen;
        bring_chosen(cpu);
        bring_handed(me);
        if (previous && previous->it.scx.flags & SCX_TASK_QUEUED && previous->it.scx.slice) {
            keeps = 1;
            break;
        }
        if (me->first || !chosen)
            break;
    }
    if (previous && !keeps) {
        if (previous->place == RUNS) {
            previous->ran += clock_now - previous->runs_since;
            if (previous->it.scx.flags & SCX_TASK_QUEUED) {
                to = enqueue(previous, 0);
                number = previous->number;
            } else
                previous->place = SLEEPS;
        }
        me->current = NULL;
    }
    if (keeps) {
        if (!is_allowed(previous, cpu))
            broken("thread %d stays on CPU %u, where it may not run", previous->it.pid, cpu);
    } else if ((next = me->first)) {
        drop(next);
        if (!is_allowed(next, cpu))
            broken("thread %d runs on CPU %u, where it may not run", next->it.pid, cpu);
        next->place = RUNS;
        next->runs_since = clock_now;
        if (!next->it.scx.slice)
            next->it.scx.slice = 1; /* as the kernel gives one */
        me->current = next;
        if (!previous) {
            unsigned long long context[2] = {cpu, 0};
            me->idle = 0;
            attune_update_idle(context);
        }
    } else {
        if (previous) {
            unsigned long long context[2] = {cpu, 1};
            attune_update_idle(context);
        }
        me->idle = 1;
    }
    me->schedules = 0;
    if (me->kicked)
        preempt(cpu);
    me->lock = 0;
    forward(previous, to, number);
    if (ends) {
        take_both(previous);
        end_task(previous);
        give_both(previous);
    }
}
