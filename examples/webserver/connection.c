/* See connection.h. A client may send anything, at any speed, and vanish at any time: each wait has
 * a limit, and none of it matters to other connections. */
#define _GNU_SOURCE
#include "connection.h"
#include "http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#define SECOND 1000000000

/* How much of what a refused client still sends is read, and for how long, so that it sees the
 * refusal: closing with bytes unread would make the system discard the reply. */
#define LINGER_BYTES 262144
#define LINGER_TIME  SECOND

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- Quiet connections ---- */

static void become_quiet(struct handler *handler)
{
    struct server *server = handler->server;
    handler->quiet_since = attune_now();
    handler->older = server->latest;
    handler->newer = NULL;
    if (server->latest != NULL)
        server->latest->newer = handler;
    else
        server->quietest = handler;
    server->latest = handler;
}

static void no_longer_quiet(struct handler *handler)
{
    struct server *server = handler->server;
    if (handler->older != NULL)
        handler->older->newer = handler->newer;
    else
        server->quietest = handler->newer;
    if (handler->newer != NULL)
        handler->newer->older = handler->older;
    else
        server->latest = handler->older;
    handler->older = handler->newer = NULL;
}

void connection_end_quiet(struct handler *handler)
{
    shutdown(handler->fd, SHUT_RD);
}

/* ---- Reading ---- */

/* Receives more of the request into the buffer. 1: some; 0: the client has ended or gone; -1: too
 * slow. */
