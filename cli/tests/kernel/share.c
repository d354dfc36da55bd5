// share LABEL N SECONDS: N processes that compute for so long; says what part of the machine they
// had, in per cent of all CPUs. while FILE N: N processes that compute as long as the file is
// there; waits for it first, five minutes at most. orphan SECONDS: ends at once, and leaves a
// process behind that computes for so long.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../common/work.h"

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void compute(double until)
{
    while (now() < until)
        for (int i = 0; i < 100; i++)
            work();
}

static int compute_while(const char *file, int processes)
{
    for (int i = 0; access(file, F_OK) && i < 30000; i++)
        usleep(10000);
    double until = now() + 60;
    for (int i = 0; i < processes; i++) {
        if (!fork()) {
            while (!access(file, F_OK) && now() < until)
                compute(now() + 0.01);
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}

int main(int count, char **words)
{
    double begin = now();
    if (count == 4 && !strcmp(words[1], "while"))
        return compute_while(words[2], atoi(words[3]));
    if (count == 3 && !strcmp(words[1], "orphan")) {
        if (!fork())
            compute(begin + atof(words[2]));
        return 0;
    }
    if (count != 4)
        return 2;
    for (int i = 0; i < atoi(words[2]); i++) {
        if (!fork()) {
            compute(begin + atof(words[3]));
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    struct rusage had;
    getrusage(RUSAGE_CHILDREN, &had);
    double used = had.ru_utime.tv_sec + had.ru_stime.tv_sec +
                  (had.ru_utime.tv_usec + had.ru_stime.tv_usec) * 1e-6;
    printf("%s: %.1f %%\n", words[1], 100 * used / (now() - begin) / sysconf(_SC_NPROCESSORS_ONLN));
    return 0;
}
