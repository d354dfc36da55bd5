/* SPDX-License-Identifier: GPL-2.0 */
/* Runs: random events, or threads that compute and the share that each of them has. */

static void start(uint64_t seed, uint32_t per_cache)
{
    chance = seed * 2 + 1;
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++) {
        struct cpu *it = &cpus[cpu];
        attune_cache_of[cpu] = cpu / per_cache;
        attune_instance_of[cpu] = cpu * ATTUNE_INSTANCES / ATTUNE_CPUS;
        all_online.bits[0] |= 1ul << cpu;
        it->stack = malloc(STACK);
        it->idle = 1;
        getcontext(&it->context);
        it->context.uc_stack.ss_sp = it->stack;
        it->context.uc_stack.ss_size = STACK;
        makecontext(&it->context, (void (*)(void))live_from, 1, (int)cpu);
    }
    attune_cpu_count = ATTUNE_CPUS;
    attune_seed = seed;
    for (int i = 0; i < TASKS; i++)
        tasks[i].mask.bits[0] = all_online.bits[0];
}

static void init(void)
{
    unsigned long long context[1] = {0};
    if (attune_init(context))
        broken("init refuses");
}

/* So many random events. */
static void storm(uint64_t count)
{
    uint64_t next = 0;
    while (events < count) {
        step(below(ATTUNE_CPUS));
        /* now and then there is time for lags */
        clock_now += below(8) ? below(1000) : below(events / 1000 % 2 ? 40000000 : 2000000);
        if (events >= next) {
            settle();
            audit();
            next = events + 20 + below(200);
        }
    }
    printf("%llu events, %llu moves, %llu of them pulled, %llu for balance, CPUs went %llu times\n",
           (unsigned long long)events, (unsigned long long)attune_statistics.moves,
           (unsigned long long)attune_statistics.pulls,
           (unsigned long long)attune_statistics.balanced, (unsigned long long)goings);
}

#define TICK 4000000ll

/* Time passes to the next timer or tick. */
static void pass(void)
{
    int64_t next = clock_now - clock_now % TICK + TICK;
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
        if (timers[cpu].at && timers[cpu].at < next)
            next = timers[cpu].at;
    clock_now = next > clock_now ? next : clock_now;
    for (uint32_t cpu = 0; next % TICK == 0 && cpu < ATTUNE_CPUS; cpu++) {
        unsigned long long context[1] = {(uintptr_t)cpus[cpu].current};
        here = cpu;
        if (!context[0])
            continue;
        attune_tick(context);
        cpus[cpu].must |= !cpus[cpu].current->it.scx.slice;
    }
}

/* What each thread should have of all CPUs: by weight, none more than one CPU. */
static void divide(const int *nices, int count, double *due)
{
    double left = ATTUNE_CPUS, weights = 0;
    int sated[TASKS] = {0};
    for (int i = 0; i < count; i++)
        weights += attune_weights[nices[i] - ATTUNE_NICEST];
    for (int again = 1; again;) {
        again = 0;
        for (int i = 0; i < count; i++) {
            double weight = attune_weights[nices[i] - ATTUNE_NICEST];
            if (!sated[i] && left * weight > weights) {
                sated[i] = again = 1;
                due[i] = 1;
                left -= 1;
                weights -= weight;
            }
        }
    }
    for (int i = 0; i < count; i++)
        if (!sated[i])
            due[i] = left * attune_weights[nices[i] - ATTUNE_NICEST] / weights;
}

/* Threads that compute, of these nice values, for so many seconds: the worst part by which one is
 * off what it should have had, in per cent. */
static void share(int seconds, char **words, int count)
{
    int nices[TASKS];
    double due[TASKS], worst = 0;
    int64_t begins = clock_now, ends = begins + seconds * 1000000000ll;
    for (int i = 0; i < count; i++)
        nices[i] = atoi(words[i]);
    divide(nices, count, due);
    calm = 1;
    /* they all begin on the first CPU's coroutine, as children of one shell */
    beginners = count;
    beginner_nices = nices;
    while (clock_now < ends) {
        for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
            step(cpu);
        if (!is_busy() && !beginners)
            pass();
        else
            clock_now += 500;
    }
    for (int i = 0; i < count; i++) {
        struct task *t = &tasks[i];
        int64_t ran = t->ran + (t->place == RUNS ? clock_now - t->runs_since : 0);
        double off = ((double)ran / (double)(clock_now - begins) / due[i] - 1) * 100;
        if (off < 0)
            off = -off;
        worst = off > worst ? off : worst;
    }
    printf("%.2f %% off, %llu moves, %llu for balance\n", worst,
           (unsigned long long)attune_statistics.moves,
           (unsigned long long)attune_statistics.balanced);
}

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(PATIENCE); /* a mistake may make it run without end */
    start(strtoull(words[2], NULL, 10), (uint32_t)atoi(words[4]));
    init();
    started = 1;
    if (!strcmp(words[1], "storm"))
        storm(strtoull(words[3], NULL, 10));
    else
        share(atoi(words[3]), words + 5, count - 5);
    return 0;
}
