/* One acceptor and a pool of handlers. */
#ifndef WEBSERVER_POOL_H
#define WEBSERVER_POOL_H

#include "server.h"

/* Starts the threads; server->listener listens. False with a message on stderr if they cannot be had. */
bool pool_start(struct server *server);

/* Accepts no more, lets replies under way end within options.grace, cuts the others, ends all threads. */
void pool_stop(struct server *server);

#endif
