/* Imports that are variables of the firmware: read and written by their type, which the compiler
 * knows. A value that does not fit is clamped to the nearest that does, and counted.
 *
 *      ATTUNE_IMPORT_temperature   names the variable of the import `temperature`
 */
#ifndef ATTUNE_PLAIN_IMPORT_H
#define ATTUNE_PLAIN_IMPORT_H

#include "import.h"

#define ATTUNE_WIDTH_OF(variable)                                   \
    _Generic((variable),                                            \
        _Bool: ATTUNE_BOOL,                                         \
        char: (char)-1 < 0 ? ATTUNE_I8 : ATTUNE_U8,                 \
        signed char: ATTUNE_I8,                                     \
        unsigned char: ATTUNE_U8,                                   \
        short: ATTUNE_I16,                                          \
        unsigned short: ATTUNE_U16,                                 \
        int: ATTUNE_I32,                                            \
        unsigned: ATTUNE_U32,                                       \
        long: sizeof(long) == 4 ? ATTUNE_I32 : ATTUNE_I64,          \
        unsigned long: sizeof(long) == 4 ? ATTUNE_U32 : ATTUNE_U64, \
        long long: ATTUNE_I64,                                      \
        unsigned long long: ATTUNE_U64,                             \
        float: ATTUNE_F32,                                          \
        double: ATTUNE_F64)

/* Reads and writes an import of type int or time. */
#define ATTUNE_READ(variable) \
    attune_load(attune, (const void *)&(variable), ATTUNE_WIDTH_OF(variable))
#define ATTUNE_WRITE(variable, value) \
    attune_store(attune, (void *)&(variable), ATTUNE_WIDTH_OF(variable), value)

/* Reads and writes an import of type float. */
static inline double attune_read_real(struct attune_instance ATTUNE_ARENA *attune,
                                      struct attune_import link, enum attune_width width)
{
    return attune_get_real(attune, &link, width);
}

static inline void attune_write_real(struct attune_instance ATTUNE_ARENA *attune,
                                     struct attune_import link, enum attune_width width,
                                     double value)
{
    attune_set_real(attune, &link, width, value);
}

#define ATTUNE_READ_REAL(variable)                                                \
    attune_read_real(attune, (struct attune_import){.link = (void *)&(variable)}, \
                     ATTUNE_WIDTH_OF(variable))
#define ATTUNE_WRITE_REAL(variable, value)                                         \
    attune_write_real(attune, (struct attune_import){.link = (void *)&(variable)}, \
                      ATTUNE_WIDTH_OF(variable), value)

#endif
