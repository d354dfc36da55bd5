/* One acceptor and a pool of handlers. */
#ifndef WEBSERVER_POOL_H
#define WEBSERVER_POOL_H

#include "server.h"

/* Starts the threads; server->listener listens. False with a message on stderr if they cannot be had. */
bool pool_start(struct server *server);

/* To be called every POOL_MAKE_ROOM_EVERY nanoseconds. If nobody has been accepted since the last call, though somebody waits,
 * because no handler is idle: connections are now closed after their reply, and those that have been quiet for long are
 * ended. (Not the acceptor's business: a scheduler may keep it from running while no handler is idle.) */
void pool_make_room(struct server *server);

#define POOL_MAKE_ROOM_EVERY 100000000

/* Accepts no more, lets replies under way end within options.grace, cuts the others, ends all threads. */
void pool_stop(struct server *server);

#endif
