/* What the programs measure that are compared with each other, the same for each library.
 *
 *     PROGRAM yield THREADS ROUNDS     nanoseconds of a yield, all threads yielding in turn
 *     PROGRAM create THREADS ROUNDS    nanoseconds of creating a thread and joining it, in batches
 *     PROGRAM memory THREADS 0         bytes of memory that a thread needs, page tables included
 *
 * Each prints one number. A library's file gives the four functions below and includes this one.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Starts the library for that many threads. */
static void prepare(long threads);
/* Starts a thread that calls body(number) and ends. */
static void create(long number);
static void join(long number);
/* Yields. */
static void give_way(void);

/* Turns before a measurement, so that every thread exists and has run. */
#define WARM 3

static long threads, rounds, arrived;
static int finished;
static char mode;
static double result;

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Bytes that this process has in memory, page tables included. */
static double memory(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    double sum = 0, kilobytes;
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %lf", &kilobytes) == 1 ||
            sscanf(line, "VmPTE: %lf", &kilobytes) == 1)
            sum += kilobytes * 1024;
    if (status)
        fclose(status);
    return sum;
}

/* The first thread measures. All turns are of equal number, so it sees every thread's. */
static void yields(long number)
{
    double began = 0;
    for (int i = 0; i < WARM; i++)
        give_way();
    if (number == 0)
        began = nanoseconds();
    for (long i = 0; i < rounds; i++)
        give_way();
    if (number == 0)
        result = (nanoseconds() - began) / ((double)rounds * (double)threads);
}

static void body(long number)
{
    if (mode == 'y')
        yields(number);
    if (mode != 'm')
        return;
    arrived++;
    while (number == 0 ? arrived < threads : !finished)
        give_way();
    if (number == 0)
        result = memory();
    finished = 1;
}

static void batch(void)
{
    for (long i = 0; i < threads; i++)
        create(i);
    for (long i = 0; i < threads; i++)
        join(i);
}

int main(int count, char **arguments)
{
    if (count != 4)
        return 2;
    mode = arguments[1][0];
    threads = atol(arguments[2]);
    rounds = atol(arguments[3]);
    prepare(threads);
    if (mode == 'c') {
        batch();
        double began = nanoseconds();
        for (long i = 0; i < rounds; i++)
            batch();
        result = (nanoseconds() - began) / ((double)rounds * (double)threads);
    } else {
        double before = memory();
        batch();
        if (mode == 'm')
            result = (result - before) / (double)threads;
    }
    printf("%.2f\n", result);
    return 0;
}

#endif
