/* Messages to the user. */
#ifndef PLAYER_SAY_H
#define PLAYER_SAY_H

#include <stdbool.h>

/* Prints `player: ...` to stderr; false, so that a function can fail by returning it. */
__attribute__((format(printf, 1, 2))) bool fail(const char *format, ...);

/* FFmpeg's words for one of its errors; valid until the next call. */
const char *ffmpeg_error(int error);

#endif
