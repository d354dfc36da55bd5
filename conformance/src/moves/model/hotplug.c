/* SPDX-License-Identifier: GPL-2.0 */
/* CPUs that go and come. The kernel tells the engine first; then it pushes threads off the CPU, and
 * waits until none is there.
 */

static unsigned long goings;

static int is_last(void)
{
    uint32_t there = 0;
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
        there += cpus[cpu].presence == THERE;
    return there < 2;
}

static uint32_t some_there(void)
{
    uint32_t cpu = below(ATTUNE_CPUS);
    while (cpus[cpu].presence != THERE)
        cpu = (cpu + 1) % ATTUNE_CPUS;
    return cpu;
}

static void go(uint32_t cpu)
{
    if (is_last())
        return;
    attune_cpu_goes(cpu);
    cpus[cpu].presence = GOING;
    cpus[cpu].idle = 0;
    preempt(some_there()); /* the kernel waits for RCU, whose thread wakes */
    goings++;
}

static void come(uint32_t cpu)
{
    cpus[cpu].presence = THERE;
    cpus[cpu].must = 1;
    attune_cpu_comes(cpu);
}

/* A thread that the kernel has on the CPU goes to another one. */
static void push(struct task *t, uint32_t cpu)
{
    uint64_t number;
    int to;
    take_both(t);
    if (!t->alive || t->cpu != cpu || !(t->it.scx.flags & SCX_TASK_QUEUED) ||
        (t->place != QUEUED && t->place != RUNS)) {
        give_both(t);
        return;
    }
    if (t->place == RUNS) {
        cpus[cpu].current = NULL;
        t->ran += clock_now - t->runs_since;
    }
    dequeue(t);
    t->place = ENGINES;
    migrate(t);
    to = enqueue(t, 0);
    number = t->number;
    give_both(t);
    forward(t, to, number);
}

/* A thread that can run is there. */
static int has_threads(uint32_t cpu)
{
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].alive && tasks[i].cpu == cpu && tasks[i].place != SLEEPS)
            return 1;
    return cpus[cpu].current != NULL;
}

/* A turn of a CPU that goes. */
static void leave(uint32_t cpu)
{
    struct cpu *me = &cpus[cpu];
    if (me->must)
        schedule(cpu);
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].cpu == cpu)
            push(&tasks[i], cpu);
    if (me->presence == GOING && !has_threads(cpu))
        me->presence = AWAY;
    if (!calm && !below(30))
        come(cpu);
}
