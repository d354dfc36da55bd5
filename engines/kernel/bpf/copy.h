/* SPDX-License-Identifier: GPL-2.0 */
/* For the loader: words copied from here to there under the lock, while no handler runs. So what it
 * reads (src/snapshot.rs) was all true at one moment, and what it sets (src/tunables.rs) changes
 * between two handlers, never inside one.
 *
 * Addresses are the arena's, and cannot hurt anything outside it. The loader says how much; it
 * keeps that small enough for the lock to be held for less than a tick. A copy that goes on for
 * longer than the kernel allows a loop ends, and the loader learns that it is not done.
 */
struct attune_copy {
    uint64_t from, to, words;
};

/* From the loader. */
struct attune_copying {
    uint64_t copies, count; /* address of so many struct attune_copy */
};

/* Read by the loader. */
uint64_t attune_room; /* the room that was made last */
/* when the lock was taken for copying, and for how long: ns */
int64_t attune_copied_at, attune_copied_for;

/* A piece of memory as large as a chunk of records. It is the loader's for good. */
ATTUNE_SECTION("syscall") int32_t attune_make_room(void *context)
{
    attune_room = (uint64_t)bpf_arena_alloc_pages(&attune_arena, NULL, ATTUNE_CHUNK, -1, 0);
    return attune_room ? 0 : -12; /* ENOMEM */
}

#define ATTUNE_COPY_WORD(at)                         \
    *(volatile uint64_t ATTUNE_ARENA *)(to + (at)) = \
        *(volatile uint64_t ATTUNE_ARENA *)(from + (at))

/* 0 if the kernel ended it. */
static __attribute__((noinline)) int attune_copy_all(uint64_t copies, uint64_t count)
{
    for (uint64_t number = (uint64_t)ATTUNE_ZERO; number < count; number++) {
        struct attune_copy ATTUNE_ARENA *copy = (struct attune_copy ATTUNE_ARENA *)copies + number;
        uint64_t ATTUNE_ARENA *from = (uint64_t ATTUNE_ARENA *)copy->from;
        uint64_t ATTUNE_ARENA *to = (uint64_t ATTUNE_ARENA *)copy->to;
        uint64_t words = copy->words, word = (uint64_t)ATTUNE_ZERO;
        if (!ATTUNE_MAY_GO_ON)
            return 0;
        for (; word + 8 <= words; word += 8, from += 8, to += 8) {
            if (!ATTUNE_MAY_GO_ON)
                return 0;
            ATTUNE_COPY_WORD(0);
            ATTUNE_COPY_WORD(1);
            ATTUNE_COPY_WORD(2);
            ATTUNE_COPY_WORD(3);
            ATTUNE_COPY_WORD(4);
            ATTUNE_COPY_WORD(5);
            ATTUNE_COPY_WORD(6);
            ATTUNE_COPY_WORD(7);
        }
        for (; word < words; word++, from++, to++) {
            if (!ATTUNE_MAY_GO_ON)
                return 0;
            ATTUNE_COPY_WORD(0);
        }
    }
    return 1;
}

/* All instances stand still for a copy. This is the only place that holds several locks: in one
 * order, while all others wait for one at most. 0 when one could not be had. */
static __attribute__((noinline)) int attune_lock_all(void)
{
#if ATTUNE_INSTANCES > 1
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP; i++) {
        if (attune_lock(i))
            continue;
        for (; i && ATTUNE_MAY_LOOP; i--)
            attune_release(&attune_locked[i - 1]);
        return 0;
    }
    return attune_lock_records();
#else
    return attune_lock(0);
#endif
}

static __attribute__((noinline)) void attune_unlock_all(void)
{
#if ATTUNE_INSTANCES > 1
    attune_unlock_records();
    for (uint32_t i = (uint32_t)ATTUNE_ZERO; i < ATTUNE_INSTANCES && ATTUNE_MAY_LOOP; i++)
        attune_release(&attune_locked[i]);
#else
    attune_unlock();
#endif
}

ATTUNE_SECTION("syscall") int32_t attune_copy_words(struct attune_copying *copying)
{
    uint64_t copies = copying->copies, count = copying->count;
    unsigned long interrupts;
    int done;
    bpf_local_irq_save(&interrupts);
    if (!attune_lock_all()) {
        bpf_local_irq_restore(&interrupts);
        return -16; /* EBUSY */
    }
    attune_copied_at = attune_answer.now;
    done = attune_copy_all(copies, count);
    attune_copied_for = attune_clock() - attune_copied_at;
    attune_unlock_all();
    bpf_local_irq_restore(&interrupts);
    return done ? 0 : -62; /* ETIME */
}
