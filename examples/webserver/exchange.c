/* See exchange.h. */
#define _GNU_SOURCE
#include "exchange.h"
#include "client.h"
#include "forward.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static struct upstream *upstream_of(struct exchange *exchange)
{
    return &exchange->handler->server->proxy.upstream;
}

static bool is_method(const struct http_request *request, const char *name)
{
    return request->method.size == strlen(name) &&
           memcmp(request->method.at, name, request->method.size) == 0;
}

/* Whether the request may go out twice: when a link that was idle turns out to have ended. Others
 * get a link of their own, which cannot have. */
static bool may_repeat(const struct http_request *request)
{
    return !request->chunked && request->body_size == 0 &&
           (is_method(request, "GET") || is_method(request, "HEAD") ||
            is_method(request, "OPTIONS"));
}

static void take_link(struct exchange *exchange, struct link *link)
{
    exchange->link = exchange->handler->link = link;
}

void exchange_drop(struct exchange *exchange)
{
    if (exchange->link != NULL)
        upstream_drop(exchange->link);
    take_link(exchange, NULL);
}

/* ---- The request ---- */

static void client_address(int fd, char *address, socklen_t room)
{
    struct sockaddr_in peer = {.sin_family = AF_INET};
    socklen_t size = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 ||
        inet_ntop(AF_INET, &peer.sin_addr, address, room) == NULL)
        snprintf(address, room, "unknown");
}

static bool send_head(struct exchange *exchange)
{
    struct link *link = exchange->link;
    char address[INET_ADDRSTRLEN];
    client_address(exchange->handler->fd, address, sizeof address);
    struct head head = {.at = link->scratch, .room = sizeof link->scratch};
    forward_request(&head, exchange->request, address);
    if (head.full) {
        exchange->trouble = (struct trouble){431, "too long to be passed on"};
        return false;
    }
    struct iovec part = {head.at, head.size};
    return upstream_send(upstream_of(exchange), link, &part, 1, &exchange->trouble);
}

static bool send_piece(struct exchange *exchange, struct text content)
{
    char size[24];
    bool chunked = exchange->request->chunked;
    int size_size = chunked ? snprintf(size, sizeof size, "%zx\r\n", content.size) : 0;
    struct iovec parts[] = {{size, (size_t)size_size},
                            {(char *)(uintptr_t)content.at, content.size},
                            {"\r\n", chunked ? 2 : 0}};
    return upstream_send(upstream_of(exchange), exchange->link, parts, 3, &exchange->trouble);
}

/* Receives more of the request's body, which has been read as far as it is there. */
static bool receive_body(struct exchange *exchange, int64_t patience)
{
    struct handler *handler = exchange->handler;
    handler->filled = exchange->taken = exchange->head_size;
    int got = patience > 0 ? client_receive(handler, patience) : -1;
    if (got < 0) {
        handler->server->counters.timeouts++;
        exchange->trouble = (struct trouble){408, "the request's body comes too slowly"};
    } else if (got == 0) {
        exchange->trouble = (struct trouble){0, NULL};
    }
    return got > 0;
}

/* Passes the body on. False: with trouble, the upstream's or the client's. */
static bool send_body(struct exchange *exchange)
{
    struct handler *handler = exchange->handler;
    const struct options *options = &handler->server->options;
    struct body body = exchange->request->chunked ? body_of_chunks()
                                                  : body_of_length(exchange->request->body_size);
    int64_t begun = attune_now();
    uint64_t sent = 0;
    for (;;) {
        struct text content,
            bytes = {handler->buffer + exchange->taken, handler->filled - exchange->taken};
        enum body_found found = body_take(&body, &bytes, &content);
        exchange->taken = handler->filled - bytes.size;
        switch (found) {
        case BODY_CONTENT:
            sent += content.size;
            if (sent > (uint64_t)options->body_limit) {
                exchange->trouble = (struct trouble){413, "the request's body is too long"};
                return false;
            }
            if (!send_piece(exchange, content))
                return false;
            break;
        case BODY_MORE: {
            /* The slower it may come, the longer it may take. */
            int64_t allowed =
                options->head_timeout + (int64_t)((double)sent / (double)options->slowest * 1e9);
            if (!receive_body(exchange, begun + allowed - attune_now()))
                return false;
            break;
        }
        case BODY_END:
            exchange->request_done = true;
            return !exchange->request->chunked || send_piece(exchange, (struct text){"", 0});
        case BODY_BAD:
            exchange->trouble = (struct trouble){400, "the request's body is no chunks"};
            return false;
        }
    }
}

