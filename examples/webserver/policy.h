/* What the server tells the scheduler. Any scheduler will do; one that declares imports of these names sees the values
 * (schedulers/shortest_reply.sched is written for them). */
#ifndef WEBSERVER_POLICY_H
#define WEBSERVER_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* Of the server as a whole. */
struct policy_server {
    int idle_handlers;          /* threads that could take a new connection */
    int descriptors_left;       /* connections that the system would still let us accept */
};

/* Of each thread: what its userdata points to. */
struct policy_thread {
    bool acceptor;
    int64_t remaining;          /* bytes of the reply still to be written; 0 while a request is awaited */
    int64_t started;            /* when the request came, in nanoseconds of attune_now() */
};

/* Registers all of them; false with a message on stderr if the scheduler declares one as something else. */
bool policy_register(struct policy_server *server);

#endif
