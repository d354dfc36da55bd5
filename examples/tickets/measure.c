/* What shared variables cost, beside what can be had without: a plain load, and a packet to another
 * process and back. The things compared take turns, round by round, so that what else runs on the
 * machine meets all of them. */
#define _GNU_SOURCE
#include "tickets.h"

#include "attune.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <signal.h>
#include <unistd.h>

enum { LOADS = 1000000, TRIPS = 500 };

/* The sizes of a request to add, and of its answer. */
enum { REQUEST = 46, ANSWER = 26 };

static int peer;

static void run_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    must(sched_setaffinity(0, sizeof(set), &set) == 0, "the CPU of the process that answers");
}

/* A process that answers packets. It is forked before the library starts: a child cannot use it. */
void measure_before(int cpu)
{
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socketpair");
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        char packet[REQUEST] = {0};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        if (cpu >= 0)
            run_on(cpu);
        while (recv(ends[1], packet, sizeof(packet), 0) > 0)
            must(send(ends[1], packet, ANSWER, 0) == ANSWER, "send");
        _exit(0);
    }
    close(ends[1]);
    peer = ends[0];
}

static void bare_trip(void)
{
    char packet[REQUEST] = {0};
    must(send(peer, packet, sizeof(packet), 0) == REQUEST, "send");
    must(recv(peer, packet, sizeof(packet), 0) == ANSWER, "recv");
}

static int last, sold;

static void request_read(void)
{
    int64_t value;
    must(attune_shared_read_int(last, &value, ATTUNE_FOREVER) == 0, "read");
}

static void request_add(void)
{
    must(attune_shared_change_int(last, ATTUNE_SHARED_ADD, 1, NULL, ATTUNE_FOREVER) == 0, "add");
}

static double trips(void (*trip)(void))
{
    int64_t begin = attune_now();
    for (int i = 0; i < TRIPS; i++)
        trip();
    return (double)(attune_now() - begin) / TRIPS;
}

static int64_t sum;

static double loads(const volatile int64_t *word)
{
    int64_t begin = attune_now();
    for (int i = 0; i < LOADS; i++)
        sum += *word;
    return (double)(attune_now() - begin) / LOADS;
}

static double calls(void)
{
    int64_t value, begin = attune_now();
    for (int i = 0; i < LOADS; i++)
        if (attune_shared_read_int(sold, &value, 0) == 0)
            sum += value;
    return (double)(attune_now() - begin) / LOADS;
}

void measure(int rounds)
{
    static int64_t plain = 1;
    last = attune_shared("last");
    sold = attune_shared("sold");
    const int64_t *copy = attune_shared_int(sold);
    must(last >= 0 && copy != NULL, "the shared variables");
    for (int i = 0; i < rounds; i++) {
        printf("{\"load_ns\": %.3f, \"cached_ns\": %.3f, ", loads(&plain), loads(copy));
        printf("\"call_ns\": %.3f, \"bare_ns\": %.1f, ", calls(), trips(bare_trip));
        printf("\"read_ns\": %.1f, \"add_ns\": %.1f}\n", trips(request_read), trips(request_add));
    }
    must(sum != 0, "nothing was read");
}
