/* SPDX-License-Identifier: GPL-2.0 */
/* Threads come and go, and the scheduler itself. */
static inline void attune_leaves(struct task_struct *task, int ends)
{
    struct attune_slot *slot = bpf_task_storage_get(&attune_slots, task, NULL, 0);
    struct thread ATTUNE_ARENA *t;
    unsigned long interrupts;
    uint32_t here, cpu;
    if (!slot || !slot->record)
        return;
    t = (struct thread ATTUNE_ARENA *)slot->record;
    bpf_local_irq_save(&interrupts);
    here = cpu = bpf_get_smp_processor_id();
    if (!attune_lock_of(t)) {
        bpf_local_irq_restore(&interrupts);
        return;
    }
#if ATTUNE_INSTANCES > 1
    if (t->attune_task.state == ATTUNE_MOVING) {
        t->attune_task.ended = ends ? ATTUNE_EXITED : ATTUNE_LEFT_CLASS;
        if (ends)
            slot->record = 0;
        attune_unlock();
        bpf_local_irq_restore(&interrupts);
        return;
    }
#endif
    if (!attune_failure.failed) {
        uint32_t state = t->attune_task.state;
        if (state == ATTUNE_AWAY || state == ATTUNE_THROTTLED) {
            attune_forget_guest(t);
            attune_thread_remove(&t->attune);
            attune_close_account(t);
        } else if (state == ATTUNE_RUNNING) {
            cpu = t->attune_task.cpu;
            attune_stop(&attune_cpus[cpu], cpu, t, 1);
            attune_kick(cpu);
        } else if (state == ATTUNE_READY || state == ATTUNE_WAITING) {
            ATTUNE_CALL(SET_DEAD, cpu, &t->attune);
            attune_forget(t);
        }
    }
    t->attune_task.state = ATTUNE_UNKNOWN;
    attune_unlock();
    if (ends && attune_lock_records()) {
        attune_give_record(t);
        slot->record = 0;
        attune_unlock_records();
    }
    attune_arm(&attune_cpus[here], here);
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
    struct scx_init_task_args *args = (void *)context[1];
    struct attune_chunk ATTUNE_ARENA *fresh = NULL;
    uint32_t domain = attune_domain_at_birth(task, args);
    struct attune_cgroup ATTUNE_ARENA *cgroup = attune_cgroup_at_birth(args);
    struct thread ATTUNE_ARENA *t;
    unsigned long flags;
    slot = bpf_task_storage_get(&attune_slots, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!slot)
        return 0; /* it will be a fall-back task */
    if (!attune_free && !attune_fresh_left)
        fresh = bpf_arena_alloc_pages(&attune_arena, NULL, ATTUNE_CHUNK, -1, 0);
    bpf_local_irq_save(&flags);
    if (!attune_lock_records()) {
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
        t->attune.pinned = 0;
        t->attune_task.yielded = 0;
        t->attune_task.domain = (uint8_t)domain;
        t->attune_task.dispatches = 0;
        t->attune_task.rescued = 0;
        t->attune_task.idle_since = 0;
        t->attune_task.of_kernel = !!(task->flags & PF_KTHREAD);
        t->attune_task.cgroup = cgroup;
        attune_is_unweighed(t);
        if (cgroup)
            cgroup->users++;
        attune_start_timeouts(t);
        attune_find_values(t, slot);
        slot->record = (uint64_t)t;
    }
    attune_unlock_records();
    bpf_local_irq_restore(&flags);
    return 0;
}

/* Called when the task comes under the scheduler, and after each change of its nice value. */
ATTUNE_SECTION("struct_ops/set_weight") void attune_set_weight(unsigned long long *context)
{
    struct task_struct *task = (void *)context[0];
    struct thread ATTUNE_ARENA *t = attune_record_of(task);
    unsigned long interrupts;
    if (!t)
        return;
    bpf_local_irq_save(&interrupts);
    if (attune_lock_of(t)) {
        attune_change_weight(t, attune_weight(task), t->attune_task.cgroup);
        attune_unlock();
    }
    bpf_local_irq_restore(&interrupts);
}

