/* How much a frame matters: Priority-Progress.
 *
 * Presentation times are cut into windows, and an earlier window comes before a later one. Inside a
 * window the kind of frame counts before its time: first the frames that many others need, last
 * those that no other needs. When time runs short, frames of the last kind are missing, evenly over
 * the window, and not the end of the film.
 *
 * The scale is CLOCK_MONOTONIC, so that it means the same in all players of a group. Nanoseconds.
 */
#ifndef PLAYER_IMPORTANCE_H
#define PLAYER_IMPORTANCE_H

#include <stdint.h>

/* Ranks in a film with dependencies: key frames, other references, B frames that others refer to,
 * frames that no other refers to. In one without: every eighth frame, then those that make it every
 * fourth, every second, each. */
enum { RANKS = 4, DISPOSABLE = RANKS - 1 };

#define WINDOW UINT64_C(500000000)

/* Smaller matters more. */
int64_t importance_of(uint64_t presentation, int rank);

/* The rank of the n-th frame of a film whose frames need no others. */
int importance_rank_of_independent(uint64_t n);

#endif
