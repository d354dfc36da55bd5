/* What a failed run-time check does on a machine without an operating system: the engine's
 * attune_halt tells the firmware the place and the sentence, and does not return. No text is built
 * there: the sentence stands in read-only memory.
 */
#ifndef ATTUNE_HALT_H
#define ATTUNE_HALT_H

#include "container.h"

/* A check that is performed: those that were proved are not here. */
struct attune_check {
    uint32_t number; /* in the compiler's list */
    uint32_t line, column;
    const char *file, *what;
};

/* How generated code refers to a check. */
typedef const struct attune_check *attune_place;

/* The engine's. Does not return. `thread` is the one that the check is about, or NULL. */
static void attune_halt(struct attune_instance *attune, attune_place check,
                        const struct attune_thread *thread);

/* What goes on behind a failed check: nothing does. */
#define ATTUNE_NOBODY ((struct attune_thread *)NULL)

static inline void attune_trap(struct attune_instance *attune, attune_place check,
                               const struct attune_container *a, const struct attune_container *b)
{
    (void)a;
    (void)b;
    attune_halt(attune, check, NULL);
}

static inline void attune_trap_thread(struct attune_instance *attune, attune_place check,
                                      const struct attune_thread *t)
{
    attune_halt(attune, check, t);
}

static inline void attune_trap_index(struct attune_instance *attune, attune_place check,
                                     int64_t index, int64_t length)
{
    (void)index;
    (void)length;
    attune_halt(attune, check, NULL);
}

static inline void attune_trap_unsound(struct attune_instance *attune, attune_place check,
                                       const struct attune_container *c)
{
    (void)c;
    attune_halt(attune, check, NULL);
}

#endif
