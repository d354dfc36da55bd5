/* GNU Pth (libpth-dev): priorities, an event manager that looks at every thread. */
#include <pth.h>

#include "bench.h"

static pth_t *handles;

static void *start(void *number)
{
    body((long)number);
    return NULL;
}

static void prepare(long count)
{
    if (!pth_init())
        exit(1);
    handles = calloc((size_t)count, sizeof *handles);
}

static void create(long number)
{
    handles[number] = pth_spawn(PTH_ATTR_DEFAULT, start, (void *)number);
    if (!handles[number])
        exit(1);
}

static void join(long number)
{
    pth_join(handles[number], NULL);
}

static void give_way(void)
{
    pth_yield(NULL);
}
