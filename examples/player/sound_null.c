/* A silent sound output: it takes samples as a card with a buffer of 100 ms would. */
#include <attune_coop.h>
#include <stddef.h>
#include <stdlib.h>

#include "say.h"
#include "sound.h"

enum { BUFFER = SOUND_RATE / 10 };

struct null_output {
    struct sound_output output;
    uint64_t began; /* 0: nothing was given yet */
    int64_t given;
};

/* Samples that a card would still hold; less than nothing: it ran dry so long ago. */
static int64_t unheard(struct sound_output *output)
{
    const struct null_output *null = (struct null_output *)output;
    if (null->began == 0)
        return 0;
    int64_t left =
        null->given - (int64_t)((attune_coop_now() - null->began) * SOUND_RATE / 1000000000);
    return left > 0 ? left : 0;
}

static int room(struct sound_output *output)
{
    return BUFFER - (int)unheard(output);
}

static void give(struct sound_output *output, const void *samples, int count)
{
    (void)samples;
    struct null_output *null = (struct null_output *)output;
    if (unheard(output) == 0) {
        null->began = attune_coop_now();
        null->given = 0;
    }
    null->given += count;
}

static bool drained(struct sound_output *output)
{
    return unheard(output) == 0;
}

static void close_output(struct sound_output *output)
{
    free(output);
}

struct sound_output *sound_output_null(void)
{
    struct null_output *new = calloc(1, sizeof *new);
    if (new == NULL)
        abort(); /* 64 bytes */
    new->output = (struct sound_output){"null", room, give, unheard, drained, close_output};
    return &new->output;
}
