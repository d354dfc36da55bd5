/* The frames of a film between being read and being shown or given up.
 *
 *     WAITING ──▶ INSIDE ──▶ DECODED ──▶ READY ──▶ shown
 *        packet      in the      picture    in the
 *        is read     decoder     as coded   display's memory
 *
 * Each ends exactly once: it is shown, expired, dropped or broken, and counted. A frame that others
 * need and whose time has come is `late`: counted as expired, it waits on to be decoded for the
 * others' sake. */
#ifndef PLAYER_FRAMES_H
#define PLAYER_FRAMES_H

#include <libavcodec/avcodec.h>
#include <stdbool.h>
#include <stdint.h>

#include "counts.h"
#include "display.h"
#include "film.h"

enum { FRAMES = 512 };

enum state { WAITING, INSIDE, DECODED, READY };

struct frame {
    enum state state;
    bool late;
    int rank;
    unsigned chain;
    int64_t pts;           /* as the decoder knows it */
    uint64_t presentation; /* CLOCK_MONOTONIC */
    int64_t importance;
    AVPacket *packet;
    AVFrame *decoded;
    struct picture *picture;
    uint32_t checksum;
};

/* In the order in which they were read, which is that of decoding. */
struct frames {
    struct frame *all[FRAMES];
    int count;
    bool ended; /* no more will be read */
};

/* The packet's content moves into the new frame, which is due at the last whole tick before its
 * time. NULL: no room or no memory. */
struct frame *frames_add(struct frames *frames, struct film_packet *packet, uint64_t start,
                         uint64_t tick);

/* The frame has ended; counts it among `ended`, unless it was counted as late before. */
void frames_end(struct frames *frames, struct frame *frame, uint64_t ended[RANKS]);

void frames_clear(struct frames *frames);

/* The earliest to be shown among those in a state; NULL. Late ones do not count. */
struct frame *frames_first(const struct frames *frames, enum state least, enum state most);

/* How many are to be shown before this one. */
int frames_before(const struct frames *frames, const struct frame *frame);

/* The next to be decoded of a chain; NULL. */
struct frame *frames_waiting(const struct frames *frames, unsigned chain);

/* What matters most of what waits in a chain; ATTUNE_COOP_NOTHING. */
int64_t frames_importance(const struct frames *frames, unsigned chain);

/* No more frames of the chain will be read. */
bool frames_complete(const struct frames *frames, unsigned chain);

/* Ends late frames that no other frame needs any more. */
void frames_prune(struct frames *frames);

#endif
