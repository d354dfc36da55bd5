/* SPDX-License-Identifier: GPL-2.0 */
/* What programs do: threads begin, wake, block, yield, end, and change class and affinity. */

/* One that moves between instances at this moment more often than another. */
static struct task *any(void)
{
    uint32_t first = below(TASKS);
    for (uint32_t i = below(2) ? 0 : TASKS; i < TASKS; i++) {
        struct task *t = &tasks[(first + i) % TASKS];
        struct thread *record = (struct thread *)t->slot.record;
        if (t->alive && record && record->attune_task.state == ATTUNE_MOVING)
            return t;
    }
    return &tasks[first];
}

static void wake(struct task *t)
{
    unsigned long long context[3];
    uint64_t number;
    int to = 0;
    take(&t->lock);
    /* it still leaves its CPU */
    while (t->place == RUNS && !(t->it.scx.flags & SCX_TASK_QUEUED))
        let_others();
    if (t->alive && t->in_class && t->place == SLEEPS && !t->dies) {
        context[0] = (uintptr_t)t;
        context[1] = t->cpu;
        context[2] = SCX_ENQ_WAKEUP;
        t->it.__state = 0;
        t->cpu = (uint32_t)attune_select_cpu(context);
        take(&cpus[t->cpu].lock);
        to = enqueue(t, SCX_ENQ_WAKEUP);
        number = t->number;
        cpus[t->cpu].lock = 0;
        t->lock = 0;
        forward(t, to, number);
        return;
    }
    t->lock = 0;
}

/* Any of the CPUs, a single one often. */
static unsigned long some_cpus(void)
{
    unsigned long all = ATTUNE_CPUS < 64 ? (1ul << ATTUNE_CPUS) - 1 : ~0ul, some;
    switch (below(4)) {
    case 0:
        return all;
    case 1:
        return 1ul << below(ATTUNE_CPUS);
    default:
        some = all & (((unsigned long)below(1u << 16)) | 1ul << below(ATTUNE_CPUS));
        return some;
    }
}

static int count_cpus(const struct task *t)
{
    return __builtin_popcountl(t->mask.bits[0]);
}

static void begin(struct task *t, int nice, unsigned long allowed)
{
    unsigned long long context[3] = {(uintptr_t)t, 0, 0};
    struct scx_init_task_args args = {1};
    uint64_t number = t->number;
    int to;
    take(&t->lock);
    if (t->alive || t->place != SLEEPS) {
        t->lock = 0;
        return;
    }
    memset(&t->it, 0, sizeof t->it);
    memset(&t->slot, 0, sizeof t->slot);
    t->has_slot = t->dies = 0;
    t->ran = 0;
    t->in_class = 1;
    t->it.cpus_ptr = &t->mask;
    t->it.real_cred = &t->cred;
    t->it.group_leader = t->it.real_parent = &t->it;
    t->it.pid = t->it.tgid = 1 + (int)(t - tasks);
    t->it.scx.tid = ++tids;
    t->it.static_prio = 120 + nice;
    t->mask.bits[0] = allowed;
    t->it.nr_cpus_allowed = count_cpus(t);
    t->number = number + 1;
    t->cpu = some_allowed(t);
    t->alive = 1;
    context[1] = (uintptr_t)&args;
    attune_init_task(context);
    context[1] = 0;
    attune_set_weight(context);
    context[1] = t->cpu;
    t->cpu = (uint32_t)attune_select_cpu(context);
    take(&cpus[t->cpu].lock);
    to = enqueue(t, 0);
    number = t->number;
    cpus[t->cpu].lock = 0;
    t->lock = 0;
    forward(t, to, number);
}

/* One of these CPUs is there. */
static int has_cpu(unsigned long mask)
{
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
        if (mask >> cpu & 1 && cpus[cpu].presence == THERE)
            return 1;
    return 0;
}

/* set_cpus_allowed: out of its queue, and in again. A thread that runs where it may not is moved as
 * the kernel's stopper does it. */
static void allow(struct task *t, unsigned long mask)
{
    int to = 0;
    uint64_t number;
    take_both(t);
    if (!t->alive || t->dies || !has_cpu(mask)) {
        give_both(t);
        return;
    }
    if (t->place == RUNS) {
        t->mask.bits[0] = mask;
        t->it.nr_cpus_allowed = count_cpus(t);
        if (!is_allowed(t, t->cpu) && t->it.scx.flags & SCX_TASK_QUEUED) {
            struct cpu *it = &cpus[t->cpu];
            it->current = NULL;
            it->must = 1;
            t->ran += clock_now - t->runs_since;
            dequeue(t);
            t->place = ENGINES;
            migrate(t);
            to = enqueue(t, 0);
        }
    } else if (t->place == SLEEPS) {
        t->mask.bits[0] = mask;
        t->it.nr_cpus_allowed = count_cpus(t);
    } else if (t->in_class) {
        dequeue(t);
        t->place = ENGINES;
        t->mask.bits[0] = mask;
        t->it.nr_cpus_allowed = count_cpus(t);
        if (!is_allowed(t, t->cpu))
            migrate(t);
        to = enqueue(t, 0);
    }
    number = t->number;
    give_both(t);
    forward(t, to, number);
}

