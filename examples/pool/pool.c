/* Processes that share one listening socket, and the clients that keep them busy.
 *
 * The program forks the processes. Each is a user-level scheduler of its own: one thread accepts,
 * and a thread for each request waits as long as the request says. Which process accepts is chance,
 * unless a cluster's policy pauses the acceptors of those that have more than their share:
 *
 *      thread import "acceptor"    1 for the thread that accepts
 *
 * The first process makes the requests, over the loopback interface, and looks how far the numbers
 * of requests differ. It knows them from memory that all share, not from the policy.
 */
#define _GNU_SOURCE /* ppoll */
#include "attune.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PROCESSES = 64, MOST_REQUESTS = 4096 };

static const int64_t second = 1000000000;

static struct {
    int processes;
    int requests;
    double interval, shortest, longest; /* seconds */
    uint64_t seed;
} options = {6, 400, 0.25, 0.25, 5.0, 1};

/* Requests in each process. Shared by all. */
static atomic_int *load;

/* ---- A process of the pool ---- */

struct thread {
    int acceptor; /* the import */
    int fd;
};

static int number; /* of this process */

static void *serve(void *argument)
{
    struct thread *self = argument;
    int64_t lasts;
    atomic_fetch_add(&load[number], 1);
    if (attune_read(self->fd, &lasts, sizeof(lasts)) == (ssize_t)sizeof(lasts)) {
        attune_sleep_for(lasts);
        /* A client that has gone wants no answer. */
        (void)!attune_write(self->fd, "", 1);
    }
    attune_close(self->fd);
    atomic_fetch_sub(&load[number], 1);
    return NULL;
}

static void *accept_all(void *argument)
{
    struct thread *self = argument;
    for (;;) {
        attune_yield(); /* here the policy may pause it */
        int fd = attune_accept(self->fd, NULL, NULL);
        if (fd < 0)
            continue;
        /* The thread outlives this turn, so its data must as well: a slot for each descriptor. */
        static struct thread handlers[MOST_REQUESTS];
        if (fd >= MOST_REQUESTS) {
            attune_close(fd);
            continue;
        }
        handlers[fd] = (struct thread){.acceptor = 0, .fd = fd};
        struct attune_attributes attributes = {
            .name = "handler", .userdata = &handlers[fd], .stack_size = 32 << 10, .detached = 1};
        if (attune_create(NULL, &attributes, serve, &handlers[fd]) != 0)
            attune_close(fd);
    }
    return NULL;
}

static void process(int listening)
{
    static struct thread acceptor;
    acceptor = (struct thread){.acceptor = 1, .fd = listening};
    /* A policy that knows no acceptors may run the pool as well. */
    struct attune_options settings = {.size = sizeof(settings), .ignore_unknown_imports = 1};
    attune_init(&settings);
    attune_register_thread_field("acceptor", struct thread, acceptor);
    struct attune_attributes attributes = {
        .name = "acceptor", .userdata = &acceptor, .detached = 1};
    attune_create(NULL, &attributes, accept_all, &acceptor);
    attune_exit(NULL);
}

/* ---- The clients ---- */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * second + time.tv_nsec;
}

/* splitmix64, in [0, 1). */
static double chance(void)
{
    uint64_t z = options.seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static int request(const struct sockaddr_in *address)
{
    double lasts = options.shortest + chance() * (options.longest - options.shortest);
    int64_t nanoseconds = (int64_t)(lasts * (double)second);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 ||
        write(fd, &nanoseconds, sizeof(nanoseconds)) != (ssize_t)sizeof(nanoseconds)) {
        perror("pool: cannot make a request");
        exit(1);
    }
    return fd;
}

static int difference(void)
{
    int least = atomic_load(&load[0]), most = least;
    for (int i = 1; i < options.processes; i++) {
        int here = atomic_load(&load[i]);
        least = here < least ? here : least;
        most = here > most ? here : most;
    }
    return most - least;
}

