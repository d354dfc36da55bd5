/* A program that takes what it can get, and says what it had.
 *
 *     hogs member LABEL FILE SECONDS SLEEPERS   waits for the file, then computes in bits of 100 us
 *                                               and yields after each; SLEEPERS further threads
 *                                               sleep all the time
 *     hogs chain LABEL FILE SECONDS             waits for the file, then threads one after another:
 *                                               each computes for 2 ms, starts the next and ends
 *
 * Prints the CPU time that it had since the file was there: LABEL: N ms
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sched.h>

#define LINK_NS 2000000ll
#define BIT_NS  100000ll

static long long clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void compute(long long ns)
{
    long long until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
}

static void *sleeps(void *unused)
{
    (void)unused;
    for (;;)
        usleep(500000);
    return NULL;
}

static long long end;

static void start(void *(*body)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) || pthread_detach(thread)) {
        perror("a thread");
        exit(1);
    }
}

static void *link_of_chain(void *unused)
{
    (void)unused;
    compute(LINK_NS);
    if (clock_ns(CLOCK_MONOTONIC) < end)
        start(link_of_chain);
    return NULL;
}

int main(int count, char **words)
{
    long long before;
    if (count < 5)
        return 2;
    for (int i = count > 5 ? atoi(words[5]) : 0; i > 0; i--)
        start(sleeps);
    while (access(words[3], F_OK))
        usleep(20000);
    before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    end = clock_ns(CLOCK_MONOTONIC) + atoi(words[4]) * 1000000000ll;
    if (!strcmp(words[1], "chain")) {
        start(link_of_chain);
        while (clock_ns(CLOCK_MONOTONIC) < end)
            usleep(100000);
    } else {
        while (clock_ns(CLOCK_MONOTONIC) < end) {
            compute(BIT_NS);
            sched_yield();
        }
    }
    printf("%s: %lld ms\n", words[2], (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before) / 1000000);
    return 0;
}
