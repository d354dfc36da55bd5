/* The wire between the server and clients in the same firmware. */
#ifndef WIRE_H
#define WIRE_H

#include <stdint.h>

/* How long a frame takes, in microseconds. */
extern uint32_t wire_latency;

/* The time in counts of the board, without what clients have computed: their processors are
 * elsewhere, in as far as the server can tell. */
uint32_t wire_now(void);

#endif