/* ---- The reply's head ---- */

static struct body body_of_reply(const struct exchange *exchange)
{
    const struct http_reply *reply = &exchange->reply;
    if (exchange->request->head_only || reply->status == 204 || reply->status == 304)
        return body_of_length(0);
    if (reply->chunked)
        return body_of_chunks();
    return reply->has_length ? body_of_length(reply->length) : body_until_close();
}

static bool await_head(struct exchange *exchange, bool *began)
{
    if (!upstream_read_head(upstream_of(exchange), exchange->link, &exchange->reply, began,
                            &exchange->trouble))
        return false;
    exchange->body = body_of_reply(exchange);
    return true;
}

/* Once on a link. *again: nothing has come back, and another link may do better. */
static bool try_link(struct exchange *exchange, bool *again)
{
    bool began = false;
    bool used_before = exchange->link->used_before;
    exchange->asked = attune_now();
    bool sent = send_head(exchange) && send_body(exchange);
    /* An upstream may answer before it has read everything, and close. */
    bool early = !sent && exchange->trouble.status == 502 && !used_before;
    bool fine = (sent || early) && await_head(exchange, &began);
    *again = !fine && used_before && !began && exchange->trouble.status == 502;
    return fine;
}

bool exchange_ask(struct exchange *exchange)
{
    const struct http_request *request = exchange->request;
    if (request->expects_continue && (request->chunked || request->body_size > 0)) {
        struct iovec go_on = {"HTTP/1.1 100 Continue\r\n\r\n", 25};
        if (!client_write(exchange->handler, &go_on, 1, 0)) {
            exchange->trouble = (struct trouble){0, NULL};
            return false;
        }
    }
    for (bool used_will_do = may_repeat(request), again = true; again; used_will_do = false) {
        struct link *link =
            upstream_connect(upstream_of(exchange), used_will_do, &exchange->trouble);
        if (link == NULL)
            return false;
        take_link(exchange, link);
        if (try_link(exchange, &again))
            return true;
        exchange_drop(exchange);
    }
    return false;
}

/* ---- The reply's body ---- */

enum body_found exchange_next(struct exchange *exchange, struct text *content)
{
    struct link *link = exchange->link;
    for (;;) {
        struct text bytes = {link->buffer + link->begin, link->end - link->begin};
        enum body_found found = body_take(&exchange->body, &bytes, content);
        link->begin = link->end - bytes.size;
        if (found == BODY_BAD)
            exchange->trouble = (struct trouble){502, "the upstream's reply is no HTTP"};
        if (found != BODY_MORE)
            return found;
        int got = upstream_receive(upstream_of(exchange), link, &exchange->trouble);
        if (got == 0 && exchange->body.form == BODY_UNTIL_CLOSE)
            return BODY_END;
        if (got == 0)
            exchange->trouble = (struct trouble){502, "the upstream's reply ends too early"};
        if (got <= 0)
            return BODY_BAD;
    }
}

void exchange_finish(struct exchange *exchange)
{
    if (exchange->request_done && exchange->reply.keep_alive &&
        exchange->body.form != BODY_UNTIL_CLOSE)
        upstream_keep(upstream_of(exchange), exchange->link);
    else
        upstream_drop(exchange->link);
    take_link(exchange, NULL);
}
