/* The clients: each asks for a page, waits for the whole reply, and asks for the next one.
 *
 * The same seed asks for the same pages in the same order, whichever client gets which.
 */
#define _GNU_SOURCE /* memmem */
#include "webapp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CLIENTS = 500, LONGEST_REPLY = 32 << 10 };

struct client {
    int kind;
    double since;
    size_t got, wanted; /* bytes of the reply; wanted is 0 before the head has come */
    char head[256];
};

static struct client all[MOST_CLIENTS];
static struct pollfd open_connections[MOST_CLIENTS];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int choose(uint64_t *random)
{
    double number = chance(random) * 100;
    int kind = 0;
    while (kind < KINDS - 1 && number >= kinds[kind].share)
        number -= kinds[kind++].share;
    return kind;
}

static void ask(int index, uint64_t *random)
{
    struct client *client = &all[index];
    char request[128];
    *client = (struct client){.kind = choose(random), .since = now()};
    int length = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: webapp\r\n\r\n",
                          kinds[client->kind].path);
    if (write(open_connections[index].fd, request, (size_t)length) != length)
        fail("webapp: the web server takes no request");
}

/* Takes what has come; true: that was the end of the reply. */
static int hear(int index)
{
    struct client *client = &all[index];
    static char bytes[LONGEST_REPLY];
    ssize_t got = read(open_connections[index].fd, bytes, sizeof(bytes));
    if (got <= 0)
        fail("webapp: the web server gives no reply");
    for (ssize_t i = 0; i < got && client->got + (size_t)i < sizeof(client->head); i++)
        client->head[client->got + (size_t)i] = bytes[i];
    client->got += (size_t)got;
    size_t known = client->got < sizeof(client->head) ? client->got : sizeof(client->head);
    const char *end = memmem(client->head, known, "\r\n\r\n", 4);
    if (end && !client->wanted)
        client->wanted = (size_t)(end + 4 - client->head) + kinds[client->kind].bytes;
    if (client->wanted && client->got > client->wanted) {
        fputs("webapp: a reply is too long\n", stderr);
        exit(1);
    }
    return client->got == client->wanted;
}

int clients(int port)
{
    uint64_t random = options.seed;
    double sum[KINDS] = {0}, start = now();
    int count[KINDS] = {0}, asked = 0, answered = 0;
    int number = options.clients < options.requests ? options.clients : options.requests;
    for (int i = 0; i < number; i++)
        open_connections[i] = (struct pollfd){.fd = connect_to(port), .events = POLLIN};
    for (; asked < number; asked++)
        ask(asked, &random);
    while (answered < options.requests) {
        if (poll(open_connections, (nfds_t)number, -1) < 0 && errno != EINTR)
            fail("webapp: poll");
        for (int i = 0; i < number; i++) {
            if (open_connections[i].revents == 0 || !hear(i))
                continue;
            sum[all[i].kind] += now() - all[i].since;
            count[all[i].kind]++;
            answered++;
            if (asked < options.requests) {
                asked++;
                ask(i, &random);
            } else {
                open_connections[i].events = 0;
            }
        }
    }
    double seconds = now() - start, files = 0;
    for (int kind = 0; kind < KINDS; kind++)
        files += kind == DYNAMIC ? 0 : sum[kind];
    int other = answered - count[DYNAMIC];
    printf("{\"requests\":%d,\"answered\":%d,\"dynamic\":%d,\"seconds\":%.3f,"
           "\"dynamic_ms\":%.3f,\"file_ms\":%.3f}\n",
           options.requests, answered, count[DYNAMIC], seconds,
           count[DYNAMIC] ? sum[DYNAMIC] / count[DYNAMIC] * 1e3 : 0.0,
           other ? files / other * 1e3 : 0.0);
    return 0;
}
