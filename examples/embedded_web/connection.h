/* Connections of TCP for threads that block, over lwIP's call-backs.
 *
 * lwIP runs in the thread that hands it frames: the driver. A thread that waits for a connection,
 * for bytes or for room to send is in no queue of ready threads until the driver has found what it
 * waits for. One handler has a connection at a time.
 */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <stddef.h>
#include <stdint.h>

struct connection;
struct netif;

/* Connections to this port of that interface are taken. Call it once. */
void connection_listen(struct netif *netif, uint16_t port);

/* Waits for a connection, and takes the one that has waited longest. */
struct connection *connection_accept(void);

/* Waits for bytes and reads up to `size`. 0: the other side sends no more, or nothing came for
 * PATIENCE_TICKS. */
size_t connection_read(struct connection *connection, void *to, size_t size);

/* Sends bytes, which must not change until the other side has them. 0: the connection is broken. */
int connection_write(struct connection *connection, const void *from, size_t size);

/* Gives the connection back; what was written still goes out. */
void connection_close(struct connection *connection);

#endif
