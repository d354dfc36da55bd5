/* Clients inside the firmware: each asks for the page, on a connection of its own, checks each byte
 * of the reply, and asks again. First there is one, then two, up to CLIENTS, and that anew for each
 * of the LATENCIES. Each number of clients makes a line of output; the last ends the firmware. */
#ifndef CLIENTS_H
#define CLIENTS_H

#include <stdint.h>

struct netif;

/* Through this interface, at that address of a server. */
void clients_start(struct netif *netif, uint32_t server);

/* Lets each client go on that has something to do. */
void clients_turn(void);

#endif