/* Makes all requests and waits for their answers; prints how the processes shared them. */
static int clients(const struct sockaddr_in *address)
{
    static struct pollfd open[MOST_REQUESTS];
    nfds_t count = 0;
    int made = 0, answered = 0, worst = 0;
    double sum = 0;
    long looks = 0;
    int64_t next = now(), look = next, step = (int64_t)(options.shortest / 4 * (double)second);
    /* The pool is full after the longest request. */
    const int64_t settled = next + (int64_t)(options.longest * (double)second);
    while (made < options.requests || count > 0) {
        int64_t at = now();
        if (made < options.requests && at >= next && count < MOST_REQUESTS) {
            open[count++] = (struct pollfd){.fd = request(address), .events = POLLIN};
            made++;
            next += (int64_t)(-log(1 - chance()) * options.interval * (double)second);
        }
        if (at >= look && at >= settled && made < options.requests) {
            int here = difference();
            worst = here > worst ? here : worst;
            sum += here;
            looks++;
        }
        if (at >= look)
            look = at + step;
        int64_t until = made < options.requests && next < look ? next : look;
        int64_t left = until > at ? until - at : 0;
        struct timespec limit = {left / second, left % second};
        if (ppoll(open, count, &limit, NULL) < 0 && errno != EINTR)
            return 1;
        for (nfds_t i = count; i-- > 0;) {
            char byte;
            if (open[i].revents == 0)
                continue;
            answered += read(open[i].fd, &byte, 1) == 1;
            close(open[i].fd);
            open[i] = open[--count];
        }
    }
    printf("{\"processes\":%d,\"requests\":%d,\"answered\":%d,\"looks\":%ld,"
           "\"mean_difference\":%.3f,\"worst_difference\":%d}\n",
           options.processes, made, answered, looks, looks ? sum / (double)looks : 0.0, worst);
    return answered == made ? 0 : 1;
}

/* ---- The whole ---- */

static const char usage[] =
    "usage: pool [--processes N] [--requests N] [--interval S] [--shortest S] [--longest S]\n"
    "            [--seed N]\n"
    "Forked processes on one listening socket of the loopback interface. Prints how far the "
    "numbers\n"
    "of their requests differ, as a line of JSON.\n"
    "example: ATTUNE_SCHED=./process.so ATTUNE_CLUSTER=pool pool --requests 1000\n";

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        char *end;
        double number = strtod(value, &end);
        if (!strcmp(name, "--help")) {
            fputs(usage, stdout);
            exit(0);
        }
        int good = *value && !*end && number > 0;
        if (good && !strcmp(name, "--processes") && number <= MOST_PROCESSES)
            options.processes = (int)number;
        else if (good && !strcmp(name, "--requests") && number <= 1e6)
            options.requests = (int)number;
        else if (good && !strcmp(name, "--interval") && number <= 60)
            options.interval = number;
        else if (good && !strcmp(name, "--shortest") && number <= 60)
            options.shortest = number;
        else if (good && !strcmp(name, "--longest") && number <= 60)
            options.longest = number;
        else if (good && !strcmp(name, "--seed") && number < 1e15)
            options.seed = (uint64_t)number;
        else {
            fprintf(stderr, "pool: %s %s: no such option or value\n%s", name, value, usage);
            exit(2);
        }
    }
    if (options.longest < options.shortest)
        options.longest = options.shortest;
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    load = mmap(NULL, MOST_PROCESSES * sizeof(*load), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (load == MAP_FAILED || listening < 0 ||
        bind(listening, (struct sockaddr *)&address, length) != 0 ||
        listen(listening, MOST_REQUESTS) != 0 ||
        getsockname(listening, (struct sockaddr *)&address, &length) != 0) {
        perror("pool: cannot start");
        return 1;
    }
    pid_t children[MOST_PROCESSES];
    for (number = 0; number < options.processes; number++) {
        children[number] = fork();
        if (children[number] == 0) {
            /* It ends with the first process, however that ends. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            process(listening);
        }
        if (children[number] < 0) {
            perror("pool: cannot start a process");
            return 1;
        }
    }
    close(listening);
    int status = clients(&address);
    for (int i = 0; i < options.processes; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    return status;
}
