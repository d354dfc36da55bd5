/* One film being played: what is read, decoded, converted and shown when.
 *
 *     event     when                                  what it does
 *     read      best effort, ahead of time            a few packets from the file
 *     decode    best effort, by importance; two lanes a step of a decoder (lane.h)
 *     convert   best effort, the next pictures first  a band of a picture to the screen's pixels
 *     show      timer: its presentation time          hands a picture that is ready to the display
 *     expire    timer: the same                       gives up a frame that is not ready
 *
 * Two chains are decoded side by side, so that the key frame of the next is not behind the last
 * frames of this one. */
#ifndef PLAYER_VIDEO_H
#define PLAYER_VIDEO_H

#include <attune_coop.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "counts.h"
#include "display.h"
#include "film.h"
#include "frames.h"
#include "lane.h"

struct sound;
struct SwsContext;

enum { LANES = 2 };

struct video_lane {
    struct lane lane;
    struct video *video;
    attune_coop_event decode;
    unsigned chain;     /* 0: none */
    int64_t importance; /* of what is under way */
    int64_t pts;        /* and which frame it is */
};

struct video_settings {
    uint64_t lookahead; /* how far ahead frames are read and decoded */
    bool drop_reference_b;
    FILE *log; /* NULL, or a line for each frame shown */
};

struct video {
    attune_coop_loop *loop;
    struct video_settings settings;
    struct film film;
    struct frames frames;
    struct video_lane lanes[LANES];
    struct sound *sound; /* NULL: silent */
    struct window *window;
    struct SwsContext *scaler;
    struct frame *converting;
    int rows_converted;
    attune_coop_event read, convert, show, expire;
    AVPacket *packet;
    uint64_t start;     /* when time 0 of the film is shown; CLOCK_MONOTONIC */
    uint64_t last_read; /* presentation time of the last packet that was read */
    struct counts counts;
    bool finished;
    void (*at_end)(void *data);
    void *data;
};

/* Opens the film, its decoders and its window. Says what is wrong when it fails; close it then,
 * too. */
bool video_open(struct video *video, attune_coop_loop *loop, struct display *display,
                const char *path, const struct video_settings *settings, bool with_sound);

/* Plays from `start` on; at_end is called once when all has been shown or given up. */
void video_start(struct video *video, uint64_t start, struct sound *sound);

void video_close(struct video *video);

#endif
