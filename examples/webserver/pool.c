/* See pool.h. */
#define _GNU_SOURCE
#include "pool.h"
#include "connection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLISECOND 1000000

/* Handlers need little: the largest frame holds a few kilobytes. */
#define STACK_SIZE 65536

/* When a client waits for a handler, connections that have been quiet for this long are ended. */
#define QUIET_SPARED (250 * MILLISECOND)

/* After accept failed for want of descriptors or memory. */
#define ACCEPT_PAUSE (20 * MILLISECOND)

/* ---- Handlers ---- */

static void become_idle(struct handler *handler)
{
    struct server *server = handler->server;
    handler->below = server->idle_top;
    server->idle_top = handler;
    server->imports.idle_handlers++;
    attune_semaphore_post(&server->idle);
}

static void *handle(void *argument)
{
    struct handler *handler = argument;
    struct server *server = handler->server;
    while (!server->stopping) {
        become_idle(handler);
        attune_semaphore_wait(&handler->work);
        if (handler->fd < 0)
            break;
        connection_serve(handler);
        attune_close(handler->fd);
        handler->fd = -1;
        server->imports.descriptors_left++;
    }
    handler->ended = true;
    attune_semaphore_post(&server->ended);
    return NULL;
}

/* The handler that became idle last: its stack and buffer are still in the cache. */
static struct handler *take_idle(struct server *server)
{
    struct handler *handler = server->idle_top;
    if (handler != NULL) {
        server->idle_top = handler->below;
        server->imports.idle_handlers--;
    }
    return handler;
}

/* ---- The acceptor ---- */

/* The next connection, or -1 when there will be none. */
static int next_connection(struct server *server)
{
    while (!server->stopping) {
        int fd = attune_accept4_timed(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC,
                                      ATTUNE_FOREVER);
        if (fd >= 0)
            return fd;
        switch (errno) {
        case EMFILE:
        case ENFILE:
        case ENOBUFS:
        case ENOMEM:
            server->counters.no_descriptors++;
            attune_sleep_for(ACCEPT_PAUSE);
            break;
        case EBADF:
        case EINVAL:
        case ENOTSOCK:
        case EOPNOTSUPP:
        case EFAULT:
        case EPERM:
            if (!server->stopping) {
                fprintf(stderr, "webserver: accept: %s\n", strerror(errno));
                server->failed = true;
            }
            return -1;
        /* the client's or the network's trouble: EAGAIN, ECONNABORTED, EPROTO, EHOSTUNREACH... */
        default:
            break;
        }
    }
    return -1;
}

static void *accept_connections(void *argument)
{
    struct server *server = argument;
    for (;;) {
        attune_semaphore_wait(&server->idle);
        int fd = next_connection(server);
        if (fd < 0)
            return NULL;
        struct handler *handler = take_idle(server);
        if (handler == NULL) { /* stopping: the idle have been told to end */
            attune_close(fd);
            return NULL;
        }
        server->counters.connections++;
        server->imports.descriptors_left--;
        handler->fd = fd;
        handler->imports.started = attune_now();
        attune_semaphore_post(&handler->work);
    }
}

/* ---- Making room ---- */

static bool a_client_waits(struct server *server)
{
    struct pollfd listener = {.fd = server->listener, .events = POLLIN};
    return attune_poll(&listener, 1, 0) > 0;
}

static void end_quiet_connections(struct server *server)
{
    int64_t now = attune_now();
    for (struct handler *h = server->quietest; h != NULL && now - h->quiet_since >= QUIET_SPARED;
         h = h->newer) {
        connection_end_quiet(h);
        server->counters.reclaimed++;
    }
}

void pool_make_room(struct server *server)
{
    bool none_accepted = server->counters.connections == server->connections_before;
    server->connections_before = server->counters.connections;
    server->starved = none_accepted && server->imports.idle_handlers == 0 && a_client_waits(server);
    if (server->starved)
        end_quiet_connections(server);
}

/* ---- Starting and stopping ---- */

bool pool_start(struct server *server)
{
    size_t count = (size_t)server->options.handlers, room = (size_t)server->options.head_limit;
    room += server->proxy.on ? PROXY_BODY_ROOM : 0;
    server->handlers = calloc(count, sizeof *server->handlers);
    server->buffers = calloc(count, room);
    if (server->handlers == NULL || server->buffers == NULL) {
        fputs("webserver: out of memory for the handlers\n", stderr);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct handler *handler = &server->handlers[i];
        handler->server = server;
        handler->fd = -1;
        handler->buffer = server->buffers + i * room;
        handler->room = room;
        struct attune_attributes attributes = {
            .name = "handler",
            .stack_size = STACK_SIZE,
            .userdata = &handler->imports,
        };
        if (attune_create(&handler->thread, &attributes, handle, handler) != 0) {
            fprintf(stderr, "webserver: handler %zu of %zu: %s\n", i + 1, count, strerror(errno));
            return false;
        }
    }
    server->acceptor_imports.acceptor = true;
    struct attune_attributes attributes = {.name = "acceptor",
                                           .userdata = &server->acceptor_imports};
    if (attune_create(&server->acceptor, &attributes, accept_connections, server) != 0) {
        fprintf(stderr, "webserver: acceptor: %s\n", strerror(errno));
        return false;
    }
    return true;
}

/* Until all have ended, or the timeout. Returns how many have not. */
static int await_end(struct server *server, int left, int64_t timeout)
{
    int64_t deadline = attune_now() + timeout;
    while (left > 0) {
        int64_t patience = timeout < 0 ? ATTUNE_FOREVER : deadline - attune_now();
        if (timeout >= 0 && patience <= 0)
            patience = 0;
        if (attune_semaphore_wait_timed(&server->ended, patience) != 0)
            break;
        left--;
    }
    return left;
}

void pool_stop(struct server *server)
{
    server->stopping = true;
    attune_close(server->listener);
    attune_semaphore_post(&server->idle); /* the acceptor may be waiting for a handler */
    for (struct handler *idle; (idle = take_idle(server)) != NULL;)
        attune_semaphore_post(&idle->work);
    /* Or the scheduler keeps it from running until these say that there is something for it to do.
     */
    server->imports.idle_handlers = server->imports.descriptors_left = 1;
    for (struct handler *h = server->quietest; h != NULL; h = h->newer)
        connection_end_quiet(h);
    int left = await_end(server, server->options.handlers, server->options.grace);
    for (int i = 0; left > 0 && i < server->options.handlers; i++) {
        struct handler *handler = &server->handlers[i];
        if (!handler->ended && handler->fd >= 0) {
            shutdown(handler->fd, SHUT_RDWR);
            if (handler->link != NULL)
                shutdown(handler->link->fd, SHUT_RDWR);
            server->counters.aborted++;
        }
    }
    await_end(server, left, ATTUNE_FOREVER);
    for (int i = 0; i < server->options.handlers; i++)
        attune_join(server->handlers[i].thread, NULL);
    attune_join(server->acceptor, NULL);
    free(server->handlers);
    free(server->buffers);
}
