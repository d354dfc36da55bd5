/* Containers as `schedule` reads them on a machine with several CPUs: holding only the threads that
 * may run on this one. Without any pinned thread in it that is the whole container, found as fast
 * as ever.
 *
 * The engine says attune_may_run, and the machine's number of a CPU.
 */
#ifndef ATTUNE_AFFINITY_H
#define ATTUNE_AFFINITY_H

#include "check.h"

#if ATTUNE_PINS
/* t, or the next one behind it that may run here. */
static inline struct attune_thread ATTUNE_ARENA *
attune_allowed_from(const struct attune_instance ATTUNE_ARENA *attune,
                    struct attune_thread ATTUNE_ARENA *t)
{
    while (t && !attune_may_run(t, attune->cpu) && ATTUNE_MAY_LOOP)
        t = attune_after(t);
    return t;
}

static inline struct attune_thread ATTUNE_ARENA *
attune_first_here(const struct attune_instance ATTUNE_ARENA *attune,
                  const struct attune_container ATTUNE_ARENA *c)
{
    return c->pinned ? attune_allowed_from(attune, c->first) : c->first;
}

static inline struct attune_thread ATTUNE_ARENA *
attune_after_here(const struct attune_instance ATTUNE_ARENA *attune,
                  const struct attune_thread ATTUNE_ARENA *t)
{
    return t->where->pinned ? attune_allowed_from(attune, attune_after(t)) : attune_after(t);
}

static inline int64_t attune_size_here(const struct attune_instance ATTUNE_ARENA *attune,
                                       const struct attune_container ATTUNE_ARENA *c)
{
    if (!c->pinned)
        return c->size;
    return (int64_t)c->size - c->pinned + c->pinned_on[attune_number_of(attune->cpu)];
}

static inline struct attune_thread ATTUNE_ARENA *
attune_need_here(struct attune_instance ATTUNE_ARENA *attune, attune_place check,
                 const struct attune_container ATTUNE_ARENA *c,
                 const struct attune_container ATTUNE_ARENA *to)
{
    struct attune_thread ATTUNE_ARENA *t = attune_first_here(attune, c);
    if (!t) {
        attune_trap(attune, check, to, c);
        return ATTUNE_NOBODY;
    }
    return t;
}

static inline struct attune_thread ATTUNE_ARENA *
attune_next_here(struct attune_instance ATTUNE_ARENA *attune, struct attune_cursor ATTUNE_ARENA *u)
{
    struct attune_thread ATTUNE_ARENA *t = attune_next(u);
    while (t && t->pinned && !attune_may_run(t, attune->cpu) && ATTUNE_MAY_LOOP)
        t = attune_next(u);
    return t;
}

static inline struct attune_thread ATTUNE_ARENA *
attune_visit_here(struct attune_instance ATTUNE_ARENA *attune,
                  struct attune_container ATTUNE_ARENA *c, struct attune_cursor ATTUNE_ARENA *u)
{
    struct attune_thread ATTUNE_ARENA *t = attune_visit(attune, c, u);
    return t && t->pinned && !attune_may_run(t, attune->cpu) ? attune_next_here(attune, u) : t;
}
#else
/* There is one CPU. */
#define attune_first_here(attune, c)           attune_first(c)
#define attune_after_here(attune, t)           attune_after(t)
#define attune_size_here(attune, c)            attune_size(c)
#define attune_need_here(attune, check, c, to) attune_need(attune, check, c, to)
#define attune_next_here(attune, u)            attune_next(u)
#define attune_visit_here(attune, c, u)        attune_visit(attune, c, u)
#endif

#endif
