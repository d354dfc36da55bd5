/* See connection.h. A client may send anything, at any speed, and vanish at any time: each wait has
 * a limit, and none of it matters to other connections. */
#define _GNU_SOURCE
#include "connection.h"
#include "client.h"
#include "http.h"
#include "proxy.h"

#include <stdio.h>
#include <string.h>

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

/* Waits for the next request's first byte. False: there will be none. */
static bool await_request(struct handler *handler, bool first)
{
    const struct options *options = &handler->server->options;
    handler->imports.remaining = 0;
    if (handler->filled == 0) {
        become_quiet(handler);
        int got = client_receive(handler, options->idle_timeout);
        no_longer_quiet(handler);
        if (got <= 0)
            return false;
    }
    if (!first)
        handler->imports.started = attune_now();
    return true;
}

/* A server of files refuses more than a proxy does. */
static int parse_head(struct handler *handler, size_t size, struct http_request *request)
{
    size_t target_limit = (size_t)handler->server->options.target_limit;
    return handler->server->proxy.on
               ? http_read_request(handler->buffer, size, target_limit, request)
               : http_parse(handler->buffer, size, target_limit, request);
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
            return parse_head(handler, scanned, request);
        case HTTP_INCOMPLETE:
            break;
        }
        if (handler->filled >= (size_t)options->head_limit)
            return memchr(handler->buffer, '\n', handler->filled) != NULL ? 431 : 414;
        int64_t now = attune_now();
        if (deadline == 0)
            deadline = now + options->head_timeout;
        int got = now < deadline ? client_receive(handler, deadline - now) : -1;
        if (got < 0) {
            server->counters.timeouts++;
            return 408;
        }
        if (got == 0)
            return 0;
    }
}

/* Reads a body and ignores it. False: the client has gone or is too slow. */
static bool skip_body(struct handler *handler, uint64_t size)
{
    int64_t deadline = attune_now() + handler->server->options.head_timeout;
    while (size > 0) {
        if (handler->filled == 0) {
            int64_t now = attune_now();
            if (now >= deadline || client_receive(handler, deadline - now) <= 0)
                return false;
        }
        size_t some = size < handler->filled ? (size_t)size : handler->filled;
        client_consume(handler, some);
        size -= some;
    }
    return true;
}

/* ---- Writing ---- */

static bool write_file(struct handler *handler, const struct file *file, bool head_only,
                       bool keep_alive)
{
    char head[384];
    size_t size =
        (size_t)snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nDate: %s\r\n%.*s%s\r\n",
                         client_date(handler->server), (int)file->head_size, file->head,
                         keep_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n");
    struct iovec parts[] = {{head, size}, {file->body, head_only ? 0 : file->size}};
    return client_write_end(handler, parts, 2, keep_alive);
}

static void refuse(struct handler *handler, int status)
{
    handler->server->counters.refused++;
    client_write_status(handler, status, NULL, false, false);
    client_linger(handler);
}

/* ---- The connection ---- */

/* A request for a file, and its reply. False if the connection is at its end. */
static bool serve_file(struct handler *handler, const struct http_request *request,
                       size_t head_size)
{
    struct server *server = handler->server;
    /* A client that waits for leave to send its body gets the answer instead, and no say in whether
     * the body follows. */
    bool keep_alive = request->keep_alive && !server->stopping && !server->starved &&
                      !(request->expects_continue && request->body_size > 0);
    const struct file *file = files_find(&server->files, request->path);
    bool go_on;
    if (file != NULL) {
        server->counters.ok++;
        go_on = write_file(handler, file, request->head_only, keep_alive);
    } else {
        server->counters.not_found++;
        go_on = client_write_status(handler, 404, NULL, request->head_only, keep_alive);
    }
    client_consume(handler, head_size);
    if (go_on)
        return skip_body(handler, request->body_size);
    if (!keep_alive && (handler->filled > 0 || request->body_size > 0))
        client_linger(handler);
    return false;
}

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
    return server->proxy.on ? proxy_serve(handler, &request, head_size)
                            : serve_file(handler, &request, head_size);
}

void connection_serve(struct handler *handler)
{
    handler->filled = 0;
    bool first = true;
    while (await_request(handler, first) && serve_request(handler))
        first = false;
    handler->imports.remaining = 0;
}
