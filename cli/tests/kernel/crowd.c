/* Busy threads of one process: `crowd SECONDS GROUP..`, a group being N[@CPU][:NICE or :idle].
 *
 * The threads of a group begin to compute together, a tenth of a second after the group before: so
 * a large group does not keep the program from making it. When SECONDS have passed, the program
 * says which part of a CPU the thread had that had least, notes how far each has come, and ends
 * when each has gone on from there. It then prints one line; it prints another, and fails, if that
 * takes longer than a minute.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../common/work.h"

enum { MOST = 8192, PATIENCE = 60 };

struct group {
    int number, cpu, nice, idle;
};

static struct member {
    struct group of;
    volatile unsigned long steps;
    unsigned long noted;
} members[MOST];

static pthread_t threads[MOST];

/* Threads of the first so many groups compute. */
static volatile int opened;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void *compute(void *argument)
{
    struct member *me = argument;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(me->of.cpu, &set);
    if (me->of.cpu >= 0 && sched_setaffinity(0, sizeof set, &set))
        exit(3);
    if (me->of.nice && setpriority(PRIO_PROCESS, gettid(), me->of.nice))
        exit(3);
    if (me->of.idle && sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}))
        exit(3);
    for (int open = opened; open <= me->of.number; open = opened)
        syscall(SYS_futex, &opened, FUTEX_WAIT_PRIVATE, open, NULL, NULL, 0);
    for (;;) {
        work();
        me->steps++;
    }
    return NULL;
}

static int start(const char *text, int number, int first)
{
    struct group of = {.number = number, .cpu = -1};
    pthread_attr_t small;
    int count = atoi(text);
    const char *at = strchr(text, '@'), *class = strchr(text, ':');
    if (at)
        of.cpu = atoi(at + 1);
    if (class && !strcmp(class, ":idle"))
        of.idle = 1;
    else if (class)
        of.nice = atoi(class + 1);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    for (int i = first; i < first + count; i++) {
        members[i % MOST].of = of;
        if (i >= MOST || pthread_create(&threads[i], &small, compute, &members[i])) {
            fprintf(stderr, "crowd: there is no thread %d\n", i);
            exit(2);
        }
    }
    opened = number + 1;
    syscall(SYS_futex, &opened, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    return first + count;
}

static int behind(int count)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        found += members[i].steps == members[i].noted;
    return found;
}

/* The CPU time of the thread that had least, in seconds. */
static double least(int count, double since)
{
    double found = now() - since;
    for (int i = 0; i < count; i++) {
        clockid_t clock;
        struct timespec had;
        if (!pthread_getcpuclockid(threads[i], &clock) && !clock_gettime(clock, &had) &&
            had.tv_sec + had.tv_nsec / 1e9 < found)
            found = had.tv_sec + had.tv_nsec / 1e9;
    }
    return found;
}

int main(int words, char **word)
{
    int count = 0;
    double begin = now(), since;
    for (int i = 2; i < words; i++) {
        count = start(word[i], i - 2, count);
        usleep(100000);
    }
    while (now() < begin + atof(word[1]))
        usleep(50000);
    printf("crowd: the least is %.4f of a CPU\n", least(count, begin) / (now() - begin));
    for (int i = 0; i < count; i++)
        members[i].noted = members[i].steps;
    since = now();
    while (behind(count) && now() < since + PATIENCE)
        usleep(50000);
    if (behind(count))
        printf("crowd: %d of %d threads did not go on\n", behind(count), count);
    else
        printf("crowd: %d threads went on\n", count);
    fflush(stdout);
    _exit(behind(count) != 0);
}
