/* The variables that the server tells its scheduler. The server runs under any scheduler; one that
 * declares imports of these names sees the values, as schedulers/shortest_reply.sched does. */
#ifndef WEBSERVER_IMPORTS_H
#define WEBSERVER_IMPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Imports of the server as a whole. */
struct server_imports {
    int idle_handlers;    /* threads that could take a new connection */
    int descriptors_left; /* connections that the system would still let us accept */
};

/* Imports of each thread: its userdata points here. */
struct thread_imports {
    bool acceptor;
    /* bytes of the reply still to be written; 0 while a request is awaited */
    int64_t remaining;
    bool miss;       /* of a proxy: the reply is not in the cache, and the upstream is asked */
    int64_t started; /* when the request came, in nanoseconds of attune_now() */
};

/* Registers all of them; false with a message on stderr if the scheduler declares one as something
 * else. */
bool imports_register(struct server_imports *server);

#endif
