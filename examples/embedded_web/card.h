/* A network card that is asked for frames: the board's (lan9118.c), or one end of a wire in memory
 * with clients at the other (wire.c). */
#ifndef CARD_H
#define CARD_H

#include <stdint.h>

#include "lwip/netif.h"

/* Adds the server's network interface, up and ready to send. */
void card_start(struct netif *netif);

/* Hands up to FRAMES_A_TURN received frames to the stack. 1: more wait; 0: none does. */
int card_poll(struct netif *netif);

/* What is the same for each card: an Ethernet interface with that address and way to send. */
void card_add(struct netif *netif, uint32_t address, uint32_t gateway, const uint8_t hardware[6],
              netif_linkoutput_fn send);

/* A received frame is for the stack: a buffer of that length, or NULL if there is none. */
struct pbuf *card_buffer(uint32_t length);
void card_received(struct netif *netif, struct pbuf *frame);

#endif
