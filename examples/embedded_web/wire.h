/* The wire between the server and clients in the same firmware. */
#ifndef WIRE_H
#define WIRE_H

#include <stdint.h>

/* How long a frame takes, in microseconds. */
extern uint32_t wire_latency;

/* The time in counts of the board, without what clients have computed, whose processors are
 * elsewhere as far as the server can tell. While they run, when the frame that they take came. */
uint32_t wire_now(void);

#endif
