/* Milliseconds that eight threads need to compute, spread over the workers. Each yields every few
 * microseconds. Compare alternating runs with ATTUNE_WORKERS=1 and 2, each on as many cores:
 *
 *     cargo build --release -p attune-threads
 *     cc -O2 engines/threads/benches/workers.c -I engines/threads/include -L target/release
 *         -lattune_threads -o workers
 *     LD_LIBRARY_PATH=target/release ATTUNE_WORKERS=2 ./workers
 */
#include <stdio.h>
#include <stdlib.h>
#include "attune.h"

enum { THREADS = 8, YIELDS = 5000, STEPS = 4000 };

static void *compute(void *argument)
{
    uint64_t *number = argument;
    for (int i = 0; i < YIELDS; i++) {
        for (int j = 0; j < STEPS; j++)
            *number = *number * 6364136223846793005u + 1442695040888963407u;
        attune_yield();
    }
    return argument;
}

int main(void)
{
    attune_t threads[THREADS];
    static uint64_t numbers[THREADS][8]; /* a cache line each */
    int workers = attune_workers();
    int64_t start = attune_now();
    for (int i = 0; i < THREADS; i++) {
        struct attune_attributes attributes = {.worker = i % workers + 1};
        if (attune_create(&threads[i], &attributes, compute, numbers[i])) {
            perror("attune_create");
            exit(1);
        }
    }
    for (int i = 0; i < THREADS; i++)
        attune_join(threads[i], NULL);
    printf("%d workers: %.1f ms\n", workers, (double)(attune_now() - start) / 1e6);
    return 0;
}
