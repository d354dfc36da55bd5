/* Variables that a cluster supplies: imports of the instance whose copies the engine keeps. An
 * assignment changes the copy at once and tells the engine the operation, not the value, so that
 * updates by several nodes merge: `x += 1` is an addition, whatever x has become elsewhere.
 *
 *      load -= 2;      load = attune_update(attune, 3, ATTUNE_ADD, load, -2)
 */
#ifndef ATTUNE_SHARED_H
#define ATTUNE_SHARED_H

#include "number.h"
#include "real.h"

static inline void attune_tell(struct attune_instance *attune, uint32_t global, uint32_t operation,
                               int64_t operand)
{
    if (attune->host->update)
        attune->host->update(attune->host->engine, global, operation, operand);
}

/* What an int or a time becomes. */
static inline int64_t attune_update(struct attune_instance *attune, uint32_t global,
                                    enum attune_operation operation, int64_t old, int64_t by)
{
    attune_tell(attune, global, operation, by);
    switch (operation) {
    case ATTUNE_SET:
        return by;
    case ATTUNE_ADD:
        return attune_add(old, by);
    case ATTUNE_MULTIPLY:
        return attune_mul(old, by);
    case ATTUNE_DIVIDE:
        return attune_div(attune, old, by);
    case ATTUNE_REMAINDER:
        return attune_mod(attune, old, by);
    }
    return old;
}

static inline double attune_apply_real(struct attune_instance *attune,
                                       enum attune_operation operation, double old, double by)
{
    switch (operation) {
    case ATTUNE_SET:
        return by;
    case ATTUNE_ADD:
        return old + by;
    case ATTUNE_MULTIPLY:
        return old * by;
    case ATTUNE_DIVIDE:
        return attune_div_real(attune, old, by);
    case ATTUNE_REMAINDER:
        return attune_mod_real(attune, old, by);
    }
    return old;
}

/* What a float becomes. */
static inline double attune_update_real(struct attune_instance *attune, uint32_t global,
                                        enum attune_operation operation, double old, double by)
{
    attune_tell(attune, global, operation, (int64_t)attune_bits(by));
    return attune_apply_real(attune, operation, old, by);
}

/* What an int becomes by an operation of floats, such as `x += 1.5`. */
static inline int64_t attune_update_mixed(struct attune_instance *attune, uint32_t global,
                                          enum attune_operation operation, int64_t old, double by)
{
    attune_tell(attune, global, operation | ATTUNE_BY_REAL, (int64_t)attune_bits(by));
    return attune_to_int(attune_apply_real(attune, operation, (double)old, by));
}

#endif
