/* The order of a sorted container: an AVL tree of thread records with parent pointers.
 *
 *                M 3            prev = left child, next = right child
 *              /     \          height = 1 + the taller child's
 *           C 2       Z 1       in order from left to right: first removed to last removed
 *          /
 *        A 1  <-- first
 *
 * Invariant: the heights of any thread's two subtrees differ by at most 1, so that n threads are at
 * most 1.45 log2(n) deep; a child's parent is its parent; `first` is the leftmost.
 * attune_tree_sound checks exactly this; that keys are in order, attune_tree_ordered.
 *
 * Parent pointers rather than recursion or a path on the stack: a thread is removed from its middle
 * without a search.
 */
#ifndef ATTUNE_TREE_H
#define ATTUNE_TREE_H

static inline int attune_tree_height(const struct attune_thread ATTUNE_ARENA *t)
{
    return t ? t->height : 0;
}

/* The leftmost thread below t. */
static inline struct attune_thread ATTUNE_ARENA *
attune_tree_leftmost(struct attune_thread ATTUNE_ARENA *t)
{
    while (t->prev && ATTUNE_MAY_LOOP)
        t = t->prev;
    return t;
}

static inline struct attune_thread ATTUNE_ARENA *
attune_tree_after(const struct attune_thread ATTUNE_ARENA *t)
{
    if (t->next)
        return attune_tree_leftmost(t->next);
    while (t->parent && t->parent->next == t && ATTUNE_MAY_LOOP)
        t = t->parent;
    return t->parent;
}

/* The same as a number, 0: none. For loops over containers: a scheduler has so many that a verifier
 * should not read this again in each. */
ATTUNE_OUTLINE_AS(uintptr_t)
attune_tree_step(const struct attune_thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    return (uintptr_t)attune_tree_after(t);
}

#if ATTUNE_PINS
static inline struct attune_thread ATTUNE_ARENA *
attune_tree_before(const struct attune_thread ATTUNE_ARENA *t)
{
    struct attune_thread ATTUNE_ARENA *down = t->prev;
    if (down) {
        while (down->next && ATTUNE_MAY_LOOP)
            down = down->next;
        return down;
    }
    while (t->parent && t->parent->prev == t && ATTUNE_MAY_LOOP)
        t = t->parent;
    return t->parent;
}
#endif

/* Puts `new` (or nothing) where `old` hangs below its parent. */
static inline void attune_tree_replace(struct attune_container ATTUNE_ARENA *c,
                                       struct attune_thread ATTUNE_ARENA *old,
                                       struct attune_thread ATTUNE_ARENA *new)
{
    struct attune_thread ATTUNE_ARENA *parent = old->parent;
    if (!parent)
        c->root = new;
    else if (parent->prev == old)
        parent->prev = new;
    else
        parent->next = new;
    if (new)
        new->parent = parent;
}

static inline void attune_tree_measure(struct attune_thread ATTUNE_ARENA *t)
{
    int left = attune_tree_height(t->prev), right = attune_tree_height(t->next);
    t->height = (uint8_t)(1 + (left > right ? left : right));
}

/* Lifts t's right child (`left`: its left child) into t's place, and gives it. */
static inline struct attune_thread ATTUNE_ARENA *
attune_tree_rotate(struct attune_container ATTUNE_ARENA *c, struct attune_thread ATTUNE_ARENA *t,
                   int left)
{
    struct attune_thread ATTUNE_ARENA *up = left ? t->prev : t->next;
    struct attune_thread ATTUNE_ARENA *inner = left ? up->next : up->prev;
    attune_tree_replace(c, t, up);
    if (left) {
        t->prev = inner;
        up->next = t;
    } else {
        t->next = inner;
        up->prev = t;
    }
    if (inner)
        inner->parent = t;
    t->parent = up;
    attune_tree_measure(t);
    attune_tree_measure(up);
    return up;
}

