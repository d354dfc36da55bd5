/* Arithmetic that means the same with every compiler and flag: 64-bit two's complement that wraps
 * around, divisions that never fail, seeded random numbers. Unsigned numbers wrap in C; signed ones
 * must not be let to.
 */
#ifndef ATTUNE_NUMBER_H
#define ATTUNE_NUMBER_H

#include "attune_scheduler.h"

/* Part of every loop's condition: a verifier that must see each loop end puts its own word here. */
#ifndef ATTUNE_MAY_LOOP
#define ATTUNE_MAY_LOOP 1
#endif

/* Where a variable starts that counts: see bpf.h. */
#ifndef ATTUNE_ZERO
#define ATTUNE_ZERO 0
#endif

static inline int64_t attune_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t attune_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t attune_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static inline int64_t attune_neg(int64_t a)
{
    return (int64_t)(0 - (uint64_t)a);
}

/* x / 0 = 0, counted; MIN / -1 = MIN. */
static inline int64_t attune_div(struct attune_instance ATTUNE_ARENA *attune, int64_t a, int64_t b)
{
    if (b == 0) {
        attune->divisions_by_zero++;
        return 0;
    }
    return b == -1 ? attune_neg(a) : a / b;
}

/* x % 0 = x, counted; MIN % -1 = 0. */
static inline int64_t attune_mod(struct attune_instance ATTUNE_ARENA *attune, int64_t a, int64_t b)
{
    if (b == 0) {
        attune->divisions_by_zero++;
        return a;
    }
    return b == -1 ? 0 : a % b;
}

/* `dispatch t for d`: a negative time is none. */
static inline int64_t attune_slice(int64_t d)
{
    return d < 0 ? 0 : d;
}

/* splitmix64; the engine gives the seed. Uniform in 0..n-1; 0 if n <= 0. Advances in every case. */
static inline int64_t attune_random(struct attune_instance ATTUNE_ARENA *attune, int64_t n)
{
    uint64_t z = attune->random_state += 0x9e3779b97f4a7c15u, low, high;
    if (n <= 0)
        return 0;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    /* The high half of z * n, from 32-bit halves: not every machine has 128-bit numbers. */
    low = (z & 0xffffffffu) * ((uint64_t)n & 0xffffffffu);
    high = (z >> 32) * ((uint64_t)n & 0xffffffffu) + (low >> 32);
    low = (z & 0xffffffffu) * ((uint64_t)n >> 32) + (high & 0xffffffffu);
    return (int64_t)((z >> 32) * ((uint64_t)n >> 32) + (high >> 32) + (low >> 32));
}

#endif
