/* SPDX-License-Identifier: GPL-2.0 */
/* A CPU is made to choose again: its slice is over, the policy said `preempt`, or it idles while
 * a thread is ready.
 *
 * Kicks do it, and dispatch looks at the clock. A kick is lost while a higher class runs there: so
 * a kick is noted in `kicked`, and repeated when that class gives the CPU back. On a kernel that
 * does not tell of this, the next tick of a CPU that was kicked and has not been asked since ends
 * the stay.
 */
#define ATTUNE_FEW        32 /* a policy walks so many ready threads in some 25 us */
#define ATTUNE_SMALL_PART 8  /* of a slice: one of so many */

static inline int64_t attune_wakes_at(const struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu)
{
    return attune_earlier(attune_earlier(attune_end(me), attune_next_alarm(cpu)),
                          attune_next_release(cpu));
}

/* One timer a CPU, for whatever comes first. A slice that is not used up costs nothing but the
 * look: the timer stays armed for the earliest end that it ever had, and finds out when it fires.
 */
static inline void attune_arm(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu)
{
    int64_t at = attune_wakes_at(me, cpu);
    struct attune_timer *timer;
    if (!at || (me->armed && me->armed <= at) || !attune_may_interrupt())
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
    int64_t now = attune_clock(), at;
    attune_statistics.timers++;
    attune_look_at_turn(me, now);
    at = attune_wakes_at(me, cpu);
    if (!at) {
        me->armed = 0;
    } else if (at <= now) {
        me->armed = 0;
        attune_kick(cpu);
    } else {
        me->armed = at;
        bpf_timer_start(&timer->timer, (uint64_t)at, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
    }
    return 0;
}

/* `preempt c at T`. */
static void attune_preempt(struct attune_instance ATTUNE_ARENA *attune, int64_t cpu, int64_t at)
{
    struct attune_cpu ATTUNE_ARENA *it;
    if (cpu < 0 || cpu >= (int64_t)attune->cpus)
        return;
#if ATTUNE_CPUS > 1
    cpu = attune_number_of(cpu);
#endif
    it = &attune_cpus[cpu];
    if (!it->running || it->preempt)
        return;
#if ATTUNE_DOMAINS > 1
    if (attune_domain_here(it) != attune_calling) { /* to this policy that CPU is idle */
        uint32_t domain = attune_domain_index(attune_calling);
        it->wanted[domain] = attune_earlier(it->wanted[domain], at > 0 ? at : 1);
        if (cpu != bpf_get_smp_processor_id())
            attune_kick((uint32_t)cpu); /* to look at its timer */
        return;
    }
#endif
    if (at > attune_answer.now) {
        it->preempt_at = attune_earlier(it->preempt_at, at);
        if (cpu == bpf_get_smp_processor_id())
            /* its timer is armed when the handlers are done */
            return;
    } else {
        it->preempt = 1;
    }
    attune_statistics.kicks++;
    attune_kick((uint32_t)cpu);
}

/* The CPU chooses: what was asked of the thread before is done with. */
static inline void attune_chooses(struct attune_cpu ATTUNE_ARENA *me)
{
    me->preempt = 0;
    me->preempt_at = 0;
    me->deadline = 0;
    me->begun = 0;
}

/* Under the lock, after `schedule`: the chosen thread has so long from now on. A handler that walks
 * many threads, or the wait for the lock in which the thread before is put back, may take longer
 * than a short slice. That is not part of the slice, or the thread would lose its turn before it
 * runs. Among few threads a look at the clock would cost more than it finds. */
static inline void attune_begin_slice(struct attune_cpu ATTUNE_ARENA *me, uint32_t domain,
                                      int64_t slice)
{
    int64_t now = attune_answer.now;
    if (attune_domains[attune_held()][domain].ready > ATTUNE_FEW)
        me->begun = now = attune_clock();
    me->deadline = now + (slice ? slice : 1);
}

/* The thread before has been put back, and the slice begins only now. The timer for its end is set:
 * a small part of a slice is not worth that it fires twice. */
static inline void attune_begin_again(struct attune_cpu ATTUNE_ARENA *me)
{
    int64_t lost;
    if (!me->begun)
        return;
    lost = attune_clock() - me->begun;
    if (lost > (me->deadline - me->begun) / ATTUNE_SMALL_PART)
        me->deadline += lost;
    me->begun = 0;
}

/* That CPU idles, and has not chosen a thread that is still on its way. The kernel wakes it when it
 * puts a thread there. */
static inline int attune_idles(uint32_t cpu)
{
#if ATTUNE_CPUS > 1
    const struct task_struct *runs = scx_bpf_cpu_curr((int32_t)cpu);
    return runs && !runs->pid && !attune_cpus[cpu].running && attune_is_there(cpu);
#else
    return 0;
#endif
}

/* The idle CPU has not been asked since the last event; `pulls`: it has not looked beyond its own
 * instance since a thread became ready anywhere. */
static inline int attune_may_help(const struct attune_cpu ATTUNE_ARENA *it, int pulls)
{
#if ATTUNE_INSTANCES > 1
    if (pulls)
        return it->looked != attune_readied;
    if (it->instance != attune_held())
        return 0;
#endif
    return it->asked != attune_events[attune_held()];
}

/* A thread is ready and CPUs are idle: those that have not been asked since the last event are. 1
 * if there is one. */
ATTUNE_OUTLINE attune_ask_idle_to(uint32_t but, int pull)
{
#if ATTUNE_CPUS > 1
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++) {
        struct attune_cpu ATTUNE_ARENA *it = &attune_cpus[cpu];
        if (cpu == but || it->running || !attune_is_there(cpu) || !attune_may_help(it, pull))
            continue;
#if ATTUNE_INSTANCES > 1
        it->called |= (uint32_t)pull;
#endif
        if (scx_bpf_test_and_clear_cpu_idle((int32_t)cpu)) {
            attune_statistics.kicks++;
            attune_interrupt(cpu, SCX_KICK_IDLE);
            return 1; /* it asks the next one */
        }
    }
#endif
    return 0;
}

