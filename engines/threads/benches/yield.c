/* ns per yield with 2, 100 and 10000 threads, and ns for create + join of 10000: one line each.
 *
 *     cargo build --release -p attune-threads && attune build fifo --engine threads -o fifo.so cc
 *     -O2 engines/threads/benches/yield.c -I engines/threads/include -L target/release
 *     -lattune_threads -o yield LD_LIBRARY_PATH=target/release ATTUNE_SCHED=./fifo.so ./yield
 */
#include <stdio.h>
#include <stdlib.h>
#include "attune.h"

static long rounds;

static void *spin(void *none)
{
    for (long i = 0; i < rounds; i++)
        attune_yield();
    return none;
}

static void *nothing(void *none)
{
    return none;
}

static attune_t threads[10000];

static int64_t run(int count, void *(*body)(void *))
{
    int64_t start = attune_now();
    for (int i = 0; i < count; i++)
        if (attune_create(&threads[i], NULL, body, NULL)) {
            perror("attune_create");
            exit(1);
        }
    for (int i = 0; i < count; i++)
        attune_join(threads[i], NULL);
    return attune_now() - start;
}

int main(void)
{
    int counts[] = {2, 100, 10000};
    for (int i = 0; i < 3; i++) {
        rounds = 0;
        run(counts[i], spin); /* stacks are there */
        int64_t without = run(counts[i], spin);
        rounds = 10000000 / counts[i];
        int64_t with = run(counts[i], spin);
        printf("yield, %5d threads: %6.1f ns\n", counts[i],
               (double)(with - without) / ((double)rounds * counts[i]));
    }
    printf("create + join, 10000: %6.1f ns\n", (double)run(10000, nothing) / 10000);
    return 0;
}
