/* A thread of SCHED_FIFO wakes one of the policy's threads sixty times while another computes, and
 * sleeps: `lends` prints how many of these wake-ups were served more than half a millisecond late.
 * The times of the wake-ups lie anywhere between two ticks. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../common/work.h"

enum { WAKES = 60, MILLISECOND = 1000000, PERIOD = 13700000, LATE = MILLISECOND / 2 };

static long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void serve(int from)
{
    int late = 0;
    for (long at; read(from, &at, sizeof at) == sizeof at;)
        late += now() - at > LATE;
    printf("lends: %d of %d late\n", late, WAKES);
}

int main(void)
{
    int ends[2];
    pid_t hog, server;
    if (pipe(ends))
        return 2;
    server = fork();
    if (server == 0) {
        close(ends[1]);
        serve(ends[0]);
        return 0;
    }
    hog = fork();
    if (hog == 0) {
        close(ends[1]);
        for (;;)
            work();
    }
    if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}))
        return 3;
    for (int i = 0; i < WAKES; i++) {
        long at;
        nanosleep(&(struct timespec){.tv_nsec = PERIOD}, NULL);
        at = now();
        if (write(ends[1], &at, sizeof at) != sizeof at)
            return 2;
    }
    close(ends[1]);
    waitpid(server, NULL, 0);
    kill(hog, SIGKILL);
    return 0;
}
