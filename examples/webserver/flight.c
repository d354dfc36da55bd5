/* See flight.h. */
#include "flight.h"

#include <attune.h>

struct waiter {
    attune_semaphore settled;
    struct flight_end end;
    struct waiter *next, **place; /* in the flight's list; place is NULL once it has left */
};

struct flight *flight_find(struct flight *flights, const struct cache_key *key)
{
    while (flights != NULL && !cache_same(&flights->key, key))
        flights = flights->next;
    return flights;
}

void flight_begin(struct flight **flights, struct flight *flight, const struct cache_key *key)
{
    *flight = (struct flight){.key = *key, .next = *flights};
    *flights = flight;
}

static void leave(struct waiter *waiter)
{
    *waiter->place = waiter->next;
    if (waiter->next != NULL)
        waiter->next->place = waiter->place;
    waiter->place = NULL;
}

void flight_settle(struct flight **flights, struct flight *flight, struct flight_end end)
{
    while (*flights != NULL && *flights != flight)
        flights = &(*flights)->next;
    if (*flights == NULL)
        return;
    *flights = flight->next;
    for (struct waiter *waiter; (waiter = flight->waiters) != NULL;) {
        leave(waiter);
        waiter->end = end;
        if (end.object != NULL)
            end.object->users++;
        attune_semaphore_post(&waiter->settled);
    }
}

struct flight_end flight_wait(struct flight *flight, int64_t timeout)
{
    struct waiter waiter = {.end = {.landing = LANDED_LATE}, .next = flight->waiters};
    waiter.place = &flight->waiters;
    if (waiter.next != NULL)
        waiter.next->place = &waiter.next;
    flight->waiters = &waiter;
    attune_semaphore_wait_timed(&waiter.settled, timeout);
    if (waiter.place != NULL)
        leave(&waiter);
    return waiter.end;
}
