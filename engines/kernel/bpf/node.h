/* SPDX-License-Identifier: GPL-2.0 */
/* A node of a cluster: what its handlers, and its loader for the cluster's manager, say to each
 * other (src/node/). The loader makes a list of numbers, and all of them are exchanged between two
 * handlers:
 *
 *      what others share       in: as the manager has it     out: what handlers did to it since
 *      the node's own          in: what others did to it     out: what it is
 *      threads in a container                                out: how many
 *
 * Invariant: a handler's copy of a shared number is the loader's with `attune_written` applied, so
 * a node always sees what it wrote, and each write is taken once.
 */
#ifdef ATTUNE_GLOBALS

enum attune_owner { ATTUNE_OF_CLUSTER, ATTUNE_OF_NODE, ATTUNE_OF_CONTAINER };

struct attune_entry {
    uint64_t at; /* address of the number, or of the container */
    uint32_t owner, global;
    int64_t number;
    struct attune_change change;
};

/* From the loader. */
struct attune_exchanging {
    uint64_t entries, count; /* address of so many struct attune_entry */
    int64_t heard_at;        /* attune_heard_at */
};

/* Wakes the loader when a handler has written for the first time since it took what was written. */
struct {
    int (*type)[BPF_MAP_TYPE_RINGBUF];
    int (*max_entries)[4096];
} attune_written_here ATTUNE_SECTION(".maps");

static uint32_t ATTUNE_KEPT ATTUNE_ARENA attune_loader_is_told;

static __attribute__((noinline)) void attune_has_written(void)
{
    uint64_t nothing = 0;
    if (attune_loader_is_told || !attune_may_interrupt())
        return; /* the next one tells it */
    attune_loader_is_told = 1;
    bpf_ringbuf_output(&attune_written_here, &nothing, sizeof nothing, 0);
}

static inline int64_t attune_applied(const struct attune_change ATTUNE_ARENA *change,
                                     int64_t number)
{
    return attune_add(attune_mul(number, change->scale), change->shift);
}

/* 1: handlers read another number than before. */
static inline int attune_exchange_number(struct attune_entry ATTUNE_ARENA *entry)
{
    int64_t ATTUNE_ARENA *number = (int64_t ATTUNE_ARENA *)entry->at;
    int64_t before;
    if (entry->owner == ATTUNE_OF_CONTAINER) {
        entry->number = ((struct attune_container ATTUNE_ARENA *)number)->size;
        return 0;
    }
    before = *number;
    if (entry->owner == ATTUNE_OF_NODE) {
        *number = attune_applied(&entry->change, before);
        entry->number = *number;
    } else if (entry->global < ATTUNE_GLOBALS) {
        struct attune_change ATTUNE_ARENA *written = &attune_written[entry->global];
        *number = attune_applied(written, entry->number);
        entry->change.scale = written->scale;
        entry->change.shift = written->shift;
        written->scale = 1;
        written->shift = 0;
    }
    return *number != before;
}

/* Idle CPUs ask the policy again: it may choose a thread that it did not want before. */
static inline void attune_may_choose_otherwise(void)
{
    if (!attune_domains[attune_held()][0].ready)
        return;
    attune_events[attune_held()]++;
#if ATTUNE_CPUS > 1
    attune_ask_idle(ATTUNE_CPUS);
#else
    if (!attune_cpus[0].running)
        attune_kick(0);
#endif
}

/* 0 if the kernel ended it; then the entries behind are as they were. */
static __attribute__((noinline)) int attune_exchange_numbers(uint64_t entries, uint64_t count)
{
    int news = 0;
    for (uint64_t number = (uint64_t)ATTUNE_ZERO; number < count; number++) {
        if (!ATTUNE_MAY_GO_ON)
            return 0;
        news |= attune_exchange_number((struct attune_entry ATTUNE_ARENA *)entries + number);
    }
    if (news)
        attune_may_choose_otherwise();
    return 1;
}

ATTUNE_SECTION("syscall") int32_t attune_exchange_with_cluster(struct attune_exchanging *with)
{
    uint64_t entries = with->entries, count = with->count;
    int64_t heard_at = with->heard_at;
    unsigned long interrupts;
    int done;
    bpf_local_irq_save(&interrupts);
    if (!attune_lock_all()) {
        bpf_local_irq_restore(&interrupts);
        return -16; /* EBUSY */
    }
    attune_loader_is_told = 0;
    attune_heard_at = heard_at;
    done = attune_exchange_numbers(entries, count);
    attune_unlock_all();
    bpf_local_irq_restore(&interrupts);
    return done ? 0 : -62; /* ETIME */
}

#endif
