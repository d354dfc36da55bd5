/* The sound of a film: decoded ahead as best-effort events, one packet each, and given to the
 * output by a timer event every 20 ms.
 *
 * Samples are pairs of 16 bits at 48 kHz. The picture's clock leads: where sound and clock come
 * apart by more than 40 ms, samples are left out or silence is put in. */
#ifndef PLAYER_SOUND_H
#define PLAYER_SOUND_H

#include <attune_coop.h>
#include <stdbool.h>
#include <stdint.h>

#include "film.h"

enum { SOUND_RATE = 48000, SOUND_BYTES = 4 };

struct sound;

/* Where samples go. */
struct sound_output {
    const char *name;
    /* How many samples can be given now; -1: the output has gone. */
    int (*room)(struct sound_output *output);
    void (*give)(struct sound_output *output, const void *samples, int count);
    /* Samples given that are not heard yet. */
    int64_t (*unheard)(struct sound_output *output);
    /* No more will come: whether all have been heard. */
    bool (*drained)(struct sound_output *output);
    void (*close)(struct sound_output *output);
};

/* PulseAudio, or a server that speaks like it. NULL: no server answers. */
struct sound_output *sound_output_pulse(void);
/* A clock that takes samples as they would be played. */
struct sound_output *sound_output_null(void);

/* Takes over the output. Says what is wrong when it fails (NULL). */
struct sound *sound_open(attune_coop_loop *loop, const struct film *film,
                         struct sound_output *output);
/* Begins to be heard at `start`; `at_end` is called when all has been heard. */
void sound_start(struct sound *sound, uint64_t start, void (*at_end)(void *data), void *data);

/* The packet's content is taken over. */
void sound_packet(struct sound *sound, AVPacket *packet);
/* No more packets will come. */
void sound_end(struct sound *sound);

struct sound_counts {
    const char *output;
    double played, missing; /* seconds; missing: the output was ready, and nothing was decoded */
    uint64_t broken;        /* packets */
};

struct sound_counts sound_counts(const struct sound *sound);
void sound_close(struct sound *sound);

#endif
