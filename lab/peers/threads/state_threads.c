/* State Threads (libst-dev): cooperative threads for servers, the ready ones in a ring. */
#include <st.h>

#include "bench.h"

static st_thread_t *handles;

static void *start(void *number)
{
    body((long)number);
    return NULL;
}

static void prepare(long count)
{
    st_set_eventsys(ST_EVENTSYS_ALT);
    if (st_init())
        exit(1);
    handles = calloc((size_t)count, sizeof *handles);
}

static void create(long number)
{
    handles[number] = st_thread_create(start, (void *)number, 1, 0);
    if (!handles[number])
        exit(1);
}

static void join(long number)
{
    st_thread_join(handles[number], NULL);
}

/* The library's way of yielding. */
static void give_way(void)
{
    st_sleep(0);
}
