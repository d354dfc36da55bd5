/* See client.h. */
#define _GNU_SOURCE
#include "client.h"
#include "http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND 1000000000

/* How much of what a refused client still sends is read, and for how long. */
#define LINGER_BYTES 262144
#define LINGER_TIME  SECOND

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- Reading ---- */

int client_receive(struct handler *handler, int64_t timeout)
{
    ssize_t got = attune_recv_timed(handler->fd, handler->buffer + handler->filled,
                                    handler->room - handler->filled, 0, timeout);
    if (got > 0) {
        handler->filled += (size_t)got;
        return 1;
    }
    if (got < 0 && errno == ETIMEDOUT)
        return -1;
    if (got < 0 || handler->filled > 0)
        handler->server->counters.resets++;
    return 0;
}

void client_consume(struct handler *handler, size_t size)
{
    handler->filled -= size;
    memmove(handler->buffer, handler->buffer + size, handler->filled);
}

void client_linger(struct handler *handler)
{
    char rest[4096];
    shutdown(handler->fd, SHUT_WR);
    int64_t deadline = attune_now() + LINGER_TIME;
    for (size_t read = 0; read < LINGER_BYTES;) {
        int64_t now = attune_now();
        ssize_t got = now < deadline
                          ? attune_recv_timed(handler->fd, rest, sizeof rest, 0, deadline - now)
                          : 0;
        if (got <= 0)
            break;
        read += (size_t)got;
    }
}

/* ---- Writing ---- */

/* Parts of which some bytes have been written. */
struct progress {
    const struct iovec *parts;
    int count;
    size_t written; /* of the first */
};

/* The next bytes, at most `room` of them, as parts. Returns how many parts. */
static int next_parts(const struct progress *progress, size_t room, struct iovec *parts)
{
    int count = 0;
    size_t skip = progress->written;
    for (int i = 0; i < progress->count && room > 0; i++, skip = 0) {
        size_t size = progress->parts[i].iov_len - skip;
        if (size > room)
            size = room;
        parts[count++] = (struct iovec){(char *)progress->parts[i].iov_base + skip, size};
        room -= size;
    }
    return count;
}

static void advance(struct progress *progress, size_t size)
{
    while (progress->count > 0 && size >= progress->parts->iov_len - progress->written) {
        size -= progress->parts->iov_len - progress->written;
        progress->parts++;
        progress->count--;
        progress->written = 0;
    }
    progress->written += size;
}

/* `flags`, as of sendmsg, are those of the last chunk. */
static bool write_parts(struct handler *handler, const struct iovec *parts, int count,
                        uint64_t after, int flags)
{
    struct server *server = handler->server;
    const struct options *options = &server->options;
    struct progress progress = {parts, count, 0};
    size_t left = 0;
    for (int i = 0; i < count; i++)
        left += parts[i].iov_len;
    int64_t deadline = attune_now() + options->reply_timeout +
                       (int64_t)((double)left / (double)options->slowest * SECOND);
    while (left > 0) {
        handler->imports.remaining = (int64_t)(left + after);
        if (left + after > (uint64_t)options->chunk)
            attune_yield();
        struct iovec some[CLIENT_PARTS];
        struct msghdr message = {.msg_iov = some};
        message.msg_iovlen = (size_t)next_parts(&progress, (size_t)options->chunk, some);
        int some_flags = left <= (uint64_t)options->chunk ? flags : 0;
        int64_t patience = least(options->reply_timeout, deadline - attune_now());
        ssize_t written =
            patience > 0 ? attune_sendmsg_timed(handler->fd, &message, some_flags, patience) : -1;
        if (written < 0) {
            if (patience <= 0 || errno == ETIMEDOUT)
                server->counters.timeouts++;
            else
                server->counters.resets++;
            return false;
        }
        server->counters.bytes += (uint64_t)written;
        left -= (size_t)written;
        advance(&progress, (size_t)written);
    }
    handler->imports.remaining = (int64_t)after;
    return true;
}

bool client_write(struct handler *handler, const struct iovec *parts, int count, uint64_t after)
{
    return write_parts(handler, parts, count, after, 0);
}

bool client_write_end(struct handler *handler, const struct iovec *parts, int count, bool goes_on)
{
    return write_parts(handler, parts, count, 0, goes_on ? 0 : MSG_MORE) && goes_on;
}

const char *client_date(struct server *server)
{
    time_t now = time(NULL);
    if (now != server->date_second) {
        struct tm tm;
        gmtime_r(&now, &tm);
        strftime(server->date, sizeof server->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        server->date_second = now;
    }
    return server->date;
}

bool client_write_status(struct handler *handler, int status, const char *reason, bool head_only,
                         bool keep_alive)
{
    char body[160], head[320];
    size_t body_size =
        (size_t)snprintf(body, sizeof body, "%d %s%s%s\n", status, http_reason(status),
                         reason != NULL ? ": " : "", reason != NULL ? reason : "");
    size_t head_size =
        (size_t)snprintf(head, sizeof head,
                         "HTTP/1.1 %d %s\r\nDate: %s\r\n%sContent-Type: text/plain; "
                         "charset=utf-8\r\nContent-Length: %zu\r\n%s\r\n",
                         status, http_reason(status), client_date(handler->server),
                         status == 405 ? "Allow: GET, HEAD\r\n" : "", body_size,
                         keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n");
    struct iovec parts[] = {{head, head_size}, {body, head_only ? 0 : body_size}};
    return client_write_end(handler, parts, 2, keep_alive);
}
