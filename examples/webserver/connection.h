/* One connection: reads requests, writes replies in chunks with a yield between, until either side
 * has had enough. */
#ifndef WEBSERVER_CONNECTION_H
#define WEBSERVER_CONNECTION_H

#include "server.h"

/* Serves the connection handler->fd, which came at handler->imports.started; leaves closing it to
 * the caller. */
void connection_serve(struct handler *handler);

/* Ends a quiet connection: its handler finds that no request will come. */
void connection_end_quiet(struct handler *handler);

#endif
