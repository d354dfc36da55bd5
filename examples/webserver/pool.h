/* One acceptor and a pool of handlers. */
#ifndef WEBSERVER_POOL_H
#define WEBSERVER_POOL_H

#include "server.h"

/* Starts the threads; server->listener listens. False with a message on stderr if they cannot be
 * had. */
bool pool_start(struct server *server);

/* Makes room for clients that wait. The caller calls it every POOL_MAKE_ROOM_EVERY nanoseconds.
 *
 * If a client waits and the server has accepted none since the last call because no handler is
 * idle, handlers close connections after their reply from now on, and the server ends those that
 * have been quiet for long. This is not left to the acceptor: a scheduler may keep it from running
 * while no handler is idle. */
void pool_make_room(struct server *server);

#define POOL_MAKE_ROOM_EVERY 100000000

/* Accepts no more, lets replies under way end within options.grace, cuts the others, ends all
 * threads. */
void pool_stop(struct server *server);

#endif
