/* The command line. Times in nanoseconds. */
#ifndef PLAYER_OPTIONS_H
#define PLAYER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { FILMS = 32 };

struct options {
    const char *films[FILMS];
    int count;
    const char *display; /* x11, null */
    const char *sound;   /* auto, pulse, null, none */
    int group;
    int64_t lookahead, sync_ahead;
    int64_t seconds; /* 0: to the end */
    bool drop_reference_b;
    const char *log;
    bool json;
};

/* Returns -1 to go on, or the status to exit with. */
int options_parse(struct options *options, int argc, char **argv);

#endif
