/* SPDX-License-Identifier: GPL-2.0 */
/* Values that processes supply for thread imports.
 *
 *     attune_suppliers   process -> slot          so that its new threads find their page
 *     task.bound         thread  -> slot and row  (slot + 1) << 16 | row; 0: nobody supplies anything
 *     attune_words       slot    -> for each import the word that it stands in, 0: none
 *     attune_pages       slot    -> the page, which the process has mapped (values/src/page.rs draws it)
 *
 * Only the loader writes the first three. What lies in a page is the process's word alone: any number is possible, at any time, so
 * each is copied once, into the thread's own record, when the policy hears of the thread: before event_raised, newthread,
 * quantum_expired, set_waiting, switch_out. What the policy assigned to an import since goes the other way first; to a thread
 * that runs it goes at once, so that its program reads there what it was dispatched with.
 */

#define ATTUNE_PAGES 256
#define ATTUNE_ROWS 512
#define ATTUNE_ROW_WORDS 16

/* Of an import of a record: who its value is from. Its link is no address here. */
#define ATTUNE_SUPPLIED_VALUE ((void *)2)

struct attune_row {
    int64_t words[ATTUNE_ROW_WORDS];
};

#if ATTUNE_SUPPLIED

/* A type that is only pointed to would be missing among the object's types, and with it the size of the maps' values. */
struct attune_row attune_row_type;

struct attune_page {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    int (*map_flags)[BPF_F_MMAPABLE | BPF_F_INNER_MAP];
    int (*max_entries)[ATTUNE_ROWS];
    uint32_t *key;
    struct attune_row *value;
};

struct {
    int (*type)[BPF_MAP_TYPE_ARRAY_OF_MAPS];
    int (*max_entries)[ATTUNE_PAGES];
    uint32_t *key;
    uint32_t *value;
    struct attune_page *values[];
} attune_pages ATTUNE_SECTION(".maps");

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

/* One import of a thread. `word` is 0 where nobody supplies it. */
static inline void attune_exchange(struct attune_import ATTUNE_ARENA *import, uint32_t word, struct attune_row *own,
                                   struct attune_row *shared, int64_t by_default)
{
    struct attune_row *row = NULL;
    word &= ATTUNE_ROW_WORDS - 1;
    if (word && (own->words[0] >> word & 1))
        row = own;
    else if (word && (shared->words[0] >> word & 1))
        row = shared;
    if (row && import->link == ATTUNE_ASSIGNED_VALUE) {
        row->words[word] = import->value.number;
        import->link = ATTUNE_SUPPLIED_VALUE;
    } else if (row) {
        import->value.number = row->words[word];
        import->link = ATTUNE_SUPPLIED_VALUE;
    } else if (import->link == ATTUNE_SUPPLIED_VALUE) {
        import->value.number = by_default;              /* whoever supplied it has taken it back */
        import->link = NULL;
    }
}

static __attribute__((noinline)) void attune_exchange_all(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    uint32_t slot = (t->attune_task.bound >> 16) - 1, row = t->attune_task.bound & (ATTUNE_ROWS - 1), first = 0;
    struct attune_word_list *list = bpf_map_lookup_elem(&attune_words, &slot);
    void *page = bpf_map_lookup_elem(&attune_pages, &slot);
    struct attune_row *own, *shared;
    if (!list || !page)
        return;
    own = bpf_map_lookup_elem(page, &row);
    shared = bpf_map_lookup_elem(page, &first);
    if (!own || !shared)
        return;
#define ATTUNE_EXCHANGE_ONE(number, import, by_default) attune_exchange(import, list->word[number], own, shared, by_default);
#if ATTUNE_DOMAINS > 1
    if (attune_domain_of(&t->attune)) {
        ATTUNE_OTHERS_EACH_SUPPLIED(ATTUNE_EXCHANGE_ONE, t)
        return;
    }
#endif
    ATTUNE_EACH_SUPPLIED(ATTUNE_EXCHANGE_ONE, t)
}

/* The imports that the policy has assigned to. */
static __attribute__((noinline)) void attune_deliver_all(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    int assigned = 0;
#define ATTUNE_LOOK_AT_ONE(number, import, by_default) assigned |= (import)->link == ATTUNE_ASSIGNED_VALUE;
#if ATTUNE_DOMAINS > 1
    if (attune_domain_of(&t->attune)) {
        ATTUNE_OTHERS_EACH_SUPPLIED(ATTUNE_LOOK_AT_ONE, t)
    } else
#endif
    {
        ATTUNE_EACH_SUPPLIED(ATTUNE_LOOK_AT_ONE, t)
    }
    if (assigned)
        attune_exchange_all(t);
}

/* Under the lock: the thread runs. */
static inline void attune_deliver_values(struct thread ATTUNE_ARENA *t)
{
    if (t->attune_task.bound)
        attune_deliver_all(t);
}

/* Under the lock. Free for a thread that nobody supplies anything for. */
static inline void attune_exchange_values(struct thread ATTUNE_ARENA *t)
{
    if (t->attune_task.bound)
        attune_exchange_all(t);
}

/* A thread that the engine has just made a record for. */
static inline void attune_find_values(struct thread ATTUNE_ARENA *t)
{
    int32_t process = t->attune_task.tgid;
    uint32_t *bound = bpf_map_lookup_elem(&attune_suppliers, &process);
    t->attune_task.bound = bound ? *bound : 0;
}

/* From the loader: whose values a thread has from now on. */
struct attune_binding {
    int32_t pid, tgid;
    uint32_t bound;
};

ATTUNE_SECTION("syscall") int32_t attune_bind(struct attune_binding *binding)
{
    int32_t result = -3;                                /* ESRCH */
    struct task_struct *task = bpf_task_from_pid(binding->pid);
    if (!task)
        return result;
    if (task->tgid == binding->tgid) {
        struct attune_slot *slot = bpf_task_storage_get(&attune_slots, task, NULL, 0);
        if (slot && slot->record) {
            ATTUNE_USES_ARENA;
            ((struct thread ATTUNE_ARENA *)slot->record)->attune_task.bound = binding->bound;
            result = 0;
        }
    }
    bpf_task_release(task);
    return result;
}

#else
#define attune_exchange_values(t) (void)0
#define attune_deliver_values(t) (void)0
#define attune_find_values(t) (void)0
#endif
