/* Containers of threads: intrusive, without any memory beyond the thread record.
 *
 *      threadref, queue, stack                      pqueue, pstack (ATTUNE_SORTED, see tree.h)
 *
 *      first --> A <--> B <--> C <-- last           first ------------.     the removal point,
 * cached where of each = the container      root --> M         v removal point: first / \        A
 * in order from left to right insertion:  queue behind last,                      A   Z stack
 * before first
 *
 * Invariant: size is the number of threads whose `where` is this container, and all of them are
 * reached from `first` by attune_after, each once; a threadref holds one at most; a sorted
 * container's keys never step back on that way, and among equal keys stamps grow (pqueue) or fall
 * (pstack). attune_sound checks exactly this. Beside it, pinned is the number of its threads that
 * are pinned, and pinned_on[c] the number of those of them that may run on CPU c; passed[c] is NULL
 * or one of its threads, and neither that thread nor any before it may run on CPU c.
 *
 * Cursors. A foreach whose body moves threads notes the next thread to visit and the stamp at its
 * start. Every insertion gives a new stamp, so the foreach passes over a thread that came later; a
 * thread that leaves advances the cursors that point to it. So the body may move any thread, and
 * several cursors may walk one container.
 */
#ifndef ATTUNE_CONTAINER_H
#define ATTUNE_CONTAINER_H

#include "attune_scheduler.h"
#include "number.h"

/* Whether the scheduler has sorted containers. */
#ifndef ATTUNE_SORTED
#define ATTUNE_SORTED 1
#endif

/* Whether a loop notes its place in a container, or a container is sorted: insertions are numbered.
 */
#ifndef ATTUNE_STAMPS
#define ATTUNE_STAMPS 1
#endif

/* Whether the scheduler has stacks. */
#ifndef ATTUNE_STACKS
#define ATTUNE_STACKS 1
#endif

/* Whether the scheduler starts once, in memory that is zero, and no message says what a container
 * is called. */
#ifndef ATTUNE_ONCE
#define ATTUNE_ONCE 0
#endif

/* Whether threads may be bound to some of ATTUNE_CPUS CPUs. */
#ifndef ATTUNE_PINS
#define ATTUNE_PINS 0
#endif

/* A function large enough not to be repeated wherever it is used, and its parameters in the arena.
 */
#ifndef ATTUNE_OUTLINE
#define ATTUNE_OUTLINE_AS(type) static inline type
#define ATTUNE_OUTLINE          ATTUNE_OUTLINE_AS(void)
#define ATTUNE_RETURN           return
#define ATTUNE_IN_ARENA
#endif

enum attune_kind { ATTUNE_THREADREF, ATTUNE_QUEUE, ATTUNE_STACK, ATTUNE_PQUEUE, ATTUNE_PSTACK };

struct attune_cursor {
    struct attune_container ATTUNE_ARENA *of; /* NULL: at its end */
    struct attune_thread ATTUNE_ARENA *next;  /* to look at next */
    struct attune_cursor ATTUNE_ARENA *other; /* of the same container */
    uint64_t since;                           /* visits threads with an older stamp */
};

struct attune_container {
    struct attune_thread ATTUNE_ARENA *first;
    union {
        struct attune_thread ATTUNE_ARENA *last, *root;
    };
    struct attune_cursor ATTUNE_ARENA *cursors;
    uint32_t size;
    uint8_t kind; /* enum attune_kind */
    /* sorted: the lowest key is first, else the highest */
    uint8_t lowest;
    uint8_t changed; /* since the invariants last ran */
    uint8_t unused;
    /* the attribute's number, from 1; 0: not sorted */
    uint32_t sorted_on;
    int32_t element;  /* of an array, for messages; -1: none */
    const char *name; /* as the scheduler calls it */
#if ATTUNE_PINS
    /* threads that may not run everywhere, and where they may, by the machine's numbers */
    uint32_t pinned, pinned_on[ATTUNE_CPUS];
    /* how far each CPU has looked in vain (affinity.h), and for how many that is not NULL */
    uint32_t passes;
    struct attune_thread ATTUNE_ARENA *passed[ATTUNE_CPUS];
#endif
};

#if ATTUNE_PINS
/* affinity.h: a thread is about to leave the container, which has pinned ones. */
ATTUNE_OUTLINE attune_pins_leave(struct attune_container ATTUNE_ARENA *c ATTUNE_IN_ARENA,
                                 struct attune_thread ATTUNE_ARENA *t ATTUNE_IN_ARENA);
