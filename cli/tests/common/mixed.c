/* A mixed load that ends by itself: hogs, a pipe between two processes, short-lived processes of
 * several weights, threads that sleep, and threads that change where they may run. `mixed SECONDS`
 * prints one line when nothing was lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOGS = 3, SLEEPERS = 4, MOVERS = 2, CHILDREN = 8, TURNS = 20 };

static double end;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void work(int steps)
{
    for (volatile int step = 0; step < steps; step++)
        ;
}

static void *sleeper(void *number)
{
    while (now() < end)
        usleep(1000 + 300 * (long)number);
    return NULL;
}

static void *mover(void *unused)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (long turn = 0; now() < end; turn++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (long cpu = 0; cpu < cpus; cpu++)
            if (turn % 5 == 4 || cpu == turn % cpus)
                CPU_SET(cpu, &set);
        /* that CPU has gone meanwhile */
        if (sched_setaffinity(0, sizeof set, &set) && errno != EINVAL)
            exit(3);
        work(20000);
        if (turn % 3 == 0)
            sched_yield();
    }
    return unused;
}

static pid_t echo(int from, int to, int unused_a, int unused_b)
{
    pid_t child = fork();
    char byte;
    if (child)
        return child;
    close(unused_a);
    close(unused_b);
    while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
        ;
    _exit(0);
}

static void children(void)
{
    pid_t child[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        child[i] = fork();
        if (!child[i]) {
            if (i % 2 && nice(i) == -1)
                _exit(1);
            work(10000);
            _exit(0);
        }
    }
    for (int i = 0; i < CHILDREN; i++)
        waitpid(child[i], NULL, 0);
}

int main(int count, char **words)
{
    int there[2], back[2];
    pthread_t thread[SLEEPERS + MOVERS];
    pid_t hog[HOGS], other;
    char byte = 1;
    end = now() + (count > 1 ? atof(words[1]) : 2);
    for (int i = 0; i < HOGS; i++) {
        hog[i] = fork();
        if (!hog[i]) {
            while (now() < end + 0.2)
                work(100000);
            _exit(0);
        }
    }
    if (pipe(there) || pipe(back))
        return 1;
    other = echo(there[0], back[1], there[1], back[0]);
    close(there[0]);
    close(back[1]);
    for (long i = 0; i < SLEEPERS + MOVERS; i++)
        pthread_create(&thread[i], NULL, i < SLEEPERS ? sleeper : mover, (void *)i);
    do {
        for (int turn = 0; turn < TURNS; turn++)
            if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
                return 2;
        children();
    } while (now() < end);
    for (int i = 0; i < SLEEPERS + MOVERS; i++)
        pthread_join(thread[i], NULL);
    close(there[1]);
    waitpid(other, NULL, 0);
    for (int i = 0; i < HOGS; i++)
        waitpid(hog[i], NULL, 0);
    puts("mixed: all came back");
    return 0;
}
