/* Does one thing so many times, for an instruction count that repeats.
 *
 *     cc -O2 engines/threads/benches/instructions.c -I engines/threads/include -L target/release
 *     -lattune_threads -o instructions
 *     for n in 10000 20000; do LD_LIBRARY_PATH=target/release valgrind --tool=callgrind
 *     --callgrind-out-file=/dev/null ./instructions yield $n; done
 *
 * The difference of the two counts ("Collected") is that of 10000 times: what starting costs, and
 * what the built-in policy's first rounds do, is in both. `slice` opts into preemption; the thread
 * has a slice under ATTUNE_SCHED=./round_robin.so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "attune.h"

static long times;

static void *yields(void *none)
{
    for (long i = 0; i < times / 2; i++)
        attune_yield();
    return none;
}

static void *nothing(void *none)
{
    return none;
}

int main(int count, char **arguments)
{
    attune_t threads[2];
    attune_mutex mutex = ATTUNE_MUTEX_INIT;
    if (count != 3 || (times = atol(arguments[2])) <= 0) {
        fputs("usage: instructions yield|create|lock|check|slice TIMES\n", stderr);
        return 2;
    }
    struct attune_options options = {.size = sizeof options};
    options.preempt = !strcmp(arguments[1], "slice");
    attune_init(&options);
    if (!strcmp(arguments[1], "yield")) {
        for (int i = 0; i < 2; i++)
            attune_create(&threads[i], NULL, yields, NULL);
        for (int i = 0; i < 2; i++)
            attune_join(threads[i], NULL);
    } else if (!strcmp(arguments[1], "create")) {
        for (long i = 0; i < times; i++) {
            attune_create(&threads[0], NULL, nothing, NULL);
            attune_join(threads[0], NULL);
        }
    } else if (!strcmp(arguments[1], "check") || options.preempt) {
        for (long i = 0; i < times; i++)
            attune_check();
    } else {
        for (long i = 0; i < times; i++) {
            attune_mutex_lock(&mutex);
            attune_mutex_unlock(&mutex);
        }
    }
}