/* It has come to the container, and is pinned or a CPU has looked in vain there. */
ATTUNE_OUTLINE attune_pins_come(struct attune_container ATTUNE_ARENA *c ATTUNE_IN_ARENA,
                                struct attune_thread ATTUNE_ARENA *t ATTUNE_IN_ARENA);
#endif

#if ATTUNE_SORTED
#include "tree.h"
#endif

static inline void attune_container_init(struct attune_container ATTUNE_ARENA *c, const char *name,
                                         int32_t element, enum attune_kind kind, int lowest,
                                         uint32_t sorted_on)
{
    c->kind = (uint8_t)kind;
#if ATTUNE_SORTED
    c->lowest = (uint8_t)lowest;
    c->sorted_on = sorted_on;
#endif
#if !ATTUNE_ONCE
    c->first = c->last = NULL;
    c->cursors = NULL;
    c->size = 0;
#if ATTUNE_PINS
    c->pinned = c->passes = 0;
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++) {
        c->pinned_on[cpu] = 0;
        c->passed[cpu] = NULL;
    }
#endif
    c->changed = 0;
    c->element = element;
    c->name = name;
#endif
}

/* The thread at the removal point, or NULL. */
static inline struct attune_thread ATTUNE_ARENA *
attune_first(const struct attune_container ATTUNE_ARENA *c)
{
    return c->first;
}

static inline int64_t attune_size(const struct attune_container ATTUNE_ARENA *c)
{
    return c->size;
}

/* The thread behind t in its container, or NULL. */
static inline struct attune_thread ATTUNE_ARENA *
attune_after(const struct attune_thread ATTUNE_ARENA *t)
{
#if ATTUNE_SORTED
    if (t->where->sorted_on)
        return (struct attune_thread ATTUNE_ARENA *)attune_tree_step(t);
#endif
    return t->next;
}

/* A thread has come to the container, or has left it. */
static inline void attune_changed(struct attune_container ATTUNE_ARENA *c)
{
#ifdef ATTUNE_DEBUG
    c->changed = 1;
#endif
}

/* Takes the thread from wherever it is; nothing if it sits nowhere. */
static inline void attune_remove(struct attune_thread ATTUNE_ARENA *t)
{
    struct attune_container ATTUNE_ARENA *c = t->where;
    if (!c)
        return;
#if ATTUNE_STAMPS
    for (struct attune_cursor ATTUNE_ARENA *u = c->cursors; u && ATTUNE_MAY_LOOP; u = u->other)
        if (u->next == t)
            u->next = attune_after(t);
#endif
#if ATTUNE_PINS
    if (c->pinned)
        attune_pins_leave(c, t);
#endif
#if ATTUNE_SORTED
    if (c->sorted_on)
        attune_tree_remove(c, t);
    else
#endif
    {
        if (t->prev)
            t->prev->next = t->next;
        else
            c->first = t->next;
        if (t->next)
            t->next->prev = t->prev;
        else
            c->last = t->prev;
    }
    t->where = NULL;
    c->size--;
    attune_changed(c);
}

/* The place of a thread in a container that is not sorted. */
static inline void attune_chain(struct attune_container ATTUNE_ARENA *c,
                                struct attune_thread ATTUNE_ARENA *t)
{
    if (ATTUNE_STACKS && c->kind == ATTUNE_STACK) {
        t->prev = NULL;
        t->next = c->first;
        if (c->first)
            c->first->prev = t;
        else
            c->last = t;
        c->first = t;
    } else {
        t->next = NULL;
        t->prev = c->last;
        if (c->last)
            c->last->next = t;
        else
            c->first = t;
        c->last = t;
    }
}

/* Puts a thread that sits nowhere at the insertion point. `key` counts in a sorted container. */
static inline void attune_insert(struct attune_instance ATTUNE_ARENA *attune,
                                 struct attune_container ATTUNE_ARENA *c,
                                 struct attune_thread ATTUNE_ARENA *t, int64_t key)
{
    t->where = c;
#if ATTUNE_SORTED
    t->key = key;
#endif
#if ATTUNE_STAMPS
    t->stamp = attune->stamp++;
#endif
    c->size++;
    attune_changed(c);
#if ATTUNE_SORTED
    if (c->sorted_on)
        attune_tree_insert(c, t);
    else
#endif
        attune_chain(c, t);
#if ATTUNE_PINS
    if (t->pinned | c->passes)
        attune_pins_come(c, t);
#endif
}

