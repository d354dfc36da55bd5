/* Variables that a cluster supplies, where a loader or a gateway talks to the cluster and no
 * handler can: imports whose values it stores. An assignment changes the copy at once, and is added
 * to what handlers have done to the variable since those were taken:
 *
 *      x * scale + shift       1, 0: nothing    0, v: set    1, e: added    e, 0: multiplied
 *
 * One such pair says what any number of these operations do one after the other, to the bit, for
 * integers wrap around. So nothing grows while it is late. Divisions have no such pair; the
 * front end refuses them (language/src/engine/limits.rs).
 */
#ifndef ATTUNE_WRITTEN_H
#define ATTUNE_WRITTEN_H

#include "number.h"

#ifndef ATTUNE_KEPT
#define ATTUNE_KEPT
#endif

struct attune_change {
    int64_t scale, shift;
};

#define ATTUNE_UNCHANGED ((struct attune_change){.scale = 1})

/* By global. */
static struct attune_change ATTUNE_KEPT ATTUNE_ARENA attune_written[ATTUNE_GLOBALS] = {
    [0 ... ATTUNE_GLOBALS - 1] = {.scale = 1}};

/* When the cluster's manager was heard of last: ns; 0: never. */
static int64_t ATTUNE_KEPT ATTUNE_ARENA attune_heard_at;

/* The engine's: a handler has written. */
static void attune_has_written(void);

/* The change, and then another one. */
static inline void attune_compose(struct attune_change ATTUNE_ARENA *change, int64_t scale,
                                  int64_t shift)
{
    change->scale = attune_mul(change->scale, scale);
    change->shift = attune_add(attune_mul(change->shift, scale), shift);
}

/* What a variable becomes. */
static inline int64_t attune_update(struct attune_instance ATTUNE_ARENA *attune, uint32_t global,
                                    enum attune_operation operation, int64_t old, int64_t by)
{
    int64_t scale = operation == ATTUNE_ADD ? 1 : operation == ATTUNE_MULTIPLY ? by : 0;
    int64_t shift = operation == ATTUNE_MULTIPLY ? 0 : by;
    attune_compose(&attune_written[global], scale, shift);
    attune_has_written();
    return attune_add(attune_mul(old, scale), shift);
}

/* How long ago the manager was heard of. */
static inline int64_t attune_age(struct attune_instance ATTUNE_ARENA *attune)
{
    if (!attune_heard_at)
        return INT64_MAX;
    return attune->now > attune_heard_at ? attune->now - attune_heard_at : 0;
}

#endif
