/* Attune, under the policy that ATTUNE_SCHED names, or that is part of the program (COMPILED_IN).
 */
#include <attune.h>

#include "bench.h"

static attune_t *handles;

static void *start(void *number)
{
    body((long)number);
    return NULL;
}

static void prepare(long count)
{
    handles = calloc((size_t)count, sizeof *handles);
#ifdef COMPILED_IN
    struct attune_options options = {.size = sizeof options,
                                     .scheduler_in_program = &attune_scheduler};
    attune_init(&options);
#endif
}

static void create(long number)
{
    if (attune_create(&handles[number], NULL, start, (void *)number)) {
        perror("attune_create");
        exit(1);
    }
}

static void join(long number)
{
    attune_join(handles[number], NULL);
}

static void give_way(void)
{
    attune_yield();
}
