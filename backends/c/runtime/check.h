/* Run-time checks that were not proved. One that fails calls attune_trap or its like (trap.h: which
 * does not return; failure.h: which notes the first failure, and the engine ends the scheduler
 * after the handler). What is answered behind a failure only has to be harmless.
 */
#ifndef ATTUNE_CHECK_H
#define ATTUNE_CHECK_H

#include "container.h"

/* A transfer's source, `dispatch`, `destroy`, an attribute: c is not empty. `to` is where the
 * thread would have gone. */
static inline struct attune_thread ATTUNE_ARENA *
attune_need(struct attune_instance ATTUNE_ARENA *attune, attune_place check,
            const struct attune_container ATTUNE_ARENA *c,
            const struct attune_container ATTUNE_ARENA *to)
{
    if (!c->first) {
        attune_trap(attune, check, to, c);
        return ATTUNE_NOBODY;
    }
    return c->first;
}

/* A transfer's destination: the threadref c is empty or holds t itself. */
static inline void attune_need_room(struct attune_instance ATTUNE_ARENA *attune, attune_place check,
                                    const struct attune_container ATTUNE_ARENA *c,
                                    const struct attune_thread ATTUNE_ARENA *t)
{
    if (c->first && c->first != t)
        attune_trap(attune, check, c, t->where);
}

/* t was not destroyed before. */
static inline struct attune_thread ATTUNE_ARENA *
attune_need_alive(struct attune_instance ATTUNE_ARENA *attune, attune_place check,
                  struct attune_thread ATTUNE_ARENA *t)
{
    if (t->destroyed)
        attune_trap_thread(attune, check, t);
    return t;
}

/* 0 <= index < length. */
static inline int64_t attune_need_index(struct attune_instance ATTUNE_ARENA *attune,
                                        attune_place check, int64_t index, int64_t length)
{
    if (index < 0 || index >= length) {
        attune_trap_index(attune, check, index, length);
        return 0;
    }
    return index;
}

/* The new thread t sits somewhere, or was destroyed. */
static inline void attune_need_stored(struct attune_instance ATTUNE_ARENA *attune,
                                      attune_place check,
                                      const struct attune_thread ATTUNE_ARENA *t)
{
    if (!t->where && !t->destroyed)
        attune_trap_thread(attune, check, t);
}

/* c is empty. */
static inline void attune_need_empty(struct attune_instance ATTUNE_ARENA *attune,
                                     attune_place check,
                                     const struct attune_container ATTUNE_ARENA *c)
{
    if (c->size)
        attune_trap(attune, check, c, NULL);
}

#ifdef ATTUNE_DEBUG
/* c, if it was changed, is what container.h says it is. Its contents could not be listed. */
static inline void attune_need_sound(struct attune_instance ATTUNE_ARENA *attune,
                                     attune_place check,
                                     const struct attune_container ATTUNE_ARENA *c)
{
    if (c->changed && !attune_sound(c))
        attune_trap_unsound(attune, check, c);
}
#endif

#define ATTUNE_LOOP_BUDGET 1048576u

/* One more iteration; 0 if there must not be one. */
static inline int attune_iterate(struct attune_instance ATTUNE_ARENA *attune, attune_place check)
{
    if (!attune->budget) {
        attune_trap(attune, check, NULL, NULL);
        return 0;
    }
    attune->budget--;
    return 1;
}

#endif
