/* See frames.h. There are some dozens at a time, so every question is answered by looking at all of
 * them. */
#include "frames.h"

#include <attune_coop.h>
#include <stdlib.h>
#include <string.h>

struct frame *frames_add(struct frames *frames, struct film_packet *packet, uint64_t start,
                         uint64_t tick)
{
    struct frame *new = frames->count == FRAMES ? NULL : calloc(1, sizeof *new);
    if (new == NULL || (new->packet = av_packet_alloc()) == NULL) {
        free(new);
        return NULL;
    }
    av_packet_move_ref(new->packet, packet->packet);
    new->rank = packet->rank;
    new->chain = packet->chain;
    new->pts = new->packet->pts;
    uint64_t time = start + packet->time;
    new->presentation = time - time % tick;
    new->importance = importance_of(new->presentation, new->rank);
    frames->all[frames->count++] = new;
    return new;
}

static void forget(struct frame *frame)
{
    av_packet_free(&frame->packet);
    av_frame_free(&frame->decoded);
    if (frame->picture != NULL)
        frame->picture->free = true;
    free(frame);
}

void frames_end(struct frames *frames, struct frame *frame, uint64_t ended[RANKS])
{
    if (!frame->late)
        ended[frame->rank]++;
    int at = 0;
    while (frames->all[at] != frame)
        at++;
    frames->count--;
    memmove(&frames->all[at], &frames->all[at + 1],
            (size_t)(frames->count - at) * sizeof frames->all[0]);
    forget(frame);
}

void frames_clear(struct frames *frames)
{
    while (frames->count > 0)
        forget(frames->all[--frames->count]);
}

struct frame *frames_first(const struct frames *frames, enum state least, enum state most)
{
    struct frame *first = NULL;
    for (int i = 0; i < frames->count; i++) {
        struct frame *frame = frames->all[i];
        if (!frame->late && frame->state >= least && frame->state <= most &&
            (first == NULL || frame->presentation < first->presentation))
            first = frame;
    }
    return first;
}

int frames_before(const struct frames *frames, const struct frame *frame)
{
    int before = 0;
    for (int i = 0; i < frames->count; i++)
        before += !frames->all[i]->late && frames->all[i]->presentation < frame->presentation;
    return before;
}

struct frame *frames_waiting(const struct frames *frames, unsigned chain)
{
    for (int i = 0; i < frames->count; i++)
        if (frames->all[i]->chain == chain && frames->all[i]->state == WAITING)
            return frames->all[i];
    return NULL;
}

int64_t frames_importance(const struct frames *frames, unsigned chain)
{
    int64_t most = ATTUNE_COOP_NOTHING;
    for (int i = 0; i < frames->count; i++) {
        const struct frame *frame = frames->all[i];
        if (frame->chain == chain && frame->state == WAITING && frame->importance < most)
            most = frame->importance;
    }
    return most;
}

bool frames_complete(const struct frames *frames, unsigned chain)
{
    return frames->ended || (frames->count > 0 && frames->all[frames->count - 1]->chain > chain);
}

/* A late frame is of use while a frame of its chain that can still be shown waits to be decoded, or
 * may be read yet. */
static bool of_use(const struct frames *frames, unsigned chain)
{
    if (!frames_complete(frames, chain))
        return true;
    for (int i = 0; i < frames->count; i++) {
        const struct frame *frame = frames->all[i];
        if (frame->chain == chain && frame->state == WAITING && !frame->late)
            return true;
    }
    return false;
}

void frames_prune(struct frames *frames)
{
    for (int i = 0; i < frames->count;) {
        struct frame *frame = frames->all[i];
        if (frame->late && !of_use(frames, frame->chain))
            frames_end(frames, frame, NULL);
        else
            i++;
    }
}