/* `t => c`, said in that line of the scheduler. */
static inline void attune_move(struct attune_instance ATTUNE_ARENA *attune,
                               struct attune_thread ATTUNE_ARENA *t,
                               struct attune_container ATTUNE_ARENA *c, int64_t key, uint32_t line)
{
    attune_remove(t);
    attune_insert(attune, c, t, key);
    t->line = line;
}

/* `c => c`, said in that line: the first thread of a queue goes to its end. `t` is that thread. */
static inline void attune_rotate(struct attune_instance ATTUNE_ARENA *attune,
                                 struct attune_container ATTUNE_ARENA *c,
                                 struct attune_thread ATTUNE_ARENA *t, uint32_t line)
{
#if ATTUNE_STAMPS || ATTUNE_PINS || defined(ATTUNE_DEBUG)
    attune_move(attune, t, c, 0, line);
#else
    struct attune_thread ATTUNE_ARENA *first = t->next;
    t->line = line;
    if (!first)
        return;
    first->prev = NULL;
    c->first = first;
    t->next = NULL;
    t->prev = c->last;
    c->last->next = t;
    c->last = t;
#endif
}

/* The attribute with that number was assigned: a container sorted on it takes the thread anew. */
static inline void attune_resort(struct attune_instance ATTUNE_ARENA *attune,
                                 struct attune_thread ATTUNE_ARENA *t, uint32_t attribute,
                                 int64_t key)
{
    struct attune_container ATTUNE_ARENA *c = t->where;
    if (c && c->sorted_on == attribute) {
        attune_remove(t);
        attune_insert(attune, c, t, key);
    }
}

/* `destroy t`. */
static inline void attune_destroy(struct attune_thread ATTUNE_ARENA *t)
{
    attune_remove(t);
    t->destroyed = 1;
}

/* Ends a foreach early. Nothing if it is at its end. */
static inline void attune_leave(struct attune_cursor ATTUNE_ARENA *u)
{
    struct attune_cursor ATTUNE_ARENA *before;
    if (!u->of)
        return;
    if (u->of->cursors == u) {
        u->of->cursors = u->other;
    } else {
        for (before = u->of->cursors; before && ATTUNE_MAY_LOOP; before = before->other) {
            if (before->other == u) {
                before->other = u->other;
                break;
            }
        }
    }
    u->of = NULL;
}

/* The next thread of a foreach, or NULL at its end, where the cursor leaves by itself. */
static inline struct attune_thread ATTUNE_ARENA *attune_next(struct attune_cursor ATTUNE_ARENA *u)
{
    struct attune_thread ATTUNE_ARENA *t = u->next;
    while (t && t->stamp >= u->since && ATTUNE_MAY_LOOP)
        t = attune_after(t);
    if (t)
        u->next = attune_after(t);
    else
        attune_leave(u);
    return t;
}

/* Starts a foreach and gives its first thread. The cursor may still be where a failed check left
 * it. */
static inline struct attune_thread ATTUNE_ARENA *
attune_visit(struct attune_instance ATTUNE_ARENA *attune, struct attune_container ATTUNE_ARENA *c,
             struct attune_cursor ATTUNE_ARENA *u)
{
    attune_leave(u);
    u->of = c;
    u->next = c->first;
    u->since = attune->stamp;
    u->other = c->cursors;
    c->cursors = u;
    return attune_next(u);
}

#ifdef ATTUNE_DEBUG
/* Whether the invariant above holds. */
static inline int attune_sound(const struct attune_container ATTUNE_ARENA *c)
{
    uint32_t found = 0;
    const struct attune_thread ATTUNE_ARENA *previous = NULL;
    if (c->kind == ATTUNE_THREADREF && c->size > 1)
        return 0;
    for (struct attune_thread ATTUNE_ARENA *t = c->first; t && ATTUNE_MAY_LOOP;
         t = attune_after(t)) {
        if (t->where != c || found++ == c->size)
            return 0;
#if ATTUNE_SORTED
        if (previous && c->sorted_on && !attune_tree_ordered(c, previous, t))
            return 0;
#endif
        previous = t;
    }
#if ATTUNE_SORTED
    if (c->sorted_on)
        return found == c->size && attune_tree_sound(c);
#endif
    return found == c->size && c->last == previous;
}
#endif

#endif
