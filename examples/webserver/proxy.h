/* A caching reverse proxy: answers from memory where it may, else asks the upstream.
 *
 * A reply that may be kept is fetched as a whole, at the upstream's speed, before its client gets a
 * byte; so a slow client holds up nobody that waits for the same fetch. Other replies, and request
 * bodies, are passed on in pieces as they come. */
#ifndef WEBSERVER_PROXY_H
#define WEBSERVER_PROXY_H

#include "cache.h"
#include "flight.h"
#include "upstream.h"

struct handler;

struct proxy {
    bool on;
    struct upstream upstream;
    struct cache cache;
    struct flight *flights;
};

/* What a handler's buffer has beside a head, for the bodies of requests. */
#define PROXY_BODY_ROOM 16384

/* One request, whose head is the first `head_size` bytes of handler->buffer, and its reply. False
 * if the connection is at its end. */
bool proxy_serve(struct handler *handler, const struct http_request *request, size_t head_size);

#endif
