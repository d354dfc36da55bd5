/* What test programs demand: one that does not hold ends the program with status 1, after a line on
 * stderr that names its place. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS ((int64_t)1000000)
#define CHECK(what)                                                                        \
    do {                                                                                   \
        if (!(what)) {                                                                     \
            fprintf(stderr, "%s:%d: %s (errno %d %s)\n", __FILE__, __LINE__, #what, errno, \
                    strerror(errno));                                                      \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)
#define FAILS(error, call)                       \
    do {                                         \
        errno = 0;                               \
        CHECK((call) == -1 && errno == (error)); \
    } while (0)

#endif
