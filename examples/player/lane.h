/* A decoder that works in small steps: on a stack of its own, which it leaves between rows of
 * blocks and between slices.
 *
 * FFmpeg calls back after each row of macroblocks (MPEG-1, 2, 4, H.263, H.264: draw_horiz_band) or
 * asks for the slices to be done one after the other (ProRes, DNxHD, FFV1, DV: execute); in both
 * places we may pause. Decoders that do neither take a frame in one step. A lane decodes one chain
 * after another (film.h). */
#ifndef PLAYER_LANE_H
#define PLAYER_LANE_H

#include <attune_coop.h>
#include <libavcodec/avcodec.h>
#include <stdbool.h>
#include <stdint.h>

/* A step ends at the first pause after so much time, nanoseconds, or when the loop's `until` has
 * come. */
#define LANE_STEP UINT64_C(100000)

struct lane {
    attune_coop_loop *loop;
    AVCodecContext *codec;
    struct coroutine *coroutine;
    /* The work under way. */
    bool busy, draining;
    AVPacket *packet;
    int error; /* FFmpeg's, of the work that was done last; 0 */
    uint64_t step_began;
    /* Each frame that comes out; the frame is the receiver's. */
    void (*decoded)(void *data, AVFrame *frame);
    void *data;
};

/* frames: how many it will have to keep at a time. Says what is wrong when it fails. */
bool lane_open(struct lane *lane, attune_coop_loop *loop, const AVCodec *codec,
               const AVCodecParameters *parameters, int frames, const char *path);
void lane_close(struct lane *lane);

/* Work for a lane that is not busy: a packet, which it takes over, or NULL: the chain is over, give
 * out all and forget it. */
void lane_begin(struct lane *lane, AVPacket *packet);

/* One step; afterwards the lane may not be busy any more. */
void lane_step(struct lane *lane);

/* The work under way to its end, and what came out is thrown away. */
void lane_abandon(struct lane *lane);

#endif
