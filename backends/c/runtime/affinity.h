/* Containers as `schedule` reads them on a machine with several CPUs: holding only the threads that may run on this one.
 * Without any pinned thread that is the whole container, found as fast as ever.
 *
 * The engine says attune_pinned (how many threads there are that may not run everywhere) and attune_may_run.
 */
#ifndef ATTUNE_AFFINITY_H
#define ATTUNE_AFFINITY_H

#include "check.h"

/* t, or the next one behind it that may run here. */
static inline struct attune_thread ATTUNE_ARENA *attune_allowed_from(const struct attune_call ATTUNE_ARENA *call,
                                                                     struct attune_thread ATTUNE_ARENA *t)
{
    while (t && !attune_may_run(t, call->cpu) && ATTUNE_MAY_LOOP)
        t = attune_after(t);
    return t;
}

static inline struct attune_thread ATTUNE_ARENA *attune_first_here(const struct attune_call ATTUNE_ARENA *call,
                                                                   const struct attune_container ATTUNE_ARENA *c)
{
    return attune_pinned ? attune_allowed_from(call, c->first) : c->first;
}

static inline struct attune_thread ATTUNE_ARENA *attune_after_here(const struct attune_call ATTUNE_ARENA *call,
                                                                   const struct attune_thread ATTUNE_ARENA *t)
{
    return attune_pinned ? attune_allowed_from(call, attune_after(t)) : attune_after(t);
}

static inline int64_t attune_size_here(const struct attune_call ATTUNE_ARENA *call,
                                       const struct attune_container ATTUNE_ARENA *c)
{
    int64_t size = ATTUNE_ZERO;
    if (!attune_pinned)
        return c->size;
    for (struct attune_thread ATTUNE_ARENA *t = c->first; t && ATTUNE_MAY_LOOP; t = attune_after(t))
        size += attune_may_run(t, call->cpu);
    return size;
}

static inline struct attune_thread ATTUNE_ARENA *attune_need_here(const struct attune_call ATTUNE_ARENA *call,
                                                                  attune_place check,
                                                                  const struct attune_container ATTUNE_ARENA *c,
                                                                  const struct attune_container ATTUNE_ARENA *to)
{
    struct attune_thread ATTUNE_ARENA *t = attune_first_here(call, c);
    if (!t) {
        attune_trap(check, to, c);
        return ATTUNE_NOBODY;
    }
    return t;
}

static inline struct attune_thread ATTUNE_ARENA *attune_next_here(const struct attune_call ATTUNE_ARENA *call,
                                                                  struct attune_cursor ATTUNE_ARENA *u)
{
    struct attune_thread ATTUNE_ARENA *t = attune_next(u);
    while (t && attune_pinned && !attune_may_run(t, call->cpu) && ATTUNE_MAY_LOOP)
        t = attune_next(u);
    return t;
}

static inline struct attune_thread ATTUNE_ARENA *attune_visit_here(const struct attune_call ATTUNE_ARENA *call,
                                                                   struct attune_container ATTUNE_ARENA *c,
                                                                   struct attune_cursor ATTUNE_ARENA *u)
{
    struct attune_thread ATTUNE_ARENA *t = attune_visit(c, u);
    return t && attune_pinned && !attune_may_run(t, call->cpu) ? attune_next_here(call, u) : t;
}

#endif
