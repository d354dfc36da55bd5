/* Bytes from and to a connection's client. Each wait has a limit; a client that breaks it, or goes,
 * is counted and told from one that does what it should. */
#ifndef WEBSERVER_CLIENT_H
#define WEBSERVER_CLIENT_H

#include "server.h"

#include <sys/uio.h>

/* Receives more into handler->buffer, which has room. 1: some; 0: the client has ended or gone; -1:
 * too slow. */
int client_receive(struct handler *handler, int64_t timeout);

/* Takes `size` bytes from the front of the buffer. */
void client_consume(struct handler *handler, size_t size);

/* Parts that client_write takes. */
#define CLIENT_PARTS 4

/* Writes all parts, in chunks, telling the scheduler how much is left: these and `after` bytes that
 * other calls will write. While that is more than a chunk others may go first; what fits in one
 * chunk is written at once. False: the client has gone or is too slow. */
bool client_write(struct handler *handler, const struct iovec *parts, int count, uint64_t after);

/* Writes the parts that a reply ends with. Returns whether the connection goes on: true if it is to
 * (`goes_on`) and the client has taken all. Otherwise the caller closes it or lingers, at once: the
 * last bytes wait for that, to go out in one packet with the connection's end. */
bool client_write_end(struct handler *handler, const struct iovec *parts, int count, bool goes_on);

/* An answer of the server's own; `reason` (or NULL) says more than the status. False if it was the
 * connection's last. */
bool client_write_status(struct handler *handler, int status, const char *reason, bool head_only,
                         bool keep_alive);

/* Reads what a client still sends that has got its last reply, so that it sees the reply: closing
 * with bytes unread would make the system discard it. */
void client_linger(struct handler *handler);

/* The value of the field Date, now. */
const char *client_date(struct server *server);

#endif
