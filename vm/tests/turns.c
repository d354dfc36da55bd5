/* A thread on each of two processors looks at the clock for half a second: prints how long the
 * second one stood still in the median, when it did, in ns. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 100000 };
#define PAUSE 20000L /* shorter ones are the kernel's */

static long pauses[MOST];
static int count;

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void *look(void *processor)
{
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET((int)(long)processor, &own);
    pthread_setaffinity_np(pthread_self(), sizeof own, &own);
    for (long end = now() + 500000000L, last = now(), time; last < end; last = time) {
        time = now();
        if (processor && time - last > PAUSE && count < MOST)
            pauses[count++] = time - last;
    }
    return NULL;
}

static int longer(const void *one, const void *other)
{
    long a = *(const long *)one, b = *(const long *)other;
    return (a > b) - (a < b);
}

int main(void)
{
    pthread_t other;
    if (pthread_create(&other, NULL, look, (void *)1L))
        return 1;
    look((void *)0L);
    pthread_join(other, NULL);
    qsort(pauses, (size_t)count, sizeof *pauses, longer);
    printf("%ld\n", count ? pauses[count / 2] : 0);
    return 0;
}
