/* The web server: a thread for each connection of a client. The page `/page` asks the database.
 *
 *      thread import "phase"   0: it reads a request; 1: it is about to ask the database;
 *                              2: it has the answer; 3: it serves a file
 *
 * A reply is computed and sent in chunks; between two of them the thread yields, so that the policy
 * may choose again. Reading a request is the work of the example web server's http.c.
 */
#include "webapp.h"
#include "../webserver/http.h"
#include "attune.h"

#include <stdio.h>
#include <string.h>

enum { ASKS = 1, ANSWERED = 2, SERVES = 3, CHUNK = 2000, LONGEST_HEAD = 4096 };

static int database_port;

/* Reads a request's head; the kind that it asks for, -1 at the end of the connection. */
static int read_request(struct connection *self)
{
    char head[LONGEST_HEAD];
    size_t size = 0, scanned = 0;
    for (;;) {
        ssize_t got = attune_read(self->fd, head + size, sizeof(head) - size);
        if (got <= 0)
            return -1;
        size += (size_t)got;
        enum http_scan scan = http_scan_head(head, size, &scanned);
        if (scan == HTTP_COMPLETE)
            break;
        if (scan == HTTP_GARBAGE || size == sizeof(head))
            return -1;
    }
    struct http_request request;
    if (http_parse(head, scanned, sizeof(head), &request) != 200)
        return -1;
    for (int kind = 0; kind < KINDS; kind++)
        if (!strcmp(request.path, kinds[kind].path))
            return kind;
    return -1;
}

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t put = attune_write(fd, bytes, size);
        if (put <= 0)
            return 0;
        bytes += put;
        size -= (size_t)put;
    }
    return 1;
}

static int reply(struct connection *self, int kind)
{
    char chunk[CHUNK], head[128];
    int length = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                          kinds[kind].bytes);
    if (!write_all(self->fd, head, (size_t)length))
        return 0;
    for (size_t left = kinds[kind].bytes;;) {
        size_t size = left < CHUNK ? left : CHUNK;
        memset(chunk, (char)('a' + compute(size * (uint64_t)options.work) % 26), size);
        if (!write_all(self->fd, chunk, size))
            return 0;
        left -= size;
        /* A client that has the whole reply may ask again at once, so the thread reads next. */
        if (left == 0)
            return 1;
        attune_yield();
    }
}

static void *pages(void *argument)
{
    struct connection *self = argument;
    int at_database = connect_to(database_port);
    for (;;) {
        self->phase = 0;
        int kind = read_request(self);
        if (kind < 0)
            break;
        if (kind == DYNAMIC) {
            char answer = '?';
            self->phase = ASKS;
            attune_yield(); /* here the policy may let it wait */
            if (attune_write(at_database, &answer, 1) != 1 ||
                attune_read(at_database, &answer, 1) != 1)
                break;
            self->phase = ANSWERED;
        } else {
            self->phase = SERVES;
            attune_yield();
        }
        if (!reply(self, kind))
            break;
    }
    attune_close(at_database);
    attune_close(self->fd);
    return NULL;
}

_Noreturn void web(int listening, int port)
{
    database_port = port;
    attune_register_thread_field("phase", struct connection, phase);
    serve(listening, "page", pages);
}
