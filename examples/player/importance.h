/* How much a frame matters: Priority-Progress.
 *
 * Presentation times are cut into windows. What comes first counts for all windows before the next; inside a window the kind of frame
 * counts before its time: first all frames that many others need, last those that nobody needs. So when time runs short it is
 * the frames of the last kind that are missing, evenly over the window, and not the end of the film.
 *
 * The scale is CLOCK_MONOTONIC, so players of one group that know nothing of each other mean the same by it. Nanoseconds. */
#ifndef PLAYER_IMPORTANCE_H
#define PLAYER_IMPORTANCE_H

#include <stdint.h>

/* Of a film with dependencies: key frames, other references, B frames that others refer to, frames that nobody refers to.
 * Of one without: every eighth frame, then those that make it every fourth, every second, each. */
enum { RANKS = 4, DISPOSABLE = RANKS - 1 };

#define WINDOW UINT64_C(500000000)

/* Smaller matters more. */
int64_t importance_of(uint64_t presentation, int rank);

/* The rank of the n-th frame of a film whose frames need no others. */
int importance_rank_of_independent(uint64_t n);

#endif
