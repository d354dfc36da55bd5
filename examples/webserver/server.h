/* The server's state, and which thread may change it.
 *
 *     listener --accept--> acceptor --semaphore work--> handler 1..n --reply--> client
 *                             ^                            |
 *                             +------ semaphore idle ------+
 *
 * All threads are user-level threads of one process. They switch only inside attune_ calls, so the
 * code between two such calls needs no lock.
 *
 * Invariants
 *   - A handler is either on the stack of idle handlers, with fd -1, or has a connection that it
 *     alone closes.
 *   - imports.idle_handlers is the height of that stack. The semaphore `idle` counts the same less
 *     those promised to the acceptor.
 *   - handler.link is what the handler itself uses; only pool_stop touches another's, to end a
 * wait.
 *   - A connection is in the list `quiet` exactly while its handler waits for a request's first
 *     byte. */
#ifndef WEBSERVER_SERVER_H
#define WEBSERVER_SERVER_H

#include "files.h"
#include "options.h"
#include "proxy.h"
#include "imports.h"

#include <attune.h>
#include <time.h>

struct server;

struct handler {
    struct thread_imports imports; /* the thread's userdata */
    struct server *server;
    attune_t thread;
    attune_semaphore work; /* posted when fd is a new connection, or -1 to end */
    int fd;
    bool ended;
    struct handler *below;         /* next on the stack of idle handlers */
    struct handler *older, *newer; /* neighbours in the list of quiet connections */
    int64_t quiet_since;
    /* `room` bytes: what has been received and not yet understood */
    char *buffer;
    size_t filled, room;
    struct link *link; /* to the upstream, while a proxied request uses one */
};

/* Counted since the start. */
struct counters {
    uint64_t connections, requests;
    uint64_t ok, not_found, refused; /* replies: 200, 404, any other */
    uint64_t bytes;                  /* of replies, heads included, that the system took */
    uint64_t timeouts;               /* clients too slow in sending or taking */
    uint64_t resets;                 /* clients gone in the middle of a request or a reply */
    uint64_t reclaimed;              /* quiet connections closed in favour of new ones */
    /* times that accept had to pause for want of descriptors or memory */
    uint64_t no_descriptors;
    uint64_t aborted; /* replies cut at the end of the grace period */

    /* of a proxy: replies from the cache, requests that went to the upstream, those that waited for
     * another's fetch instead, replies that the upstream owes */
    uint64_t hits, misses, shared, failures;
};

struct server {
    struct options options;
    struct files files; /* none where the server is a proxy */
    struct proxy proxy;
    struct server_imports imports;
    struct counters counters;
    int listener;
    bool stopping;
    bool failed; /* accept failed for good */
    /* a client waits to be accepted and no handler becomes idle */
    bool starved;
    uint64_t connections_before; /* counters.connections when that was last looked at */

    struct thread_imports acceptor_imports;
    attune_t acceptor;
    struct handler *handlers; /* options.handlers of them */
    char *buffers;
    struct handler *idle_top;
    attune_semaphore idle;
    attune_semaphore ended;            /* posted by each handler that ends */
    struct handler *quietest, *latest; /* quiet connections, the longest quiet first */

    time_t date_second;
    char date[48]; /* of date_second, as replies show it */
};

#endif
