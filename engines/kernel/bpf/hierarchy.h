/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel tells of its cgroups: those whose parent lets the cpu controller control it. A kernel
 * without CONFIG_EXT_GROUP_SCHED tells of none, and then threads have their own weights.
 */
struct {
    int (*type)[BPF_MAP_TYPE_HASH];
    int (*map_flags)[BPF_F_NO_PREALLOC];
    int (*max_entries)[65536];
    uint64_t *key;   /* the kernel's address of the cgroup */
    uint64_t *value; /* the arena's address of its record */
} attune_cgroups ATTUNE_SECTION(".maps");

static inline struct attune_cgroup ATTUNE_ARENA *attune_cgroup_of(const struct cgroup *cgroup)
{
    uint64_t key = (uint64_t)cgroup, *record = bpf_map_lookup_elem(&attune_cgroups, &key);
    return record ? (struct attune_cgroup ATTUNE_ARENA *)*record : NULL;
}

/* Where a new task is. */
static inline struct attune_cgroup ATTUNE_ARENA *
attune_cgroup_at_birth(struct scx_init_task_args *args)
{
    if (!__builtin_preserve_field_info(args->cgroup, ATTUNE_EXISTS))
        return NULL;
    return attune_cgroup_of(args->cgroup);
}

#define ATTUNE_CGROUPS_IN_PAGE (4096 / sizeof(struct attune_cgroup))

/* Interrupts are off. A free record; NULL: there is no memory left. `page`, if it is not NULL, is
 * memory for more of them. */
static __attribute__((noinline)) struct attune_cgroup ATTUNE_ARENA *
attune_take_cgroup(struct attune_cgroup ATTUNE_ARENA *page)
{
    struct attune_cgroup ATTUNE_ARENA *cgroup;
    if (!attune_lock_records())
        return NULL;
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; page && i < ATTUNE_CGROUPS_IN_PAGE && ATTUNE_MAY_LOOP;
         i++) {
        page[i].parent = attune_free_cgroups;
        attune_free_cgroups = &page[i];
    }
    cgroup = attune_free_cgroups;
    if (cgroup)
        attune_free_cgroups = cgroup->parent;
    attune_unlock_records();
    return cgroup;
}

static inline void attune_find_weight(struct attune_cgroup ATTUNE_ARENA *record)
{
    record->weight = record->idle ? ATTUNE_LOADS * ATTUNE_IDLE_WEIGHT
                                  : (uint64_t)record->cpu_weight * (1024 * ATTUNE_LOADS / 100);
}

