/* Blocks, or computes, in one of the ways in which programs say until when: a thousand seconds from
 * now. `waits HOW`, killed at the end. It says `waits` when nothing else comes before that. */
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 1000 };

static struct itimerspec in(int seconds)
{
    struct itimerspec at = {.it_value.tv_sec = seconds};
    return at;
}

static void tell(void)
{
    puts("waits");
    fflush(stdout);
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "";
    struct timespec time;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    int descriptor = timerfd_create(CLOCK_MONOTONIC, 0), events = epoll_create1(0);
    struct epoll_event none;
    struct itimerspec at = in(SECONDS);
    if (strcmp(how, "computing") != 0 && strcmp(how, "answered") != 0)
        tell();
    if (strcmp(how, "relative") == 0)
        sleep(SECONDS);
    else if (strcmp(how, "absolute") == 0) {
        clock_gettime(CLOCK_REALTIME, &time);
        time.tv_sec += SECONDS;
        clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL);
    } else if (strcmp(how, "select") == 0) {
        struct timeval most = {.tv_sec = SECONDS};
        select(0, NULL, NULL, NULL, &most);
    } else if (strcmp(how, "epoll") == 0)
        epoll_wait(events, &none, 1, SECONDS * 1000);
    else if (strcmp(how, "futex") == 0) {
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t never = PTHREAD_COND_INITIALIZER;
        clock_gettime(CLOCK_REALTIME, &time);
        time.tv_sec += SECONDS;
        pthread_mutex_lock(&lock);
        pthread_cond_timedwait(&never, &lock, &time);
    } else if (strcmp(how, "timerfd") == 0) {
        /* A second one, for later; and what is asked of the descriptor says nothing. */
        int later = timerfd_create(CLOCK_MONOTONIC, 0);
        struct itimerspec then = in(2 * SECONDS);
        uint64_t expired;
        timerfd_settime(later, 0, &then, NULL);
        timerfd_settime(descriptor, 0, &at, NULL);
        while (read(descriptor, &expired, sizeof expired) < 0)
            ;
    } else if (strcmp(how, "computing") == 0) {
        timerfd_settime(descriptor, 0, &at, NULL);
        tell();
        for (volatile int turn = 0;; turn++)
            ;
    } else if (strcmp(how, "disarmed") == 0) {
        struct itimerspec off = in(0);
        timerfd_settime(descriptor, 0, &at, NULL);
        timerfd_settime(descriptor, 0, &off, NULL);
        pause();
    } else if (strcmp(how, "answered") == 0) {
        /* Its input comes long before. */
        poll(&input, 1, SECONDS * 1000);
        tell();
        pause();
    } else if (strcmp(how, "forever") == 0)
        pause();
    fprintf(stderr, "waits %s: it did not wait\n", how);
    return 1;
}