/* Core scheduling: threads of different cookies do not run on CPUs of one core together, and the
 * kernel asks which of two goes first. One that its policy has given a CPU, or else the one that
 * has been ready longer. */
ATTUNE_SECTION("struct_ops/core_sched_before")
_Bool attune_core_sched_before(unsigned long long *context)
{
    struct thread ATTUNE_ARENA *one = attune_record_of((void *)context[0]);
    struct thread ATTUNE_ARENA *other = attune_record_of((void *)context[1]);
    int chosen, other_chosen;
    ATTUNE_USES_ARENA;
    if (!one || !other)
        return one != NULL;
    chosen = one->attune_task.state == ATTUNE_RUNNING;
    other_chosen = other->attune_task.state == ATTUNE_RUNNING;
    if (chosen != other_chosen)
        return chosen;
    return one->attune_task.waits_since < other->attune_task.waits_since;
}

#if ATTUNE_CPUS > 1
/* The next number of its instance. */
static inline void attune_give_cpu(uint32_t cpu)
{
    struct attune_instance ATTUNE_ARENA *of;
#if ATTUNE_INSTANCES > 1
    uint32_t instance = attune_instance_of[cpu] < ATTUNE_INSTANCES ? attune_instance_of[cpu] : 0;
    attune_cpus[cpu].instance = instance;
    attune_cpus[cpu].cache = attune_cache_of[cpu];
#else
    uint32_t instance = 0;
#endif
    of = &attune_instances[instance].attune;
    attune_cpus[cpu].local = of->cpus;
    attune_cpu_of[instance][of->cpus++] = cpu;
}

/* Gives each instance its CPUs, as the loader has said, those that are there first: `cpus` counts
 * them alone. An instance whose CPUs are all away counts all, and runs no thread. */
static inline void attune_divide(void)
{
    const struct cpumask *online = scx_bpf_get_online_cpumask();
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO;
         cpu < ATTUNE_CPUS && cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++) {
        attune_cpus[cpu].there = bpf_cpumask_test_cpu(cpu, online);
        if (attune_cpus[cpu].there)
            attune_give_cpu(cpu);
        else
            attune_absent++;
    }
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP; i++)
        attune_there[i] = attune_instances[i].attune.cpus;
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO;
         cpu < ATTUNE_CPUS && cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++)
        if (!attune_cpus[cpu].there)
            attune_give_cpu(cpu);
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP; i++)
        if (attune_there[i])
            attune_instances[i].attune.cpus = attune_there[i];
    scx_bpf_put_cpumask(online);
}
#else
static inline void attune_divide(void)
{
    attune_answer.cpus = 1;
}
#endif

/* From the loader, before it attaches again: values of the policy's variables, which a fresh state
 * takes over before `init`. */
struct attune_setting {
    uint64_t at, value; /* bytes from the start of the state */
};

uint64_t attune_settings, attune_settings_count; /* address in the arena, and how many */

static inline void attune_take_over(struct state ATTUNE_ARENA *state)
{
    struct attune_setting ATTUNE_ARENA *settings =
        (struct attune_setting ATTUNE_ARENA *)attune_settings;
    for (uint64_t i = (uint64_t)ATTUNE_ZERO; i < attune_settings_count && ATTUNE_MAY_LOOP; i++)
        *(uint64_t ATTUNE_ARENA *)((char ATTUNE_ARENA *)state + settings[i].at) = settings[i].value;
}

/* Each instance draws from a stream of its own. */
#define ATTUNE_SEED_STEP 0x9e3779b97f4a7c15u

static __attribute__((noinline)) void attune_begin_instance(uint32_t instance)
{
    uint64_t seed = attune_seed + instance * ATTUNE_SEED_STEP;
    unsigned long interrupts;
    uint32_t cpus, first = 0;
    bpf_local_irq_save(&interrupts);
    if (!attune_lock(instance)) {
        bpf_local_irq_restore(&interrupts);
        return;
    }
    cpus = attune_answer.cpus;
#if ATTUNE_CPUS > 1
    first = attune_cpu_of[instance][0];
#endif
#define ATTUNE_START_ONE(of, ROLE, ending, seed, cpus) \
    attune_start##ending(&attune_answer, seed, cpus);
    ATTUNE_EACH_DOMAIN(ATTUNE_START_ONE, seed, cpus)
    attune_take_over(&attune_instances[instance]);
    attune_start_alarms();
    attune_start_throttling();
    for (uint32_t domain = 0; domain < ATTUNE_DOMAINS; domain++)
        ATTUNE_CALL_IN(domain, INIT, first, NULL);
    attune_unlock();
    bpf_local_irq_restore(&interrupts);
}

