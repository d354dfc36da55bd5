/* Imports: reading and writing a variable of the application by its width. A value that does not
 * fit is clamped to the nearest that does, and counted.
 *
 *      struct attune_import   link --> the application's variable, of the width noted beside the
 * import's name value    in force while link is NULL
 */
#ifndef ATTUNE_IMPORT_H
#define ATTUNE_IMPORT_H

#include "attune_scheduler.h"

/* Whether a variable of the application can be linked. */
#ifndef ATTUNE_LINKS
#define ATTUNE_LINKS 1
#endif

/* The nearest number from low to high: of a variable's width, or of an import's declared range. */
static inline int64_t attune_fit(struct attune_instance ATTUNE_ARENA *attune, int64_t value,
                                 int64_t low, int64_t high)
{
    if (value >= low && value <= high)
        return value;
    attune->clamped++;
    return value < low ? low : high;
}

#if ATTUNE_LINKS
#include "real.h"

static inline int64_t attune_whole(struct attune_instance ATTUNE_ARENA *attune, double x)
{
    if (!(x >= -9223372036854775808.0 && x < 9223372036854775808.0))
        attune->clamped++;
    return attune_to_int(x);
}

static inline int64_t attune_load(struct attune_instance ATTUNE_ARENA *attune, const void *link,
                                  enum attune_width width)
{
    switch (width) {
    case ATTUNE_I8:
        return *(const int8_t *)link;
    case ATTUNE_I16:
        return *(const int16_t *)link;
    case ATTUNE_I32:
        return *(const int32_t *)link;
    case ATTUNE_I64:
        return *(const int64_t *)link;
    case ATTUNE_U8:
        return *(const uint8_t *)link;
    case ATTUNE_U16:
        return *(const uint16_t *)link;
    case ATTUNE_U32:
        return *(const uint32_t *)link;
    case ATTUNE_U64: {
        uint64_t wide = *(const uint64_t *)link;
        attune->clamped += wide > INT64_MAX;
        return wide > INT64_MAX ? INT64_MAX : (int64_t)wide;
    }
    case ATTUNE_F32:
        return attune_whole(attune, *(const float *)link);
    case ATTUNE_F64:
        return attune_whole(attune, *(const double *)link);
    case ATTUNE_BOOL:
        return *(const uint8_t *)link != 0;
    }
    return 0;
}

static inline void attune_store(struct attune_instance ATTUNE_ARENA *attune, void *link,
                                enum attune_width width, int64_t value)
{
    switch (width) {
    case ATTUNE_I8:
        *(int8_t *)link = (int8_t)attune_fit(attune, value, INT8_MIN, INT8_MAX);
        break;
    case ATTUNE_I16:
        *(int16_t *)link = (int16_t)attune_fit(attune, value, INT16_MIN, INT16_MAX);
        break;
    case ATTUNE_I32:
        *(int32_t *)link = (int32_t)attune_fit(attune, value, INT32_MIN, INT32_MAX);
        break;
    case ATTUNE_I64:
        *(int64_t *)link = value;
        break;
    case ATTUNE_U8:
        *(uint8_t *)link = (uint8_t)attune_fit(attune, value, 0, UINT8_MAX);
        break;
    case ATTUNE_U16:
        *(uint16_t *)link = (uint16_t)attune_fit(attune, value, 0, UINT16_MAX);
        break;
    case ATTUNE_U32:
        *(uint32_t *)link = (uint32_t)attune_fit(attune, value, 0, UINT32_MAX);
        break;
    case ATTUNE_U64:
        *(uint64_t *)link = (uint64_t)attune_fit(attune, value, 0, INT64_MAX);
        break;
    case ATTUNE_F32:
        *(float *)link = (float)value;
        break;
    case ATTUNE_F64:
        *(double *)link = (double)value;
        break;
    case ATTUNE_BOOL:
        *(uint8_t *)link = (uint8_t)attune_fit(attune, value, 0, 1);
        break;
    }
}

#else
/* Where nothing can be linked, an import that the scheduler has assigned to has this for its link.
 * It is no address. */
#define ATTUNE_ASSIGNED_VALUE                    ((void *)1)
#define attune_load(attune, link, width)         0
#define attune_store(attune, link, width, value) (void)0
#endif

/* Reads and writes an import of type int or time. */
static inline int64_t attune_get(struct attune_instance ATTUNE_ARENA *attune,
                                 const struct attune_import ATTUNE_ARENA *import,
                                 enum attune_width width)
{
    return ATTUNE_LINKS && import->link ? attune_load(attune, import->link, width)
                                        : import->value.number;
}

static inline void attune_set(struct attune_instance ATTUNE_ARENA *attune,
                              struct attune_import ATTUNE_ARENA *import, enum attune_width width,
                              int64_t value)
{
    if (ATTUNE_LINKS && import->link) {
        attune_store(attune, import->link, width, value);
        return;
    }
    import->value.number = value;
#if !ATTUNE_LINKS
    import->link = ATTUNE_ASSIGNED_VALUE;
#endif
}

#if ATTUNE_LINKS
/* Reads and writes an import of type float. */
static inline double attune_get_real(struct attune_instance ATTUNE_ARENA *attune,
                                     const struct attune_import ATTUNE_ARENA *import,
                                     enum attune_width width)
{
    if (!import->link)
        return import->value.real;
    if (width == ATTUNE_F32)
        return *(const float *)import->link;
    if (width == ATTUNE_F64)
        return *(const double *)import->link;
    return (double)attune_load(attune, import->link, width);
}

static inline void attune_set_real(struct attune_instance ATTUNE_ARENA *attune,
                                   struct attune_import ATTUNE_ARENA *import,
                                   enum attune_width width, double value)
{
    const double largest = 340282346638528859811704183484516925440.0; /* of a 32-bit float */
    /* From here on it would round to infinity. */
    const double beyond = 340282356779733661637539395458142568448.0;
    if (!import->link) {
        import->value.real = value;
    } else if (width == ATTUNE_F64) {
        *(double *)import->link = value;
    } else if (width == ATTUNE_F32) {
        if ((value >= beyond || value <= -beyond) && value - value == 0) {
            attune->clamped++;
            value = value < 0 ? -largest : largest;
        }
        *(float *)import->link = (float)value;
    } else {
        uint64_t before = attune->clamped;
        int64_t whole = attune_whole(attune, value);
        attune_store(attune, import->link, width, whole);
        if (attune->clamped > before + 1)
            attune->clamped = before + 1; /* one value, counted once */
    }
}

#endif

#endif
