/* Milliseconds that threads need to compute, which yield every few microseconds. They are all
 * created on worker 1 and may move, or are spread over the workers and stay there. ATTUNE_WORKERS
 * says how many workers there are, ATTUNE_SCHED the policy.
 *
 *     PROGRAM THREADS YIELDS moves|spread
 *
 * Prints one number.
 */
#include <attune.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Steps between two yields. */
#define STEPS 4000
#define MOST  64

static long yields;

static void *compute(void *argument)
{
    uint64_t *number = argument;
    for (long i = 0; i < yields; i++) {
        for (int j = 0; j < STEPS; j++)
            *number = *number * 6364136223846793005u + 1442695040888963407u;
        attune_yield();
    }
    return argument;
}

int main(int count, char **arguments)
{
    static uint64_t numbers[MOST][8]; /* a cache line each */
    attune_t threads[MOST];
    int moves = count == 4 && !strcmp(arguments[3], "moves");
    struct attune_options options = {.size = sizeof options, .moves = moves};
    long number = count == 4 ? atol(arguments[1]) : 0;
    if (number < 1 || number > MOST)
        return 2;
    yields = atol(arguments[2]);
    if (attune_init(&options)) {
        perror("attune_init");
        return 1;
    }
    int64_t start = attune_now();
    for (long i = 0; i < number; i++) {
        struct attune_attributes attributes = {.worker = moves ? 1 : i % attune_workers() + 1};
        if (attune_create(&threads[i], &attributes, compute, numbers[i])) {
            perror("attune_create");
            return 1;
        }
    }
    for (long i = 0; i < number; i++)
        attune_join(threads[i], NULL);
    printf("%.3f\n", (double)(attune_now() - start) / 1e6);
    return 0;
}
