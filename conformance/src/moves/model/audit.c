/* SPDX-License-Identifier: GPL-2.0 */
/* Lets the machine come to rest, and then compares what the engine keeps with what the model
 * knows. */

static void step(uint32_t cpu)
{
    here = cpu;
    swapcontext(&main_context, &cpus[cpu].context);
}

/* Whether the CPU must schedule, or will when a slice of the kernel's ends; has threads to push
 * off; is in the middle of something, or holds a lock. */
static int is_cpu_busy(uint32_t cpu)
{
    struct cpu *it = &cpus[cpu];
    if (!it->done || it->lock || (timers[cpu].at && timers[cpu].at <= clock_now))
        return 1;
    if (it->presence != THERE)
        return it->current || it->first;
    return it->must || (it->current && it->current->it.scx.slice != SCX_SLICE_INF);
}

static int is_busy(void)
{
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
        if (is_cpu_busy(cpu))
            return 1;
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].lock || tasks[i].it.on_rq == 2)
            return 1;
    return 0;
}

/* Everybody goes on until nobody has anything to do. */
static void settle(void)
{
    int quiet = 0;
    calm = 1;
    for (uint64_t turns = 0; quiet < 2; turns++) {
        if (turns > 100000)
            broken("the machine does not come to rest");
        for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
            step(cpu);
        quiet = is_busy() ? 0 : quiet + 1;
    }
    calm = 0;
}

/* Each instance numbers its CPUs that are there. A gap stays until the CPU that has the last number
 * chooses again. */
static void audit_numbers(void)
{
    uint32_t there[ATTUNE_INSTANCES] = {0};
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++) {
        uint32_t instance = attune_cpus[cpu].instance;
        if (attune_cpu_of[instance][attune_cpus[cpu].local] != cpu)
            broken("CPU %u has another one's number", cpu);
        if (attune_cpus[cpu].there != (cpus[cpu].presence == THERE))
            broken("the engine is wrong about CPU %u", cpu);
        there[instance] += attune_cpus[cpu].there;
        if (attune_cpus[cpu].there &&
            attune_cpus[cpu].local >= attune_instances[instance].attune.cpus)
            broken("CPU %u has a number beyond all", cpu);
    }
    for (uint32_t i = 0; i < ATTUNE_INSTANCES; i++) {
        uint32_t count = attune_instances[i].attune.cpus;
        struct cpu *last = &cpus[attune_cpu_of[i][count - 1]];
        if (there[i] != attune_there[i] || (there[i] && there[i] != count && !last->current))
            broken("instance %u numbers %u CPUs, and has %u", i, count, there[i]);
    }
}

/* At rest: the engine's books are right, and no CPU idles beside a thread that it could run. */
static void audit(void)
{
    int64_t lags = 0, all_lags = 0, loads[ATTUNE_INSTANCES] = {0};
    uint64_t ready[ATTUNE_INSTANCES] = {0};
    for (int i = 0; i < TASKS; i++) {
        struct task *task = &tasks[i];
        struct thread *t = (struct thread *)task->slot.record;
        enum attune_state expected;
        if (!task->alive || !t)
            continue;
        expected = !task->in_class || t->attune_task.state == ATTUNE_UNKNOWN ? ATTUNE_UNKNOWN
                   : task->place == RUNS                                     ? ATTUNE_RUNNING
                   : task->place == ENGINES                                  ? ATTUNE_READY
                                                                             : ATTUNE_WAITING;
        if (t->attune_task.state == ATTUNE_AWAY && expected == ATTUNE_WAITING) {
            if (t->attune.where || t->attune_task.account.load)
                broken("thread %d is away, and there", task->it.pid);
            lags += t->attune_task.account.lag;
            continue;
        }
        if (task->place == QUEUED)
            broken("thread %d is left on a CPU's queue", task->it.pid);
        if (t->attune_task.state != expected ||
            (expected == ATTUNE_UNKNOWN && task->in_class && task->place != SLEEPS))
            broken("thread %d is %d to the engine, %d expected", task->it.pid, t->attune_task.state,
                   expected);
        if (expected == ATTUNE_UNKNOWN)
            continue;
        if (!t->attune.where)
            broken("thread %d sits in no container", task->it.pid);
        if ((char *)t->attune.where < (char *)&attune_instances[t->attune_task.instance] ||
            (char *)t->attune.where >= (char *)&attune_instances[t->attune_task.instance + 1])
            broken("thread %d sits in another instance", task->it.pid);
        lags += t->attune_task.account.lag;
        loads[t->attune_task.instance] += t->attune_task.account.load;
        if (!t->attune_task.account.load == (expected != ATTUNE_WAITING))
            broken("thread %d has a wrong load", task->it.pid);
        if (expected == ATTUNE_RUNNING &&
            (attune_cpus[task->cpu].running != t ||
             attune_cpus[task->cpu].instance != t->attune_task.instance))
            broken("thread %d runs on CPU %u, the engine knows nothing of it", task->it.pid,
                   task->cpu);
        if (expected != ATTUNE_READY)
            continue;
        ready[t->attune_task.instance]++;
        if (attune_allowed_in(t, t->attune_task.instance) >= ATTUNE_CPUS)
            broken("thread %d is ready where it may not run", task->it.pid);
        for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
            if (!cpus[cpu].current && cpus[cpu].presence == THERE && is_allowed(task, cpu))
                broken("CPU %u idles beside thread %d", cpu, task->it.pid);
    }
    for (uint32_t i = 0; i < ATTUNE_INSTANCES; i++) {
        uint64_t listed = 0, anywhere = 0, pinned_on[ATTUNE_CPUS] = {0};
        struct thread *last = NULL;
        for (struct thread *t = attune_lists[i].first; t; t = t->attune_task.ready_behind) {
            if (t->attune_task.ready_before != last || t->attune_task.instance != i)
                broken("the list of instance %u is not one", i);
            if (last && last->attune_task.ready_since > t->attune_task.ready_since)
                broken("the list of instance %u has no order", i);
            last = t;
            listed++;
            anywhere += !t->attune.pinned;
            for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
                pinned_on[cpu] += t->attune.pinned && attune_may_run_on(&t->attune, cpu);
        }
        if (listed != ready[i] || attune_domains[i][0].ready != ready[i])
            broken("instance %u has %llu ready threads, lists %llu and counts %llu", i,
                   (unsigned long long)ready[i], (unsigned long long)listed,
                   (unsigned long long)attune_domains[i][0].ready);
        if (attune_lists[i].anywhere != anywhere)
            broken("instance %u counts %u ready threads that may run anywhere, of %llu", i,
                   attune_lists[i].anywhere, (unsigned long long)anywhere);
        for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
            if (attune_lists[i].pinned_on[cpu] != pinned_on[cpu])
                broken("instance %u counts %u ready threads pinned on CPU %u, of %llu", i,
                       attune_lists[i].pinned_on[cpu], cpu, (unsigned long long)pinned_on[cpu]);
        if (attune_books[i].load != loads[i])
            broken("instance %u has load %lld, its threads %lld", i,
                   (long long)attune_books[i].load, (long long)loads[i]);
        all_lags += attune_books[i].lags;
    }
    audit_numbers();
    if (lags != all_lags)
        broken("lags add up to %lld, the books say %lld", (long long)lags, (long long)all_lags);
}