/* Into another class, asleep or able to run, or back. */
static void change_class(struct task *t)
{
    unsigned long long context[2] = {(uintptr_t)t, 0};
    int to = 0;
    uint64_t number;
    take_both(t);
    if (!t->alive || t->dies || t->place == RUNS) {
        give_both(t);
        return;
    }
    if (t->in_class) {
        int able = t->place != SLEEPS;
        if (able)
            dequeue(t);
        attune_disable(context);
        t->in_class = 0;
        t->place = SLEEPS;
        t->it.on_rq = able;
    } else {
        t->in_class = 1;
        attune_set_weight(context);
        if (t->it.on_rq) {
            if (!is_allowed(t, t->cpu) || cpus[t->cpu].presence == AWAY)
                migrate(t);
            to = enqueue(t, 0);
        }
    }
    number = t->number;
    give_both(t);
    forward(t, to, number);
}

/* A thread ends wherever it is, as when its fork is taken back. */
static void vanish(struct task *t)
{
    take_both(t);
    if (t->alive && !t->dies && t->place != RUNS) {
        if (t->place != SLEEPS)
            dequeue(t);
        t->place = SLEEPS;
        t->it.on_rq = 0;
        end_task(t);
    }
    give_both(t);
}

static void block(uint32_t cpu, int dies)
{
    struct task *t;
    take(&cpus[cpu].lock);
    t = cpus[cpu].current;
    if (t && t->place == RUNS && t->it.scx.flags & SCX_TASK_QUEUED) {
        t->dies = dies;
        t->it.__state = dies ? TASK_DEAD : 1;
        t->it.scx.flags &= ~SCX_TASK_QUEUED;
        t->it.on_rq = 0;
        t->number++;
        cpus[cpu].must = 1;
    }
    cpus[cpu].lock = 0;
}

static void yield(uint32_t cpu)
{
    unsigned long long context[2] = {0, 0};
    take(&cpus[cpu].lock);
    if (cpus[cpu].current && cpus[cpu].current->it.scx.flags & SCX_TASK_QUEUED) {
        context[0] = (uintptr_t)cpus[cpu].current;
        attune_yield(context);
        cpus[cpu].must = 1;
    }
    cpus[cpu].lock = 0;
}

static void act(uint32_t cpu)
{
    struct task *t = any();
    events++;
    switch (below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        wake(t);
        break;
    case 4:
    case 5:
    case 6:
        block(cpu, 0);
        break;
    case 7:
        yield(cpu);
        break;
    case 8:
    case 9:
        begin(t, (int)below(8) - 2, some_cpus());
        break;
    case 10:
        block(cpu, !below(2));
        break;
    case 11:
    case 12:
    case 13:
        allow(t, some_cpus());
        break;
    case 14:
        change_class(t);
        break;
    case 15:
        if (!below(4))
            vanish(t);
        else if (!below(8))
            go(cpu);
        break;
    }
}

/* Threads that are to begin, and their nice values. */
static int beginners;
static const int *beginner_nices;

/* The CPU's timer, and those of CPUs that are away. */
static void fire(uint32_t cpu)
{
    for (uint32_t key = 0; key < ATTUNE_CPUS && cpus[cpu].presence == THERE; key++) {
        if ((key != cpu && cpus[key].presence == THERE) || !timers[key].at ||
            timers[key].at > clock_now)
            continue;
        timers[key].at = 0;
        attune_fires(NULL, &key, &timer_places[key]);
    }
}

/* A thread that the kernel runs by itself runs for a while, and not on while nothing else happens.
 */
static void end_kernels_slice(struct cpu *me)
{
    struct task *t = me->current;
    if (t && t->it.scx.slice != SCX_SLICE_INF && (calm || !below(4))) {
        t->it.scx.slice = 0;
        me->must = 1;
    }
}

static void live(uint32_t cpu)
{
    for (;;) {
        struct cpu *me = &cpus[cpu];
        fire(cpu);
        end_kernels_slice(me);
        if (me->presence != THERE)
            leave(cpu);
        else if (me->must)
            schedule(cpu);
        else if (beginners && cpu == 0) {
            begin(&tasks[beginners - 1], beginner_nices[beginners - 1], all_online.bits[0]);
            beginners--;
        } else if (!calm)
            act(cpu);
        me->done = 1;
        let_others();
        me->done = 0;
    }
}

static void live_from(int low)
{
    live((uint32_t)low);
}