/* The CPUs of the instance first; others pull. */
static inline int attune_ask_idle(uint32_t but)
{
    return attune_ask_idle_to(but, 0) || (ATTUNE_INSTANCES > 1 && attune_ask_idle_to(but, 1));
}

/* Without a lock, on a CPU that has looked in vain and goes idle, or stays so: the kernel does not
 * note it as idle before it is, and nobody asks it until then. So it looks again if a thread became
 * ready meanwhile. 1 if it does. */
static inline int attune_look_again(const struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu)
{
#if ATTUNE_CPUS > 1
    uint32_t instance = attune_instance_at(cpu);
    int news = attune_ready_in(instance) && me->asked != attune_events[instance];
#if ATTUNE_INSTANCES > 1
    news |= me->looked != attune_readied;
#endif
    if (me->running || !news)
        return 0;
    attune_statistics.kicks++;
    attune_interrupt(cpu, 0);
    return 1;
#else
    return 0;
#endif
}

#if ATTUNE_DOMAINS > 1
/* The CPU goes over to the domain if it is owed. */
static inline int attune_claim_one(uint32_t cpu, uint32_t domain, int64_t now)
{
    struct attune_cpu ATTUNE_ARENA *it = &attune_cpus[cpu];
    if (!it->running || attune_domain_here(it) == domain)
        return 0;
    attune_charge(it, now);
    if ((uint32_t)attune_owed(it, now, 0) != domain)
        return 0;
    if (!it->kicked) {
        attune_statistics.kicks++;
        attune_kick(cpu);
    }
    return 1;
}

/* A thread of the domain is ready, and no CPU is idle: one that the domain is owed makes room,
 * `first` before all others. `t`, if it is not NULL, is that thread. */
static __attribute__((noinline)) void attune_claim(uint32_t domain, uint32_t first,
                                                   struct attune_thread ATTUNE_ARENA *t)
{
    int64_t now = attune_answer.now;
    if (first >= attune_cpu_count || attune_claim_one(first, domain, now))
        return;
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++) {
        if (cpu != first && (!t || attune_may_run_on(t, cpu)) && attune_claim_one(cpu, domain, now))
            return;
    }
}
#endif

/* The running thread's time on that CPU is over. */
static inline int attune_is_over(const struct attune_cpu ATTUNE_ARENA *it)
{
    int64_t end = attune_earlier(it->deadline, it->preempt_at);
    return it->preempt || (end && attune_answer.now >= end);
}
