/* Attune for firmware: cooperative threads, scheduled by a policy that is compiled in.
 *
 * A firmware project copies attune.c and this header; both are made from one scheduler by
 * `attune build --engine embedded -o DIR SCHEDULER`. The project's attune_config.h, if there is one
 * on the include path, sets what stands below in `#ifndef`. Nothing is allocated: thread records
 * lie in attune.c, stacks are the firmware's.
 *
 * Rules. Every function is for threads (and for `main`, before attune_run), except those that end
 * in _from_interrupt and attune_tick. A thread runs until it calls a function that may block or
 * yield. An interrupt handler uses the stack of the thread that it interrupts.
 *
 * Units. Times are ticks of attune_tick unless a comment says nanoseconds; sizes are bytes.
 */
#ifndef ATTUNE_H
#define ATTUNE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __has_include
#if __has_include("attune_config.h")
#include "attune_config.h"
#endif
#endif

/* The most threads that live at one time. */
#ifndef ATTUNE_THREADS
#define ATTUNE_THREADS 8
#endif

/* Length of a tick in nanoseconds: a policy's times are nanoseconds. */
#ifndef ATTUNE_TICK_NS
#define ATTUNE_TICK_NS 1000000
#endif

/* Ticks for which the policy may leave the processor idle while a thread is ready, before that is a
 * failure of the policy. */
#ifndef ATTUNE_PATIENCE
#define ATTUNE_PATIENCE 1000
#endif

/* Whether each switch looks at the end of the stack of the thread that stops. */
#ifndef ATTUNE_CHECK_STACKS
#define ATTUNE_CHECK_STACKS 1
#endif

/* Seed of the policy's `random`. */
#ifndef ATTUNE_SEED
#define ATTUNE_SEED 1
#endif
