/* See upstream.h. */
#define _GNU_SOURCE
#include "upstream.h"

#include <attune.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Interim replies before the one that counts. */
#define MAX_INTERIM 8

bool upstream_find(struct upstream *upstream, const char *name)
{
    const char *colon = strrchr(name, ':');
    char host[256];
    size_t size = colon != NULL ? (size_t)(colon - name) : 0;
    if (size == 0 || size >= sizeof host) {
        fprintf(stderr, "webserver: --upstream %s: wants HOST:PORT\n", name);
        return false;
    }
    memcpy(host, name, size);
    host[size] = 0;
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int error = getaddrinfo(host, colon + 1, &hints, &found);
    if (error != 0) {
        fprintf(stderr, "webserver: --upstream %s: %s\n", name, gai_strerror(error));
        return false;
    }
    upstream->name = name;
    memcpy(&upstream->address, found->ai_addr, sizeof upstream->address);
    freeaddrinfo(found);
    return true;
}

void upstream_end(struct upstream *upstream)
{
    for (struct link *link; (link = upstream->idle) != NULL;) {
        upstream->idle = link->below;
        upstream_drop(link);
    }
    upstream->idle_count = 0;
}

/* ---- Connections ---- */

/* An upstream that has ended an idle connection, or sent what nobody asked for, is not waited for.
 */
static bool still_open(const struct link *link)
{
    char byte;
    ssize_t got = recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

static struct link *take_idle(struct upstream *upstream)
{
    for (struct link *link; (link = upstream->idle) != NULL;) {
        upstream->idle = link->below;
        upstream->idle_count--;
        if (still_open(link))
            return link;
        upstream_drop(link);
    }
    return NULL;
}

/* The trouble behind errno. */
static struct trouble trouble_of_errno(void)
{
    switch (errno) {
    case ETIMEDOUT:
        return (struct trouble){504, "the upstream does not answer in time"};
    case ECONNREFUSED:
        return (struct trouble){502, "the upstream refuses connections"};
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EADDRNOTAVAIL:
        return (struct trouble){503, "the proxy has no connection to the upstream left"};
    case ENETUNREACH:
    case EHOSTUNREACH:
        return (struct trouble){502, "the upstream cannot be reached"};
    default:
        return (struct trouble){502, "the connection to the upstream broke"};
    }
}

static bool connect_link(struct upstream *upstream, struct link *link)
{
    int on = 1;
    link->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->fd < 0)
        return false;
    upstream->connections++;
    return setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
           attune_connect_timed(link->fd, (const struct sockaddr *)&upstream->address,
                                sizeof upstream->address, upstream->timeout) == 0;
}

struct link *upstream_connect(struct upstream *upstream, bool used_will_do, struct trouble *trouble)
{
    struct link *link = used_will_do ? take_idle(upstream) : NULL;
    if (link != NULL)
        return link;
    link = malloc(sizeof *link);
    if (link == NULL) {
        errno = ENOMEM;
        *trouble = trouble_of_errno();
        return NULL;
    }
    link->used_before = false;
    link->begin = link->end = 0;
    if (connect_link(upstream, link))
        return link;
    *trouble = trouble_of_errno();
    upstream_drop(link);
    return NULL;
}

void upstream_keep(struct upstream *upstream, struct link *link)
{
    /* Bytes behind the reply belong to no request. */
    if (link->begin < link->end || upstream->idle_count == UPSTREAM_KEPT) {
        upstream_drop(link);
        return;
    }
    link->used_before = true;
    link->begin = link->end = 0;
    link->below = upstream->idle;
    upstream->idle = link;
    upstream->idle_count++;
}

void upstream_drop(struct link *link)
{
    if (link->fd >= 0)
        attune_close(link->fd);
    free(link);
}

/* ---- Sending and receiving ---- */

bool upstream_send(struct upstream *upstream, struct link *link, struct iovec *parts, int count,
                   struct trouble *trouble)
{
    int64_t deadline = attune_now() + upstream->timeout;
    while (count > 0) {
        if (parts->iov_len == 0) {
            parts++;
            count--;
            continue;
        }
        int64_t patience = deadline - attune_now();
        errno = ETIMEDOUT;
        ssize_t sent = patience > 0 ? attune_writev_timed(link->fd, parts, count, patience) : -1;
        if (sent < 0) {
            *trouble = trouble_of_errno();
            return false;
        }
        for (size_t left = (size_t)sent; left > 0;) {
            size_t some = left < parts->iov_len ? left : parts->iov_len;
            parts->iov_base = (char *)parts->iov_base + some;
            parts->iov_len -= some;
            left -= some;
            if (parts->iov_len == 0 && left > 0) {
                parts++;
                count--;
            }
        }
    }
    return true;
}

/* Adds to the buffer. 1, 0 or -1 as upstream_receive. */
static int receive(struct link *link, int64_t patience, struct trouble *trouble)
{
    errno = ETIMEDOUT;
    ssize_t got = patience > 0 ? attune_recv_timed(link->fd, link->buffer + link->end,
                                                   sizeof link->buffer - link->end, 0, patience)
                               : -1;
    if (got < 0)
        *trouble = trouble_of_errno();
    else
        link->end += (size_t)got;
    return got > 0 ? 1 : (int)got;
}

int upstream_receive(struct upstream *upstream, struct link *link, struct trouble *trouble)
{
    link->begin = link->end = 0;
    return receive(link, upstream->timeout, trouble);
}

/* One head, interim or not, at link->begin. */
static bool read_one_head(struct link *link, int64_t deadline, struct http_reply *reply,
                          bool *began, struct trouble *trouble)
{
    static const struct trouble garbage = {502, "the upstream's reply is no HTTP"};
    static const struct trouble ended = {502, "the upstream ended the connection without a reply"};
    size_t scanned = 0;
    for (;;) {
        enum http_scan scan =
            http_scan_head(link->buffer + link->begin, link->end - link->begin, &scanned);
        if (scan == HTTP_COMPLETE && scanned <= LINK_HEAD_LIMIT)
            break;
        if (scan == HTTP_GARBAGE || link->end >= LINK_HEAD_LIMIT) {
            *trouble = garbage;
            return false;
        }
        int got = receive(link, deadline - attune_now(), trouble);
        if (got == 0)
            *trouble = ended;
        if (got <= 0)
            return false;
        *began = true;
    }
    bool fine = http_read_reply(link->buffer + link->begin, scanned, reply);
    link->begin += scanned;
    if (!fine)
        *trouble = garbage;
    return fine;
}

bool upstream_read_head(struct upstream *upstream, struct link *link, struct http_reply *reply,
                        bool *began, struct trouble *trouble)
{
    int64_t deadline = attune_now() + upstream->timeout;
    *began = false;
    for (int interim = 0; interim <= MAX_INTERIM; interim++) {
        if (!read_one_head(link, deadline, reply, began, trouble))
            return false;
        if (reply->status >= 200)
            return true;
    }
    *trouble = (struct trouble){502, "the upstream sends interim replies without end"};
    return false;
}
