/* Containers as `schedule` reads them on a machine with several CPUs: holding only the threads that
 * may run on this one. Without any pinned thread in it that is the whole container, found as fast
 * as ever.
 *
 * Threads that are pinned to another CPU may stand in front, thousands of them and for long. So
 * each CPU notes how far it has looked in vain, in `passed` of the container, and looks on there.
 *
 * The engine says attune_may_run, attune_may_run_on, attune_count_pinned, and the machine's number
 * of a CPU.
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

static inline int64_t attune_size_here(const struct attune_instance ATTUNE_ARENA *attune,
                                       const struct attune_container ATTUNE_ARENA *c)
{
    if (!c->pinned)
        return c->size;
    return (int64_t)c->size - c->pinned + c->pinned_on[attune_number_of(attune->cpu)];
}

/* The thread before t in its container, or NULL. */
static inline struct attune_thread ATTUNE_ARENA *
attune_before(const struct attune_thread ATTUNE_ARENA *t)
{
#if ATTUNE_SORTED
    if (t->where->sorted_on)
        return attune_tree_before(t);
#endif
    return t->prev;
}

/* That CPU has looked in vain up to t; NULL: it has not looked. */
static inline void attune_pass(struct attune_container ATTUNE_ARENA *c, uint32_t number,
                               struct attune_thread ATTUNE_ARENA *t)
{
    c->passes += (uint32_t)(t != NULL) - (uint32_t)(c->passed[number] != NULL);
    c->passed[number] = t;
}

/* The first thread of a container with pinned ones that may run here, as a number; 0: none. */
ATTUNE_OUTLINE_AS(uint64_t)
attune_look_for(const struct attune_instance ATTUNE_ARENA *attune ATTUNE_IN_ARENA,
                struct attune_container ATTUNE_ARENA *c ATTUNE_IN_ARENA)
{
    struct attune_thread ATTUNE_ARENA *from, *t;
    uint32_t number = attune_number_of(attune->cpu);
    if (!attune_size_here(attune, c))
        return 0;
    from = c->passed[number] ? attune_after(c->passed[number]) : c->first;
    t = attune_allowed_from(attune, from);
    if (t && t != from)
        attune_pass(c, number, attune_before(t));
    return (uint64_t)t;
}

static inline struct attune_thread ATTUNE_ARENA *
attune_first_here(const struct attune_instance ATTUNE_ARENA *attune,
                  struct attune_container ATTUNE_ARENA *c)
{
    return c->pinned ? (struct attune_thread ATTUNE_ARENA *)attune_look_for(attune, c) : c->first;
}

ATTUNE_OUTLINE attune_pins_leave(struct attune_container ATTUNE_ARENA *c ATTUNE_IN_ARENA,
                                 struct attune_thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    if (t->pinned)
        attune_count_pinned(c, t, -1);
    if (!c->passes)
        ATTUNE_RETURN;
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < ATTUNE_CPUS && ATTUNE_MAY_LOOP; cpu++)
        if (c->passed[cpu] == t)
            attune_pass(c, cpu, attune_before(t));
    ATTUNE_RETURN;
}

/* Whether t, which has just come, stands before p. */
static inline int attune_came_before(const struct attune_container ATTUNE_ARENA *c,
                                     const struct attune_thread ATTUNE_ARENA *t,
                                     const struct attune_thread ATTUNE_ARENA *p)
{
#if ATTUNE_SORTED
    if (c->sorted_on)
        return (c->lowest ? t->key < p->key : t->key > p->key) ||
               (c->kind == ATTUNE_PSTACK && t->key == p->key);
#endif
    return c->kind == ATTUNE_STACK;
}

ATTUNE_OUTLINE attune_pins_come(struct attune_container ATTUNE_ARENA *c ATTUNE_IN_ARENA,
                                struct attune_thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    if (t->pinned)
        attune_count_pinned(c, t, 1);
    if (!c->passes)
        ATTUNE_RETURN;
    for (uint32_t cpu = (uint32_t)ATTUNE_ZERO; cpu < ATTUNE_CPUS && ATTUNE_MAY_LOOP; cpu++) {
        const struct attune_thread ATTUNE_ARENA *p = c->passed[cpu];
        if (p && attune_may_run_on(t, cpu) && attune_came_before(c, t, p))
            attune_pass(c, cpu, attune_before(t));
    }
    ATTUNE_RETURN;
}

static inline struct attune_thread ATTUNE_ARENA *
attune_after_here(const struct attune_instance ATTUNE_ARENA *attune,
                  const struct attune_thread ATTUNE_ARENA *t)
{
    return t->where->pinned ? attune_allowed_from(attune, attune_after(t)) : attune_after(t);
}

static inline struct attune_thread ATTUNE_ARENA *
attune_need_here(struct attune_instance ATTUNE_ARENA *attune, attune_place check,
                 struct attune_container ATTUNE_ARENA *c,
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
