/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Threads of cgroups whose quota (quota.h) is used up.
 *
 *     schedule dispatches one    switch_out, leaves: it is AWAY, and held by its instance
 *     it runs as that happens    its CPU asks at once, and the policy may choose it again: as above
 *     the period is over         arrives: it is READY, as it left
 *
 * So the policy never waits for a thread that may not run, and a thread that it does not choose
 * stays where it is. A policy that has no `arrives` is told `set_dead` and `newthread`.
 *
 * The kernel's watchdog cannot know why a ready thread does not run. So a thread that has been held
 * for too long since it last ran is run for a moment (rescue.h), which its cgroup pays for.
 *
 * Invariant, under the lock: a thread is in its instance's list exactly if it is `held`, and then
 * it is AWAY and no CPU's guest.
 */
/* clang-format on */
struct attune_held {
    struct thread ATTUNE_ARENA *first;
    int64_t release_at; /* when the first period is over; 0: none is held */
    uint32_t cpu;       /* whose timer wakes for that */
};

static struct attune_held ATTUNE_KEPT ATTUNE_ARENA attune_held_threads[ATTUNE_INSTANCES];

/* 0: none that this CPU looks after. Without the lock it is a hint. */
static inline int64_t attune_next_release(uint32_t cpu)
{
    struct attune_held ATTUNE_ARENA *held = &attune_held_threads[attune_instance_at(cpu)];
    return held->release_at && held->cpu == cpu ? held->release_at : 0;
}

/* Under the lock: the list does not have it. */
static inline void attune_unhold(struct thread ATTUNE_ARENA *t)
{
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    if (!own->held)
        return;
    if (own->held_before)
        own->held_before->attune_task.held_behind = own->held_behind;
    else
        attune_held_threads[attune_held()].first = own->held_behind;
    if (own->held_behind)
        own->held_behind->attune_task.held_before = own->held_before;
    own->held = 0;
}

/* Under the lock: it may be held no longer. */
static inline void attune_look_again(struct thread ATTUNE_ARENA *t)
{
    struct attune_held ATTUNE_ARENA *held = &attune_held_threads[attune_held()];
    if (!t->attune_task.held)
        return;
    held->release_at = attune_answer.now;
    attune_kick(held->cpu);
}

/* Under the lock, on a CPU of its instance: a READY thread that the policy may not run. */
static __attribute__((noinline)) void attune_hold(struct thread ATTUNE_ARENA *t, uint32_t cpu)
{
    struct attune_held ATTUNE_ARENA *held = &attune_held_threads[attune_held()];
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    int64_t left, until;
    attune_take_away(t, cpu);
    own->held = 1;
    own->held_before = NULL;
    own->held_behind = held->first;
    if (held->first)
        held->first->attune_task.held_before = t;
    held->first = t;
    if (!own->held_since)
        own->held_since = attune_answer.now;
    until = attune_look_at_quotas(own->cgroup, attune_answer.now, &left);
    if (!until)
        until = attune_answer.now;
    if (!held->release_at || until < held->release_at) {
        held->release_at = until;
        held->cpu = cpu;
    }
    attune_statistics.throttles++;
}

/* Under the lock: the time of a CPU's thread is over. Others of its cgroups, for which that comes
 * earlier than was foreseen, stop too. */
static __attribute__((noinline)) void attune_stop_spenders(uint32_t but)
{
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++) {
        struct attune_cpu ATTUNE_ARENA *it = &attune_cpus[cpu];
        struct thread ATTUNE_ARENA *t = it->running;
        int64_t left;
        if (cpu == but || !t || !t->attune_task.spends || it->kicked)
            continue;
        if (attune_look_at_quotas(t->attune_task.cgroup, attune_answer.now, &left))
            attune_kick(cpu);
    }
}

/* Under the lock, in dispatch: those that have time again are ready. One whose attributes are being
 * changed is enqueued next, and ready then. */
static __attribute__((noinline)) void attune_release_held(uint32_t cpu)
{
    struct attune_held ATTUNE_ARENA *held = &attune_held_threads[attune_held()];
    struct thread ATTUNE_ARENA *t = held->first, *behind;
    int64_t next = (int64_t)ATTUNE_ZERO;
    for (; t && ATTUNE_MAY_LOOP; t = behind) {
        struct task_struct *task;
        int64_t left,
            until = attune_look_at_quotas(t->attune_task.cgroup, attune_answer.now, &left);
        behind = t->attune_task.held_behind;
        if (until) {
            next = attune_earlier(next, until);
            continue;
        }
        attune_unhold(t);
        task = scx_bpf_tid_to_task(t->attune_task.tid);
        if (task && (task->scx.flags & SCX_TASK_QUEUED))
            attune_end_stay(t, task, cpu);
    }
    held->release_at = next;
    held->cpu = cpu;
}

static inline void attune_release_due(uint32_t cpu)
{
    int64_t at = attune_held_threads[attune_held()].release_at;
    if (at && at <= attune_answer.now)
        attune_release_held(cpu);
}
