/* What a build of the web server may choose. */
#ifndef SETTINGS_H
#define SETTINGS_H

/* Threads that serve requests. */
#ifndef HANDLERS
#define HANDLERS 4
#endif

/* The most clients inside the firmware, at the other end of a wire that is a piece of memory. 0:
 * the board's network card and real clients. */
#ifndef CLIENTS
#define CLIENTS 0
#endif

/* How long the wire takes in one direction, in microseconds: one after the other, and for each of
 * these 1, 2 .. CLIENTS clients. */
#ifndef LATENCIES
#define LATENCIES 0
#endif

/* Requests for each number of clients, all together. */
#ifndef REQUESTS
#define REQUESTS 100
#endif

/* Frames that the driver takes from the card in one turn, at most. */
#ifndef FRAMES_A_TURN
#define FRAMES_A_TURN 1
#endif

/* 1: a thread that waits asks again in each of its turns, and is always ready. 0: it is blocked. */
#ifndef POLLING
#define POLLING 0
#endif

/* Ticks for which a handler waits for more of a request, or for room to send. */
#ifndef PATIENCE_TICKS
#define PATIENCE_TICKS 5000
#endif

/* Connections that wait for a handler, at most; a further one is put off. */
#define BACKLOG     12
#define CONNECTIONS (BACKLOG + HANDLERS)

/* The longest frame: Ethernet's and IP's headers, and a segment of TCP with options. */
#define FRAME_BYTES 608

#endif
