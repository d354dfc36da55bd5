/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Values that processes supply for thread imports.
 *
 *     attune_suppliers    process -> slot           so that its new threads find its values
 *     task.bound          thread  -> slot and row   (slot + 1) << 16 | row; 0: nobody has supplied
 *                                                   anything; 1: nobody does any more
 *     attune_words        slot    -> for each import the word that it stands in, 0: none
 *     attune_shared_rows  process -> the first row of its page, kept with its first thread
 *     attune_own_rows     thread  -> a row of its process's page, if it has one
 *
 * Only the loader writes them. A page is memory of the process (values/src/page.rs draws it): the
 * kernel holds those parts of it where rows are in use, and hands out their addresses.
 *
 * What lies in a page is the process's word alone: any number is possible, at any time. So each is
 * copied once, into the thread's own record, when the policy hears of the thread: before
 * event_raised, newthread, quantum_expired, set_waiting, switch_out. What the policy assigned to an
 * import since goes the other way first; to a thread that runs it goes at once, so that its program
 * reads there what it was dispatched with.
 *
 * A process that gains rights by an exec (a set-uid program) supplies nothing any more, because a
 * user with fewer rights has prepared its page. The loader learns of it from attune_suppliers.
 */
/* clang-format on */

#define ATTUNE_PAGES     16384
#define ATTUNE_ROW_WORDS 16

/* The link of an import whose value a process has supplied: no address, but its origin. */
#define ATTUNE_SUPPLIED_VALUE ((void *)2)

/* Bound to no page any more: what was supplied before goes back to its default. */
#define ATTUNE_UNBOUND 1

struct attune_row {
    int64_t words[ATTUNE_ROW_WORDS];
};

#if ATTUNE_SUPPLIED

/* Types that are only pointed to would be missing among the object's types, and with them the sizes
 * of the maps' values. */
struct attune_row attune_row_type;

/* An address that user space has given, of memory that the kernel holds for the map. */
#define ATTUNE_USER_POINTER __attribute__((btf_type_tag("uptr")))

struct attune_row_of {
    struct attune_row ATTUNE_USER_POINTER *row;
};

struct attune_rows_map {
    int (*type)[BPF_MAP_TYPE_TASK_STORAGE];
    int (*map_flags)[BPF_F_NO_PREALLOC];
    int *key;
    struct attune_row_of *value;
};

struct attune_rows_map attune_shared_rows ATTUNE_SECTION(".maps");
struct attune_rows_map attune_own_rows ATTUNE_SECTION(".maps");

struct attune_word_list {
    uint8_t word[ATTUNE_SUPPLIED];
};

struct {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    int (*max_entries)[ATTUNE_PAGES];
    uint32_t *key;
    struct attune_word_list *value;
} attune_words ATTUNE_SECTION(".maps");

struct {
    int (*type)[BPF_MAP_TYPE_HASH];
    int (*max_entries)[ATTUNE_PAGES];
    int32_t *key;
    uint32_t *value;
} attune_suppliers ATTUNE_SECTION(".maps");

/* Whose words a thread has: its own before its process's. What is present is looked up once. */
struct attune_rows {
    struct attune_row *own, *shared;
    uint64_t own_present, shared_present;
};

#define attune_slot_of(bound) (((bound) >> 16) - 1)
#define attune_has_row(bound) (((bound) & 0xffff) != 0)

static inline struct attune_row *attune_row_in(void *map, struct task_struct *task)
{
    struct attune_row_of *of = bpf_task_storage_get(map, task, NULL, 0);
    return of ? of->row : NULL;
}

/* What its process has for it alone. */
static inline struct attune_row *attune_own_row(uint32_t bound, struct task_struct *task)
{
    return attune_has_row(bound) ? attune_row_in(&attune_own_rows, task) : NULL;
}

/* One import of a thread. `word` is 0 where no process supplies it, and then never present. What
 * a table supplies, no process does. */
