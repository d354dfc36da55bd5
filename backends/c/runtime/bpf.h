/* The target BPF: what the runtime's words mean to a compiler whose output the kernel must be able
 * to prove harmless.
 *
 * - The scheduler's whole state lives in an arena: memory that the verifier lets a program address
 *   freely, because no address in it can hurt the kernel. Outside the arena there are only handles
 *   of the kernel's.
 * - Every loop asks ATTUNE_MAY_LOOP, which the kernel answers with no after a quarter of a second.
 *   That is a failure like a failed check, noted with the loop's place (failure.h); the runtime's
 *   own loops have none. A variable that changes in a loop starts as a number that the verifier
 *   does not know (ATTUNE_ZERO): else it would follow the loop number by number, and never come to
 *   an end.
 * - A handler and a container's larger operations are functions of their own: the verifier reads
 *   them once and not again for each caller.
 * - Handlers are atomic: the engine holds its lock. So what is large and local to one lives in the
 *   arena, not on the stack of 512 bytes.
 */
#ifndef ATTUNE_BPF_H
#define ATTUNE_BPF_H

#include <stddef.h>
#include <stdint.h>

#define ATTUNE_ARENA __attribute__((address_space(1)))

/* Marks a variable in the arena: the compiler leaves it whole, so that a loader finds it. */
#define ATTUNE_KEPT __attribute__((used))

/* Whether the kernel lets a loop go on, for a caller that ends it without a failure. */
#define ATTUNE_MAY_GO_ON                                                            \
    ({                                                                              \
        __label__ attune_ended, attune_on;                                          \
        int attune_may = 1;                                                         \
        asm volatile goto("may_goto %l[attune_ended]" ::: "memory" : attune_ended); \
        goto attune_on;                                                             \
    attune_ended:                                                                   \
        attune_may = 0;                                                             \
    attune_on:;                                                                     \
        attune_may;                                                                 \
    })

#define ATTUNE_MAY_LOOP_AT(place) (ATTUNE_MAY_GO_ON || (attune_cut(place), 0))

#define ATTUNE_MAY_LOOP ATTUNE_MAY_LOOP_AT(ATTUNE_NOWHERE)
#define ATTUNE_NOWHERE  UINT32_MAX

static int64_t ATTUNE_KEPT ATTUNE_ARENA attune_zero;
#define ATTUNE_ZERO (*(volatile int64_t ATTUNE_ARENA *)&attune_zero)

/* A function of its own to the verifier, and its parameters that point into the arena. Weak, so
 * that a compiler that has seen a body does not leave out arguments which that body never reads:
 * the verifier wants them all. One without a result returns a number that means nothing: kernels
 * before 7.0 take no such function without one. */
#define ATTUNE_OUTLINE_AS(type) __attribute__((noinline, weak)) type
#define ATTUNE_OUTLINE          ATTUNE_OUTLINE_AS(int)
#define ATTUNE_RETURN           return 0
#define ATTUNE_IN_ARENA         __attribute__((btf_decl_tag("arg:arena")))

/* The kernel ended a loop. */
ATTUNE_OUTLINE attune_cut(uint32_t place);

/* In a program for one CPU the compiler knows which it is. */
#define ATTUNE_CPU      (ATTUNE_CPUS > 1 ? attune->cpu : 0)
#define ATTUNE_ALL_CPUS (ATTUNE_CPUS > 1 ? attune->cpus : 1)

/* Imports have their values in the scheduler's own memory: see the engine. */
#define ATTUNE_LINKS 0

#endif
