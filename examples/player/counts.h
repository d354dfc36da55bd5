/* What became of the frames of one film, and how late its pictures were. Times in nanoseconds. */
#ifndef PLAYER_COUNTS_H
#define PLAYER_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "importance.h"

struct samples {
    uint64_t *values;
    size_t count, room;
};

struct counts {
    uint64_t read[RANKS]; /* in the file, as far as it was read */
    uint64_t shown[RANKS];
    uint64_t expired[RANKS]; /* their time came, and they were not ready */
    uint64_t dropped[RANKS]; /* left out, so that more important ones would be ready */
    uint64_t broken[RANKS];  /* the decoder could make nothing of them */
    /* of display events: from presentation time to the event's beginning */
    struct samples tardiness;
    /* from presentation time to when we heard that the picture was drawn */
    struct samples drawn;
};

void samples_add(struct samples *samples, uint64_t value);
void samples_free(struct samples *samples);

uint64_t counts_sum(const uint64_t by_rank[RANKS]);

/* Everything of one film. independent: how its ranks are named. */
void counts_print(FILE *out, const struct counts *counts, bool independent);
void counts_print_json(FILE *out, const struct counts *counts, bool independent);

#endif
