/* Fetches under way, so that threads that want the same object wait for one fetch of it instead of
 * making their own.
 *
 * Invariant: a flight is in the list from flight_begin to flight_settle, and a thread that waits is
 * in its flight's list until that is settled or the thread's patience has ended. Both live on
 * their threads' stacks. */
#ifndef WEBSERVER_FLIGHT_H
#define WEBSERVER_FLIGHT_H

#include "cache.h"

enum landing {
    LANDED_KEPT,   /* object is the reply, with a user for this thread */
    LANDED_NOT,    /* the reply is not for others: each must ask for its own */
    LANDED_FAILED, /* there is no reply: status and reason say why */
    LANDED_LATE    /* the wait was too long */
};

struct waiter;

struct flight {
    struct cache_key key;
    struct waiter *waiters;
    struct flight *next;
};

/* The fetch of that key that is under way, or NULL. */
struct flight *flight_find(struct flight *flights, const struct cache_key *key);

void flight_begin(struct flight **flights, struct flight *flight, const struct cache_key *key);

struct flight_end {
    enum landing landing;
    struct object *object;
    int status;
    const char *reason; /* a literal */
};

/* Ends the flight: every waiter gets the same end. A second call does nothing. */
void flight_settle(struct flight **flights, struct flight *flight, struct flight_end end);

/* Waits for the end of a fetch. */
struct flight_end flight_wait(struct flight *flight, int64_t timeout);

#endif