/* Says where the arena's variables are: the loader asks before anything is attached. */
ATTUNE_SECTION("syscall") int32_t attune_tell_origin(void *context)
{
    attune_origin = (uint64_t)&attune_failure;
    return 0;
}

ATTUNE_SECTION("struct_ops.s/init") int32_t attune_init(unsigned long long *context)
{
    attune_record_size = sizeof(struct thread);
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < ATTUNE_CPUS && ATTUNE_MAY_LOOP; cpu++) {
        uint32_t key = cpu;
        struct attune_timer *timer = bpf_map_lookup_elem(&attune_timers, &key);
        if (!timer)
            return -2;
        bpf_timer_init(&timer->timer, &attune_timers, CLOCK_MONOTONIC);
        bpf_timer_set_callback(&timer->timer, attune_fires);
    }
    if (!attune_begin_watch())
        return -2;
    attune_divide();
    for (uint32_t instance = (uint32_t)ATTUNE_ZERO; instance < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP;
         instance++)
        attune_begin_instance(instance);
    return scx_bpf_create_dsq(ATTUNE_FALL_BACK_QUEUE, -1);
}

ATTUNE_SECTION("struct_ops/exit") void attune_exit(unsigned long long *context)
{
    struct scx_exit_info *info = (void *)context[0];
    attune_exit_code = info->exit_code;
    bpf_probe_read_kernel_str(attune_exit_reason, sizeof attune_exit_reason, info->reason);
    bpf_probe_read_kernel_str(attune_exit_message, sizeof attune_exit_message, info->msg);
    attune_exit_kind = (uint32_t)info->kind;
    bpf_ringbuf_output(&attune_news, &attune_exit_code, sizeof attune_exit_code, 0);
}

_Static_assert(offsetof(struct sched_ext_ops, flags) == 96,
               "the loader changes flags, timeout_ms and name");

ATTUNE_SECTION(".struct_ops.link")
struct sched_ext_ops attune_ops = {
#if ATTUNE_CPUS > 1
    .select_cpu = (void *)attune_select_cpu,
    .update_idle = (void *)attune_update_idle,
#endif
#if ATTUNE_CPUS > 1
    .cpu_online = (void *)attune_cpu_online,
    .cpu_offline = (void *)attune_cpu_offline,
#endif
    .enqueue = (void *)attune_enqueue,
    .dispatch = (void *)attune_dispatch,
    .cpu_acquire = (void *)attune_cpu_acquire,
    .tick = (void *)attune_tick,
    .yield = (void *)attune_yield,
    .set_weight = (void *)attune_set_weight,
    .init_task = (void *)attune_init_task,
    .cgroup_init = (void *)attune_cgroup_init,
    .cgroup_exit = (void *)attune_cgroup_exit,
    .cgroup_move = (void *)attune_cgroup_move,
    .cgroup_set_weight = (void *)attune_cgroup_set_weight,
    .cgroup_set_idle = (void *)attune_cgroup_set_idle,
    .cgroup_set_bandwidth = (void *)attune_cgroup_set_bandwidth,
    .core_sched_before = (void *)attune_core_sched_before,
    .exit_task = (void *)attune_exit_task,
    .disable = (void *)attune_disable,
    .init = (void *)attune_init,
    .exit = (void *)attune_exit,
    .flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING |
             SCX_OPS_ENQ_MIGRATION_DISABLED | SCX_OPS_TID_TO_TASK,
    .timeout_ms = 5000,
    .name = "attune",
};

const char attune_license[] ATTUNE_SECTION("license") = "GPL";