ATTUNE_SECTION("struct_ops.s/cgroup_init")
int32_t attune_cgroup_init(unsigned long long *context)
{
    struct cgroup *cgroup = (void *)context[0], *above;
    struct scx_cgroup_init_args *args = (void *)context[1];
    struct attune_cgroup ATTUNE_ARENA *record, *parent = NULL, *page = NULL;
    unsigned long interrupts;
    uint64_t key = (uint64_t)cgroup, value;
    if (cgroup->level > 0) {
        above = bpf_cgroup_ancestor(cgroup, cgroup->level - 1);
        if (above) {
            parent = attune_cgroup_of(above);
            bpf_cgroup_release(above);
        }
        if (!parent)
            parent = attune_root_cgroup;
    }
    if (!attune_free_cgroups)
        page = bpf_arena_alloc_pages(&attune_arena, NULL, 1, -1, 0);
    bpf_local_irq_save(&interrupts);
    record = attune_take_cgroup(page);
    if (record) {
        record->parent = parent;
        for (uint32_t i = 0; i < ATTUNE_DOMAINS; i++)
            record->load[i] = 0;
        record->cpu_weight = args->weight;
        record->idle = 0;
        attune_find_weight(record);
        record->quota = 0;
        if (parent)
            attune_limit(record, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
        record->users = 1;
        if (!parent)
            attune_root_cgroup = record;
        else if (attune_lock_records()) {
            parent->users++;
            attune_branches++;
            attune_loads_change();
            attune_unlock_records();
        }
    }
    bpf_local_irq_restore(&interrupts);
    value = (uint64_t)record;
    /* Without a record its threads would have no part of what is above it. */
    return record && !bpf_map_update_elem(&attune_cgroups, &key, &value, 0) ? 0 : -12; /* ENOMEM */
}

ATTUNE_SECTION("struct_ops.s/cgroup_exit") void attune_cgroup_exit(unsigned long long *context)
{
    struct cgroup *cgroup = (void *)context[0];
    struct attune_cgroup ATTUNE_ARENA *record = attune_cgroup_of(cgroup);
    uint64_t key = (uint64_t)cgroup;
    unsigned long interrupts;
    if (!record)
        return;
    bpf_map_delete_elem(&attune_cgroups, &key);
    bpf_local_irq_save(&interrupts);
    if (attune_lock_records()) {
        if (record->parent) {
            attune_branches--;
            attune_loads_change();
        }
        attune_limit(record, 0, 0, 0);
        attune_drop_cgroup(record);
        attune_unlock_records();
    }
    bpf_local_irq_restore(&interrupts);
}

ATTUNE_SECTION("struct_ops/cgroup_move") void attune_cgroup_move(unsigned long long *context)
{
    struct task_struct *task = (void *)context[0];
    struct attune_cgroup ATTUNE_ARENA *to = attune_cgroup_of((void *)context[2]), *from;
    struct thread ATTUNE_ARENA *t = attune_record_of(task);
    unsigned long interrupts;
    if (!t)
        return;
    bpf_local_irq_save(&interrupts);
    if (!attune_lock_of(t)) {
        bpf_local_irq_restore(&interrupts);
        return;
    }
    from = t->attune_task.cgroup;
    if (t->attune_task.state == ATTUNE_RUNNING || t->attune_task.state == ATTUNE_AWAY)
        attune_pay_early(t);
    attune_change_weight(t, t->attune_task.weight, to);
    attune_unlock();
    if (attune_lock_records()) {
        if (to)
            to->users++;
        attune_drop_cgroup(from);
        attune_unlock_records();
    }
    bpf_local_irq_restore(&interrupts);
}

/* cpu.weight or cpu.idle: where the cgroup is active, its parent's loads change. */
static __attribute__((noinline)) void attune_reweigh(struct attune_cgroup ATTUNE_ARENA *record,
                                                     uint32_t cpu_weight, uint32_t idle)
{
    unsigned long interrupts;
    bpf_local_irq_save(&interrupts);
    if (attune_lock_all()) {
        uint64_t before = record->weight;
        record->cpu_weight = cpu_weight;
        record->idle = idle;
        attune_find_weight(record);
        for (uint32_t i = 0; i < ATTUNE_DOMAINS; i++)
            if (record->parent && record->load[i])
                record->parent->load[i] += record->weight - before;
        attune_loads_change();
        attune_unlock_all();
    }
    bpf_local_irq_restore(&interrupts);
}

ATTUNE_SECTION("struct_ops/cgroup_set_weight")
void attune_cgroup_set_weight(unsigned long long *context)
{
    struct attune_cgroup ATTUNE_ARENA *record = attune_cgroup_of((void *)context[0]);
    if (record)
        attune_reweigh(record, (uint32_t)context[1], record->idle);
}

ATTUNE_SECTION("struct_ops/cgroup_set_idle")
void attune_cgroup_set_idle(unsigned long long *context)
{
    struct attune_cgroup ATTUNE_ARENA *record = attune_cgroup_of((void *)context[0]);
    if (record)
        attune_reweigh(record, record->cpu_weight, (uint8_t)context[1]);
}

/* cpu.max. Threads that run are looked at anew; what is THROTTLED waits until the period ends that
 * it waits for. */
ATTUNE_SECTION("struct_ops/cgroup_set_bandwidth")
void attune_cgroup_set_bandwidth(unsigned long long *context)
{
    struct attune_cgroup ATTUNE_ARENA *record = attune_cgroup_of((void *)context[0]);
    unsigned long interrupts;
    if (!record || !record->parent)
        return;
    bpf_local_irq_save(&interrupts);
    if (attune_lock_all()) {
        attune_limit(record, context[1], context[2], context[3]);
        attune_unlock_all();
    }
    bpf_local_irq_restore(&interrupts);
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO;
         cpu < ATTUNE_CPUS && cpu < attune_cpu_count && ATTUNE_MAY_LOOP; cpu++)
        if (attune_cpus[cpu].running)
            attune_kick(cpu);
}
