/* SPDX-License-Identifier: GPL-2.0 */
/* Records of threads: where they come from, whose they are, and where their threads may run. */
#define ATTUNE_CHUNK 16 /* pages asked for at once */

struct attune_chunk {
    struct attune_chunk ATTUNE_ARENA *before;
    uint64_t records;
    struct thread record[];
};

/* A structure that is only pointed to would be missing among the object's types. */
struct attune_chunk attune_chunk_type;

#define ATTUNE_CHUNK_RECORDS \
    ((ATTUNE_CHUNK * 4096 - sizeof(struct attune_chunk)) / sizeof(struct thread))

static struct thread ATTUNE_ARENA *ATTUNE_KEPT ATTUNE_ARENA attune_free;
static struct thread ATTUNE_ARENA *ATTUNE_KEPT ATTUNE_ARENA attune_fresh;
static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_fresh_left;

/* Under the lock. NULL: there is none left. */
static inline struct thread ATTUNE_ARENA *attune_take_record(void)
{
    struct thread ATTUNE_ARENA *t = attune_free;
    if (t) {
        attune_free = ATTUNE_RECORD(t->attune.next);
        return t;
    }
    if (!attune_fresh_left)
        return NULL;
    attune_fresh_left--;
    attune_statistics.records++;
    return attune_fresh++;
}

/* Under the lock: a cgroup has lost a user. The record of one that has none is free. */
ATTUNE_OUTLINE attune_drop_cgroup(struct attune_cgroup ATTUNE_ARENA *cgroup ATTUNE_IN_ARENA)
{
    while (cgroup && ATTUNE_MAY_LOOP) {
        struct attune_cgroup ATTUNE_ARENA *parent = cgroup->parent;
        if (--cgroup->users)
            ATTUNE_RETURN;
        cgroup->parent = attune_free_cgroups;
        attune_free_cgroups = cgroup;
        cgroup = parent;
    }
    ATTUNE_RETURN;
}

/* Under the lock. */
static inline void attune_give_record(struct thread ATTUNE_ARENA *t)
{
    attune_drop_cgroup(t->attune_task.cgroup);
    t->attune_task.cgroup = NULL;
    t->attune.next = &attune_free->attune;
    attune_free = t;
}

/* The kernel's task knows its record by its virtual time, which nothing else uses: the engine's
 * queues are first in, first out. */
static inline struct thread ATTUNE_ARENA *attune_record_of(struct task_struct *task)
{
    struct attune_slot *slot;
    uint64_t record = task->scx.dsq_vtime;
    if (record)
        return (struct thread ATTUNE_ARENA *)record;
    slot = bpf_task_storage_get(&attune_slots, task, NULL, 0);
    if (!slot || !slot->record)
        return NULL;
    scx_bpf_task_set_dsq_vtime(task, slot->record);
    return (struct thread ATTUNE_ARENA *)slot->record;
}

#if ATTUNE_CPUS > 1
/* A word of the set of CPUs where the task may run; `fixed`: only where it is. */
static inline uint64_t attune_mask_of(const struct task_struct *task, int fixed, uint32_t word)
{
    const struct cpumask *mask = task->cpus_ptr;
    int32_t here = scx_bpf_task_cpu(task);
    if (!fixed)
        return mask->bits[word];
    return here / 64 == (int32_t)word ? 1ull << here % 64 : 0;
}
#endif

/* Under the lock: where the task may run, as `schedule` sees it. Nearly always it is as it was. */
static inline void attune_note_affinity(struct thread ATTUNE_ARENA *t, struct task_struct *task)
{
#if ATTUNE_CPUS > 1
    struct attune_task ATTUNE_ARENA *own = &t->attune_task;
    /* A task that is being enqueued while it runs is seen with migration disabled: by this very
     * program. */
    int fixed = task->migration_disabled > (bpf_get_current_task_btf() == task);
    uint8_t pinned = fixed || task->nr_cpus_allowed < (int)attune_cpu_count;
    int changed = pinned != t->attune.pinned, listed = own->state == ATTUNE_READY;
    if (!pinned && !changed)
        return;
    for (uint32_t word = 0; word < ATTUNE_WORDS; word++)
        changed |= own->allowed[word] != attune_mask_of(task, fixed, word);
    if (!changed)
        return;
    attune_uncount_pins(&t->attune);
    if (listed)
        attune_count_listed(t, -1);
    t->attune.pinned = pinned;
    for (uint32_t word = 0; word < ATTUNE_WORDS; word++)
        own->allowed[word] = attune_mask_of(task, fixed, word);
    attune_recount_pins(&t->attune);
    if (listed)
        attune_count_listed(t, 1);
#endif
}

/* A CPU where the thread may run: where it was last, if it may; ATTUNE_CPUS: none that is there. */
static inline uint32_t attune_host_of(const struct thread ATTUNE_ARENA *t)
{
    uint32_t cpu = t->attune_task.cpu;
    if (cpu < attune_cpu_count && attune_is_there(cpu) && attune_may_run_on(&t->attune, cpu))
        return cpu;
    for (cpu = (uint32_t)ATTUNE_ZERO;
         cpu < ATTUNE_CPUS && cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++)
        if (attune_is_there(cpu) && attune_may_run_on(&t->attune, cpu))
            return cpu;
    return ATTUNE_CPUS;
}

#if ATTUNE_INSTANCES > 1
/* One of the instance's CPUs on which the thread may run, as its last enqueue noted; ATTUNE_CPUS:
 * none. */
ATTUNE_OUTLINE_AS(uint32_t)
attune_allowed_in(const struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA, uint32_t instance)
{
    uint32_t cpus = attune_instances[instance].attune.cpus;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < cpus && i < ATTUNE_CPUS && ATTUNE_MAY_LOOP; i++) {
        uint32_t cpu = attune_cpu_of[instance][i];
        if (attune_is_there(cpu) && attune_may_run_on(&t->attune, cpu))
            return cpu;
    }
    return ATTUNE_CPUS;
}
#endif

/* Under the lock: it is ready, and no CPU of its instance may run it. */
static inline int attune_is_stranded(const struct thread ATTUNE_ARENA *t)
{
#if ATTUNE_INSTANCES > 1
    return t->attune_task.instance == attune_held() && t->attune_task.state == ATTUNE_READY &&
           attune_allowed_in(t, attune_held()) >= ATTUNE_CPUS;
#else
    return t->attune_task.state == ATTUNE_READY && attune_host_of(t) >= ATTUNE_CPUS;
#endif
}

/* Whether the task may run on this CPU, as the kernel has it now. */
static inline int attune_fits(const struct task_struct *task, uint32_t cpu)
{
#if ATTUNE_CPUS > 1
    return bpf_cpumask_test_cpu(cpu, task->cpus_ptr) &&
           (!task->migration_disabled || scx_bpf_task_cpu(task) == (int32_t)cpu);
#else
    return 1;
#endif
}

/* In dispatch, on this CPU: it runs the task next. 0: the task may not run here any more, and its
 * enqueue follows. The kernel lets an insertion go by if the task's affinity changes after it, and
 * ends the scheduler for one that comes late. So the affinity is looked at last. */
static inline int attune_insert_here(struct task_struct *task, uint32_t cpu)
{
    scx_bpf_dsq_insert(task, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
    if (attune_fits(task, cpu))
        return 1;
    scx_bpf_dispatch_cancel();
    return 0;
}