static int receive(struct handler *handler, int64_t timeout)
{
    ssize_t got = attune_recv_timed(handler->fd, handler->buffer + handler->filled,
                                    (size_t)handler->server->options.head_limit - handler->filled,
                                    0, timeout);
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

/* Waits for the next request's first byte. False: there will be none. */
static bool await_request(struct handler *handler, bool first)
{
    const struct options *options = &handler->server->options;
    handler->imports.remaining = 0;
    if (handler->filled == 0) {
        become_quiet(handler);
        int got = receive(handler, options->idle_timeout);
        no_longer_quiet(handler);
        if (got <= 0)
            return false;
    }
    if (!first)
        handler->imports.started = attune_now();
    return true;
}

/* Reads the rest of a request's head. Returns 200 with *request and the head's size, the status to
 * refuse it with, or 0 if the client has gone. */
static int read_head(struct handler *handler, struct http_request *request, size_t *head_size)
{
    struct server *server = handler->server;
    const struct options *options = &server->options;
    size_t scanned = 0;
    int64_t deadline = 0;
    for (;;) {
        switch (http_scan_head(handler->buffer, handler->filled, &scanned)) {
        case HTTP_GARBAGE:
            return 400;
        case HTTP_COMPLETE:
            *head_size = scanned;
            return http_parse(handler->buffer, scanned, (size_t)options->target_limit, request);
        case HTTP_INCOMPLETE:
            break;
        }
        if (handler->filled == (size_t)options->head_limit)
            return memchr(handler->buffer, '\n', handler->filled) != NULL ? 431 : 414;
        int64_t now = attune_now();
        if (deadline == 0)
            deadline = now + options->head_timeout;
        int got = now < deadline ? receive(handler, deadline - now) : -1;
        if (got < 0) {
            server->counters.timeouts++;
            return 408;
        }
        if (got == 0)
            return 0;
    }
}

/* Takes `size` bytes from the front of the buffer. */
static void consume(struct handler *handler, size_t size)
{
    handler->filled -= size;
    memmove(handler->buffer, handler->buffer + size, handler->filled);
}

/* Reads a body and ignores it. False: the client has gone or is too slow. */
static bool skip_body(struct handler *handler, uint64_t size)
{
    int64_t deadline = attune_now() + handler->server->options.head_timeout;
    while (size > 0) {
        if (handler->filled == 0) {
            int64_t now = attune_now();
            if (now >= deadline || receive(handler, deadline - now) <= 0)
                return false;
        }
        size_t some = size < handler->filled ? (size_t)size : handler->filled;
        consume(handler, some);
        size -= some;
    }
    return true;
}

/* ---- Writing ---- */

static const char *date(struct server *server)
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

/* Writes head and body in chunks, telling the scheduler how much is left. As long as more than a
 * chunk is left others may go first; what fits in one chunk is written at once. False: the client
 * has gone or is too slow. */
static bool write_reply(struct handler *handler, char *head, size_t head_size, const char *body,
                        size_t body_size)
{
    struct server *server = handler->server;
    const struct options *options = &server->options;
    struct iovec parts[2] = {{head, head_size}, {(char *)(uintptr_t)body, 0}};
    size_t left = head_size + body_size;
    int64_t deadline = attune_now() + options->reply_timeout +
                       (int64_t)((double)left / (double)options->slowest * SECOND);
    while (left > 0) {
        handler->imports.remaining = (int64_t)left;
        if (left > (size_t)options->chunk)
            attune_yield();
        parts[1].iov_len = (size_t)least(options->chunk, (int64_t)(left - parts[0].iov_len));
        int64_t patience = least(options->reply_timeout, deadline - attune_now());
        ssize_t written = patience > 0 ? attune_writev_timed(handler->fd, parts, 2, patience) : -1;
        if (written < 0) {
            if (patience <= 0 || errno == ETIMEDOUT)
                server->counters.timeouts++;
            else
                server->counters.resets++;
            return false;
        }
        server->counters.bytes += (uint64_t)written;
        left -= (size_t)written;
        size_t of_head = written < (ssize_t)parts[0].iov_len ? (size_t)written : parts[0].iov_len;
        parts[0].iov_base = (char *)parts[0].iov_base + of_head;
        parts[0].iov_len -= of_head;
        parts[1].iov_base = (char *)parts[1].iov_base + ((size_t)written - of_head);
    }
    handler->imports.remaining = 0;
    return true;
}

static void linger(struct handler *handler)
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

/* An answer that is not a file. False if it was the connection's last. */
static bool write_status(struct handler *handler, int status, bool head_only, bool keep_alive)
{
    char body[96], head[320];
    size_t body_size = (size_t)snprintf(body, sizeof body, "%d %s\n", status, http_reason(status));
    size_t head_size =
        (size_t)snprintf(head, sizeof head,
                         "HTTP/1.1 %d %s\r\nDate: %s\r\n%sContent-Type: text/plain; "
                         "charset=utf-8\r\nContent-Length: %zu\r\n%s\r\n",
                         status, http_reason(status), date(handler->server),
                         status == 405 ? "Allow: GET, HEAD\r\n" : "", body_size,
                         keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n");
    return write_reply(handler, head, head_size, body, head_only ? 0 : body_size) && keep_alive;
}

static bool write_file(struct handler *handler, const struct file *file, bool head_only,
                       bool keep_alive)
{
    char head[384];
    size_t size =
        (size_t)snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nDate: %s\r\n%.*s%s\r\n",
                         date(handler->server), (int)file->head_size, file->head,
                         keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n");
    return write_reply(handler, head, size, file->body, head_only ? 0 : file->size) && keep_alive;
}

static void refuse(struct handler *handler, int status)
{
    handler->server->counters.refused++;
    write_status(handler, status, false, false);
    linger(handler);
}

/* ---- The connection ---- */

/* One request and its reply. False if the connection is at its end. */
static bool serve_request(struct handler *handler)
{
    struct server *server = handler->server;
    struct http_request request;
    size_t head_size = 0;
    int status = read_head(handler, &request, &head_size);
    if (status == 0)
        return false;
    server->counters.requests++;
    if (status == 200 && request.body_size > (uint64_t)server->options.body_limit)
        status = 413;
    if (status != 200) {
        refuse(handler, status);
        return false;
    }
    /* A client that waits for leave to send its body gets the answer instead, and no say in whether
     * the body follows. */
    bool keep_alive = request.keep_alive && !server->stopping && !server->starved &&
                      !(request.expects_continue && request.body_size > 0);
    const struct file *file = files_find(&server->files, request.path);
    bool go_on;
    if (file != NULL) {
        server->counters.ok++;
        go_on = write_file(handler, file, request.head_only, keep_alive);
    } else {
        server->counters.not_found++;
        go_on = write_status(handler, 404, request.head_only, keep_alive);
    }
    consume(handler, head_size);
    if (go_on)
        return skip_body(handler, request.body_size);
    if (!keep_alive && (handler->filled > 0 || request.body_size > 0))
        linger(handler);
    return false;
}

void connection_serve(struct handler *handler)
{
    handler->filled = 0;
    bool first = true;
    while (await_request(handler, first) && serve_request(handler))
        first = false;
    handler->imports.remaining = 0;
}
