/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Values that privileged programs supply for processes: tables by process, whose layout
 * values/src/table.rs says.
 *
 *     attune_tables     table -> the hash that its writer made, fills and owns
 *     attune_columns    which tables are there, a bit each; how often that changed; for each import
 *                       1 + table * 8 + word, 0: no table supplies it
 *     task.process      the key of the thread's process: its start and its number
 *
 * Only the loader writes the first two, and takes a table away when its writer's connection ends.
 * The words are copied into the thread's own record when the policy hears of the thread, before the
 * values of processes, which a table's take precedence over. An import that a table supplies has
 * its default where the process has no row. What the policy assigns to it holds until the policy
 * hears of the thread again.
 */
/* clang-format on */

/* The link of an import whose value a table has supplied: no address, but its origin. */
#define ATTUNE_TABLE_VALUE ((void *)3)

#if ATTUNE_TABLED

#define ATTUNE_TABLES      4
#define ATTUNE_TABLE_WORDS 8
/* As /proc tells a start: hundredths of a second. */
#define ATTUNE_START_UNIT  10000000ull
#define ATTUNE_PID_BITS    22

struct attune_table_row {
    int64_t words[ATTUNE_TABLE_WORDS];
};

struct attune_columns_there {
    uint32_t tables, changes;
    uint8_t place[ATTUNE_TABLED];
};

/* Types that are only pointed to would be missing among the object's types, and with them the size
 * of the maps' values. */
struct attune_table_row attune_table_row_type;
struct attune_columns_there attune_columns_type;

struct attune_table {
    int (*type)[BPF_MAP_TYPE_HASH];
    int (*max_entries)[1]; /* a writer's own may have more */
    uint64_t *key;
    struct attune_table_row *value;
};

struct {
    int (*type)[BPF_MAP_TYPE_ARRAY_OF_MAPS];
    int (*max_entries)[ATTUNE_TABLES];
    uint32_t *key;
    uint32_t *value;
    struct attune_table *values[];
} attune_tables ATTUNE_SECTION(".maps");

struct {
    int (*type)[BPF_MAP_TYPE_ARRAY];
    int (*max_entries)[1];
    uint32_t *key;
    struct attune_columns_there *value;
} attune_columns ATTUNE_SECTION(".maps");

#define ATTUNE_EACH_TABLED_ONE(of, ROLE, ending, visit, t) \
    case of:                                               \
        ATTUNE_##ROLE##EACH_TABLED(visit, t) break;
#define ATTUNE_EACH_TABLED_OF_ITS_POLICY(visit, t) \
    ATTUNE_IN_DOMAIN(attune_domain_of(&(t)->attune), ATTUNE_EACH_TABLED_ONE, visit, t);

/* The start of a new process is not known before its first thread is to run. */
static inline void attune_find_process(struct thread ATTUNE_ARENA *t, struct task_struct *task)
{
    t->attune_task.process = (task->group_leader->start_boottime / ATTUNE_START_UNIT)
                                 << ATTUNE_PID_BITS |
                             (uint32_t)task->tgid;
}

static inline void attune_take_column(struct attune_import ATTUNE_ARENA *import, uint32_t place,
                                      uint32_t table, const struct attune_table_row *row,
                                      int64_t by_default)
{
    if (!place || (place - 1) / ATTUNE_TABLE_WORDS != table)
        return;
    import->value.number = row ? row->words[(place - 1) % ATTUNE_TABLE_WORDS] : by_default;
    import->link = ATTUNE_TABLE_VALUE;
}

ATTUNE_OUTLINE attune_read_table(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA, uint32_t table)
{
    uint32_t first = 0;
    uint64_t process = t->attune_task.process;
    const struct attune_columns_there *columns = bpf_map_lookup_elem(&attune_columns, &first);
    void *rows = bpf_map_lookup_elem(&attune_tables, &table);
    const struct attune_table_row *row = NULL;
    if (!columns)
        ATTUNE_RETURN;
    if (rows)
        row = bpf_map_lookup_elem(rows, &process);
#define ATTUNE_TAKE_ONE(number, import, by_default) \
    attune_take_column(import, columns->place[number], table, row, by_default);
    ATTUNE_EACH_TABLED_OF_ITS_POLICY(ATTUNE_TAKE_ONE, t)
    ATTUNE_RETURN;
}

/* A table has gone: its imports are at their defaults again, or a process may supply them. */
static inline void attune_release_column(struct attune_import ATTUNE_ARENA *import, uint32_t place,
                                         int64_t by_default)
{
    if (place || import->link != ATTUNE_TABLE_VALUE)
        return;
    import->value.number = by_default;
    import->link = NULL;
}

ATTUNE_OUTLINE attune_release_columns(struct thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    uint32_t first = 0;
    const struct attune_columns_there *columns = bpf_map_lookup_elem(&attune_columns, &first);
    if (!columns)
        ATTUNE_RETURN;
#define ATTUNE_RELEASE_ONE(number, import, by_default) \
    attune_release_column(import, columns->place[number], by_default);
    ATTUNE_EACH_TABLED_OF_ITS_POLICY(ATTUNE_RELEASE_ONE, t)
    ATTUNE_RETURN;
}

/* Under the lock. Costs two loads where there is no table. */
static inline void attune_read_tables(struct thread ATTUNE_ARENA *t)
{
    uint32_t first = 0, there;
    const struct attune_columns_there *columns = bpf_map_lookup_elem(&attune_columns, &first);
    if (!columns)
        return;
    there = columns->tables;
    if (t->attune_task.changes != columns->changes)
        attune_release_columns(t);
    t->attune_task.changes = columns->changes;
    if (!there)
        return;
    for (uint32_t table = (uint32_t)ATTUNE_ZERO; table < ATTUNE_TABLES && ATTUNE_MAY_LOOP; table++)
        if (there >> table & 1)
            attune_read_table(t, table);
}

#else
#define attune_find_process(t, task) (void)0
#define attune_read_tables(t)        (void)0
#endif
