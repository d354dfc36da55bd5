/* What may be kept of a reply, for how long, and when a kept one may answer (RFC 9111). Pure.
 *
 * Stricter than the RFC allows: nothing without an explicit time is kept, nothing with Vary or
 * Set-Cookie, and what is stale is fetched anew. Times are whole seconds. */
#ifndef WEBSERVER_FRESHNESS_H
#define WEBSERVER_FRESHNESS_H

#include "http.h"

#include <time.h>

struct freshness {
    bool storable;    /* by a shared cache, and fresh for a while */
    int64_t lifetime; /* counted from when the upstream made the reply */
    int64_t age;      /* when it came: how long ago the upstream made it */
};

/* What holds for a reply to GET that came at `now`, `delay` after it was asked for. */
struct freshness freshness_of(const struct http_reply *reply, time_t now, int64_t delay);

/* What a request demands of the cache. */
struct demand {
    bool passes; /* goes to the upstream, and its reply is not kept */
    bool renews; /* no kept reply will do; the new one may be kept */
    bool only_kept;
    int64_t max_age;   /* a kept reply may be no older */
    int64_t min_fresh; /* and must stay fresh for so long */
};

struct demand demand_of(const struct http_request *request);

#endif
