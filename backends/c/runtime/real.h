/* Floats: IEEE doubles, each operation rounded by itself, and their ways to and from ints. Free of
 * libm.
 *
 * A compiler may contract a * b + c into one rounding where the processor can; nothing here may
 * depend on that.
 */
#ifndef ATTUNE_REAL_H
#define ATTUNE_REAL_H

#include "number.h"

#ifdef __FAST_MATH__
#error "a scheduler with floats must not be compiled with -ffast-math"
#endif
#if defined __FLT_EVAL_METHOD__ && __FLT_EVAL_METHOD__ != 0
#error "doubles must be computed as doubles: compile with -msse2 -mfpmath=sse"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#elif defined __GNUC__
#pragma GCC optimize("fp-contract=off")
#endif

static inline uint64_t attune_bits(double x)
{
    union {
        double real;
        uint64_t bits;
    } u = {.real = x};
    return u.bits;
}

static inline double attune_from_bits(uint64_t bits)
{
    union {
        uint64_t bits;
        double real;
    } u = {.bits = bits};
    return u.real;
}

/* x / 0 = 0, counted. */
static inline double attune_div_real(struct attune_instance ATTUNE_ARENA *attune, double a,
                                     double b)
{
    if (b == 0) {
        attune->divisions_by_zero++;
        return 0;
    }
    return a / b;
}

/* C's fmod; x % 0 = x, counted. Exact: long division of the significands, at most 200 steps. */
static inline double attune_mod_real(struct attune_instance ATTUNE_ARENA *attune, double a,
                                     double b)
{
    const uint64_t sign = UINT64_C(1) << 63, one = UINT64_C(1) << 52,
                   infinite = UINT64_C(0x7ff) << 52;
    uint64_t x = attune_bits(a) & ~sign, y = attune_bits(b) & ~sign;
    uint32_t up, down, step;
    if (y == 0) {
        attune->divisions_by_zero++;
        return a;
    }
    if (x >= infinite || y > infinite)
        return (a * b) / (a * b); /* not a number */
    if (x < y)
        return a;
    /* Significands with their first bit made plain, and exponents; a subnormal number has exponent
     * 1 and no first bit. */
    up = (uint32_t)(x >> 52);
    down = (uint32_t)(y >> 52);
    x = up ? (x & (one - 1)) | one : x;
    y = down ? (y & (one - 1)) | one : y;
    up += !up;
    down += !down;
    for (x %= y; up > down && ATTUNE_MAY_LOOP; up -= step) {
        step = up - down < 11 ? up - down : 11; /* 53 + 11 bits fit */
        x = (x << step) % y;
    }
    for (; x && x < one && up > 1 && ATTUNE_MAY_LOOP; up--)
        x <<= 1;
    x = x >= one ? (x & (one - 1)) | (uint64_t)up << 52 : x;
    return attune_from_bits(x | (attune_bits(a) & sign));
}

/* Truncation, saturating; what is not a number becomes 0. */
static inline int64_t attune_to_int(double x)
{
    if (x != x)
        return 0;
    if (x >= 9223372036854775808.0)
        return INT64_MAX;
    if (x < -9223372036854775808.0)
        return INT64_MIN;
    return (int64_t)x;
}

/* A sort key: orders like numbers, -0.0 equal to 0.0, what is not a number below all. */
static inline int64_t attune_key_of_real(double x)
{
    int64_t bits = (int64_t)attune_bits(x);
    if (x != x)
        return INT64_MIN;
    if (x == 0)
        return 0;
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

#endif