static inline void attune_exchange(struct attune_import ATTUNE_ARENA *import, uint32_t word,
                                   const struct attune_rows *rows, int64_t by_default)
{
    struct attune_row *row = NULL;
    if (import->link == ATTUNE_TABLE_VALUE)
        return;
    word &= ATTUNE_ROW_WORDS - 1;
    if (rows->own_present >> word & 1)
        row = rows->own;
    else if (rows->shared_present >> word & 1)
        row = rows->shared;
    if (row && import->link == ATTUNE_ASSIGNED_VALUE) {
        row->words[word] = import->value.number;
        import->link = ATTUNE_SUPPLIED_VALUE;
    } else if (row) {
        import->value.number = row->words[word];
        import->link = ATTUNE_SUPPLIED_VALUE;
    } else if (import->link == ATTUNE_SUPPLIED_VALUE) {
        import->value.number = by_default; /* its supplier has taken it back */
        import->link = NULL;
    }
}

/* One that was assigned to, where the thread has a value of its own. */
static inline void attune_deliver(struct attune_import ATTUNE_ARENA *import, uint32_t word,
                                  struct attune_row *own)
{
    word &= ATTUNE_ROW_WORDS - 1;
    if (import->link == ATTUNE_ASSIGNED_VALUE && word && (own->words[0] >> word & 1)) {
        own->words[word] = import->value.number;
        import->link = ATTUNE_SUPPLIED_VALUE;
    }
}

#define ATTUNE_EACH_SUPPLIED_ONE(of, ROLE, ending, visit, t) \
    case of:                                                 \
        ATTUNE_##ROLE##EACH_SUPPLIED(visit, t) break;
#define ATTUNE_EACH_OF_ITS_POLICY(visit, t) \
    ATTUNE_IN_DOMAIN(attune_domain_of(&(t)->attune), ATTUNE_EACH_SUPPLIED_ONE, visit, t);

ATTUNE_OUTLINE attune_exchange_all(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    uint32_t bound = t->attune_task.bound, slot = attune_slot_of(bound);
    struct attune_word_list *list = bpf_map_lookup_elem(&attune_words, &slot);
    struct task_struct *task = scx_bpf_tid_to_task(t->attune_task.tid);
    struct attune_rows rows = {0};
    if (list && task) {
        rows.own = attune_own_row(bound, task);
        rows.shared = attune_row_in(&attune_shared_rows, task->group_leader);
        if (rows.own)
            rows.own_present = (uint64_t)rows.own->words[0] & ~1ull;
        if (rows.shared)
            rows.shared_present = (uint64_t)rows.shared->words[0] & ~1ull;
    }
#define ATTUNE_EXCHANGE_ONE(number, import, by_default) \
    attune_exchange(import, list ? list->word[number] : 0, &rows, by_default);
    ATTUNE_EACH_OF_ITS_POLICY(ATTUNE_EXCHANGE_ONE, t)
    ATTUNE_RETURN;
}

/* The imports that the policy has assigned to. */
ATTUNE_OUTLINE attune_deliver_all(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    uint32_t bound = t->attune_task.bound, slot = attune_slot_of(bound);
    struct attune_word_list *list;
    struct task_struct *task;
    struct attune_row *own;
    int assigned = 0;
#define ATTUNE_LOOK_AT_ONE(number, import, by_default) \
    assigned |= (import)->link == ATTUNE_ASSIGNED_VALUE;
    ATTUNE_EACH_OF_ITS_POLICY(ATTUNE_LOOK_AT_ONE, t)
    if (!assigned || !attune_has_row(bound))
        ATTUNE_RETURN;
    list = bpf_map_lookup_elem(&attune_words, &slot);
    task = scx_bpf_tid_to_task(t->attune_task.tid);
    if (!list || !task)
        ATTUNE_RETURN;
    own = attune_own_row(bound, task);
    if (!own)
        ATTUNE_RETURN;
#define ATTUNE_DELIVER_ONE(number, import, by_default) \
    attune_deliver(import, list->word[number], own);
    ATTUNE_EACH_OF_ITS_POLICY(ATTUNE_DELIVER_ONE, t)
    ATTUNE_RETURN;
}