/* A subtree of t became taller or shorter: restores the invariant from t upwards. */
static inline void attune_tree_balance(struct attune_container ATTUNE_ARENA *c,
                                       struct attune_thread ATTUNE_ARENA *t)
{
    for (; t && ATTUNE_MAY_LOOP; t = t->parent) {
        int before = t->height;
        int lean = attune_tree_height(t->prev) - attune_tree_height(t->next);
        if (lean > 1) {
            if (attune_tree_height(t->prev->next) > attune_tree_height(t->prev->prev))
                attune_tree_rotate(c, t->prev, 0);
            t = attune_tree_rotate(c, t, 1);
        } else if (lean < -1) {
            if (attune_tree_height(t->next->prev) > attune_tree_height(t->next->next))
                attune_tree_rotate(c, t->next, 1);
            t = attune_tree_rotate(c, t, 0);
        } else {
            attune_tree_measure(t);
        }
        if (t->height == before)
            return;
    }
}

ATTUNE_OUTLINE attune_tree_insert(struct attune_container ATTUNE_ARENA *c ATTUNE_IN_ARENA,
                                  struct attune_thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    struct attune_thread ATTUNE_ARENA *parent = NULL, *at = c->root;
    int left = 1, leftmost = 1;
    while (at && ATTUNE_MAY_LOOP) {
        parent = at;
        left = (c->lowest ? t->key < at->key : t->key > at->key) ||
               (c->kind == ATTUNE_PSTACK && t->key == at->key);
        leftmost &= left;
        at = left ? at->prev : at->next;
    }
    t->prev = t->next = NULL;
    t->parent = parent;
    t->height = 1;
    if (!parent)
        c->root = t;
    else if (left)
        parent->prev = t;
    else
        parent->next = t;
    if (leftmost)
        c->first = t;
    attune_tree_balance(c, parent);
    ATTUNE_RETURN;
}

ATTUNE_OUTLINE attune_tree_remove(struct attune_container ATTUNE_ARENA *c ATTUNE_IN_ARENA,
                                  struct attune_thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    struct attune_thread ATTUNE_ARENA *shrunk = t->parent, *heir;
    if (c->first == t)
        c->first = attune_tree_after(t);
    if (!t->prev || !t->next) {
        attune_tree_replace(c, t, t->prev ? t->prev : t->next);
    } else {
        heir = attune_tree_leftmost(t->next); /* takes t's place; has no left child */
        shrunk = heir;
        if (heir->parent != t) {
            shrunk = heir->parent;
            attune_tree_replace(c, heir, heir->next);
            heir->next = t->next;
            heir->next->parent = heir;
        }
        heir->prev = t->prev;
        heir->prev->parent = heir;
        heir->height = t->height;
        attune_tree_replace(c, t, heir);
    }
    attune_tree_balance(c, shrunk);
    ATTUNE_RETURN;
}

#ifdef ATTUNE_DEBUG
/* Whether b may stand right behind a. */
static inline int attune_tree_ordered(const struct attune_container ATTUNE_ARENA *c,
                                      const struct attune_thread ATTUNE_ARENA *a,
                                      const struct attune_thread ATTUNE_ARENA *b)
{
    if (a->key == b->key)
        return c->kind == ATTUNE_PSTACK ? a->stamp > b->stamp : a->stamp < b->stamp;
    return c->lowest ? a->key < b->key : a->key > b->key;
}

static inline int attune_tree_sound(const struct attune_container ATTUNE_ARENA *c)
{
    if (!c->root)
        return !c->first;
    if (c->root->parent || attune_tree_leftmost(c->root) != c->first)
        return 0;
    for (struct attune_thread ATTUNE_ARENA *t = c->first; t && ATTUNE_MAY_LOOP;
         t = attune_tree_after(t)) {
        int left = attune_tree_height(t->prev), right = attune_tree_height(t->next);
        if (left - right > 1 || right - left > 1 || t->height != 1 + (left > right ? left : right))
            return 0;
        if ((t->prev && t->prev->parent != t) || (t->next && t->next->parent != t))
            return 0;
    }
    return 1;
}
#endif

#endif
