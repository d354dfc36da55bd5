/* Each poll-type call as a program uses it that knows nothing of cooperation; says `ok`, or which
 * line is wrong. With an argument: how many CPUs this process may use. BELL: a file that is there
 * while we cooperate. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                 \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            printf("%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, strerror(errno)); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

static int ends[2], epoll;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    signals++;
}

static int cpus(void)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    return CPU_COUNT(&set);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* One of the calls, for the reading end of the pipe. ms < 0: without end. */
static int call(int which, int ms, const sigset_t *mask)
{
    struct timespec limit = {ms / 1000, ms % 1000 * 1000000L}, *time = ms < 0 ? NULL : &limit;
    struct timeval old = {ms / 1000, ms % 1000 * 1000L};
    struct pollfd one = {.fd = ends[0], .events = POLLIN};
    struct epoll_event event;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    int result;
    switch (which) {
    case 0:
        result = poll(&one, 1, ms);
        CHECK(result <= 0 || one.revents == POLLIN);
        return result;
    case 1:
        return ppoll(&one, 1, time, mask);
    case 2:
        result = select(ends[0] + 1, &set, NULL, NULL, ms < 0 ? NULL : &old);
        CHECK(result < 0 || FD_ISSET(ends[0], &set) == (result == 1));
        CHECK(result != 0 || (old.tv_sec == 0 && old.tv_usec == 0));
        return result;
    case 3:
        return pselect(ends[0] + 1, &set, NULL, NULL, time, mask);
    case 4:
        result = epoll_wait(epoll, &event, 1, ms);
        CHECK(result <= 0 || (event.events == EPOLLIN && event.data.u32 == 7));
        return result;
    case 5:
        return epoll_pwait(epoll, &event, 1, ms, mask);
    default:
        return epoll_pwait2(epoll, &event, 1, time, mask);
    }
}

static int has_mask(int which)
{
    return which == 1 || which == 3 || which >= 5;
}

static pid_t after_a_while(int what)
{
    pid_t child = fork();
    if (child == 0) {
        usleep(30000);
        if (what == 0)
            _exit(write(ends[1], "x", 1) != 1);
        _exit(kill(getppid(), what) != 0);
    }
    return child;
}

static void *in_a_thread(void *data)
{
    (void)data;
    int before = cpus();
    CHECK(call(0, 20, NULL) == 0 && cpus() == before);
    return NULL;
}

static void one_call(int which)
{
    char byte;
    double began = now();
    CHECK(call(which, 40, NULL) == 0 && now() - began >= 0.039);
    CHECK(call(which, 0, NULL) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(call(which, -1, NULL) == 1 && call(which, 0, NULL) == 1);
    CHECK(read(ends[0], &byte, 1) == 1);
    after_a_while(0);
    CHECK(call(which, -1, NULL) == 1 && read(ends[0], &byte, 1) == 1 && wait(NULL) > 0);
    signals = 0;
    after_a_while(SIGUSR1);
    CHECK(call(which, -1, NULL) == -1 && errno == EINTR && signals == 1 && wait(NULL) > 0);
    if (!has_mask(which))
        return;
    /* Blocked, and let through by the call alone; pending before, and coming while it waits. */
    sigset_t blocked, none, own;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGUSR1);
    CHECK(signals == 1);
    CHECK(call(which, -1, &none) == -1 && errno == EINTR && signals == 2);
    after_a_while(SIGUSR1);
    CHECK(call(which, -1, &none) == -1 && errno == EINTR && signals == 3 && wait(NULL) > 0);
    sigprocmask(SIG_UNBLOCK, &blocked, &own);
    CHECK(sigismember(&own, SIGUSR1));
    /* Open, and kept back by the call. */
    pid_t child = after_a_while(SIGUSR1);
    CHECK(call(which, 500, &blocked) == 0 && signals == 4 && waitpid(child, NULL, 0) == child);
}

static void wrong_arguments(void)
{
    struct epoll_event event;
    struct timespec wrong = {0, 2000000000};
    struct pollfd closed = {.fd = 999, .events = POLLIN};
    fd_set set;
    FD_ZERO(&set);
    int gone = dup(0);
    FD_SET(gone, &set);
    close(gone);
    CHECK(epoll_wait(999, &event, 1, 0) == -1 && errno == EBADF);
    CHECK(epoll_wait(epoll, &event, 0, 0) == -1 && errno == EINVAL);
    CHECK(ppoll(NULL, 0, &wrong, NULL) == -1 && errno == EINVAL);
    CHECK(poll(&closed, 1, -1) == 1 && closed.revents == POLLNVAL);
    CHECK(select(gone + 1, &set, NULL, NULL, NULL) == -1 && errno == EBADF);
    CHECK(select(-1, NULL, NULL, NULL, NULL) == -1 && errno == EINVAL);
    double began = now();
    CHECK(poll(NULL, 0, 20) == 0 && now() - began >= 0.019);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return printf("%d\n", cpus()) < 0;
    int before = cpus();
    epoll = epoll_create1(0);
    CHECK(pipe(ends) == 0 && epoll >= 0);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0],
                    &(struct epoll_event){.events = EPOLLIN, .data.u32 = 7}) == 0);
    CHECK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART},
                    NULL) == 0);
    for (int which = 0; which < 7; which++)
        one_call(which);
    wrong_arguments();
    const char *wakeup = getenv("WAKEUP");
    CHECK(wakeup == NULL || access(wakeup, F_OK) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, in_a_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    /* A child, and a program that we start, may use what we might; and a child can wait, too. */
    pid_t child = fork();
    if (child == 0) {
        CHECK(cpus() == before);
        CHECK(call(0, 10, NULL) == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    char command[4096];
    snprintf(command, sizeof command, "exec %s cpus", argv[0]);
    FILE *out = popen(command, "r");
    int there = 0;
    CHECK(out != NULL && fscanf(out, "%d", &there) == 1 && there == before);
    pclose(out);
    puts("ok");
    return 0;
}