/* Under the lock: the thread runs. */
static inline void attune_deliver_values(struct thread ATTUNE_ARENA *t)
{
    if (t->attune_task.bound)
        attune_deliver_all(t);
}

/* Under the lock. Free for a thread that no process supplies anything for. */
static inline void attune_exchange_values(struct thread ATTUNE_ARENA *t)
{
    if (t->attune_task.bound)
        attune_exchange_all(t);
}

/* A thread that the engine has just made a record for. After a reload it has its own row again, if
 * its process still has that page. */
static inline void attune_find_values(struct thread ATTUNE_ARENA *t, const struct attune_slot *slot)
{
    int32_t process = t->attune_task.tgid;
    uint32_t *shared = bpf_map_lookup_elem(&attune_suppliers, &process);
    uint32_t bound = shared ? *shared : 0;
    t->attune_task.bound = slot->bound >> 16 == bound >> 16 ? slot->bound : bound;
}

/* From the loader: whose values a thread of that process has from now on; `pid` 0: all of them. */
struct attune_binding {
    int32_t pid, tgid;
    uint32_t bound;
};

/* Between two loads there is no record. */
static inline void attune_set_bound(struct attune_slot *slot, uint32_t bound)
{
    ATTUNE_USES_ARENA;
    slot->bound = bound;
    if (slot->record)
        ((struct thread ATTUNE_ARENA *)slot->record)->attune_task.bound = bound;
}

/* 0, or that the engine cannot keep anything of the thread. */
static inline int32_t attune_bind_task(struct task_struct *task, int32_t process, uint32_t bound)
{
    uint32_t *shared;
    struct attune_slot *slot =
        bpf_task_storage_get(&attune_slots, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!slot)
        return -3; /* ESRCH */
    attune_set_bound(slot, bound);
    /* The process may have gained rights meanwhile, so this looks afterwards. */
    shared = bpf_map_lookup_elem(&attune_suppliers, &process);
    if (!shared || *shared >> 16 != bound >> 16)
        attune_set_bound(slot, ATTUNE_UNBOUND);
    return 0;
}

static inline void attune_bind_all(struct task_struct *leader, int32_t process, uint32_t bound)
{
    struct bpf_iter_task threads;
    struct task_struct *task;
    bpf_rcu_read_lock();
    bpf_iter_task_new(&threads, leader, BPF_TASK_ITER_PROC_THREADS);
    while ((task = bpf_iter_task_next(&threads)))
        attune_bind_task(task, process, bound);
    bpf_iter_task_destroy(&threads);
    bpf_rcu_read_unlock();
}

ATTUNE_SECTION("syscall") int32_t attune_bind(struct attune_binding *binding)
{
    int32_t result = -3; /* ESRCH */
    int32_t process = binding->tgid;
    struct task_struct *task = bpf_task_from_pid(binding->pid ? binding->pid : process);
    if (!task)
        return result;
    if (task->tgid == process) {
        result = 0;
        if (binding->pid)
            result = attune_bind_task(task, process, binding->bound);
        else
            attune_bind_all(task, process, binding->bound);
    }
    bpf_task_release(task);
    return result;
}

/* The thread has executed a program, and is its process's only one. */
ATTUNE_SECTION("tp_btf/sched_process_exec") int32_t attune_executes(unsigned long long *context)
{
    struct task_struct *task = (void *)context[0];
    const struct linux_binprm *program = (void *)context[2];
    struct attune_slot *slot;
    int32_t process = task->tgid;
    if (!attune_gains_rights(program))
        return 0;
    bpf_map_delete_elem(&attune_suppliers, &process);
    slot = bpf_task_storage_get(&attune_slots, task, NULL, 0);
    if (slot)
        attune_set_bound(slot, ATTUNE_UNBOUND);
    return 0;
}

#else
#define attune_exchange_values(t)   (void)0
#define attune_deliver_values(t)    (void)0
#define attune_find_values(t, slot) (void)0
#endif
