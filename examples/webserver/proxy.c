/* See proxy.h. */
#define _GNU_SOURCE
#include "proxy.h"
#include "client.h"
#include "exchange.h"
#include "forward.h"
#include "freshness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND INT64_C(1000000000)

static bool is(const struct http_request *request, const char *method)
{
    return request->method.size == strlen(method) &&
           memcmp(request->method.at, method, request->method.size) == 0;
}

static void count_reply(struct server *server, int status)
{
    if (status == 200)
        server->counters.ok++;
    else if (status == 404)
        server->counters.not_found++;
    else
        server->counters.refused++;
}

/* Whether the connection goes on behind this reply. */
static bool stays(const struct exchange *exchange)
{
    const struct server *server = exchange->handler->server;
    return exchange->request->keep_alive && exchange->request_done && !server->stopping &&
           !server->starved;
}

static const char *connection_field(bool stays)
{
    return stays ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
}

/* The client gets a status of our own instead of a reply. */
static bool fail(struct exchange *exchange, struct trouble trouble)
{
    struct handler *handler = exchange->handler;
    if (trouble.status == 0)
        return false;
    if (trouble.status >= 500)
        handler->server->counters.failures++;
    handler->server->counters.refused++;
    return client_write_status(handler, trouble.status, trouble.reason,
                               exchange->request->head_only, stays(exchange));
}

/* The client has a part of the reply and will not get the rest. An orderly end could look like the
 * reply's. */
static bool cut(struct exchange *exchange)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    exchange->handler->server->counters.failures++;
    setsockopt(exchange->handler->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    exchange_drop(exchange);
    return false;
}

/* ---- Replies that are kept ---- */

/* Seconds since the upstream made it. */
static int64_t age_of(const struct object *object)
{
    int64_t age = (attune_now() - object->made) / SECOND;
    return age > 0 ? age : 0;
}

static bool send_object(struct exchange *exchange, const struct object *object)
{
    char tail[96];
    bool goes_on = stays(exchange);
    int size = snprintf(tail, sizeof tail, "Age: %" PRId64 "\r\nContent-Length: %zu\r\n%s\r\n",
                        age_of(object), object->body_size, connection_field(goes_on));
    struct iovec parts[] = {{(char *)(uintptr_t)object->head.at, object->head.size},
                            {tail, (size_t)size},
                            {object->body, exchange->request->head_only ? 0 : object->body_size}};
    exchange->handler->server->counters.ok++;
    return client_write_end(exchange->handler, parts, 3, goes_on);
}

/* The kept object that this request may be answered with, with a user, or NULL. */
static struct object *find_object(struct proxy *proxy, const struct cache_key *key,
                                  const struct demand *demand)
{
    int64_t now = attune_now();
    struct object *object = demand->renews ? NULL : cache_find(&proxy->cache, key, now);
    if (object != NULL && ((now - object->made) / SECOND > demand->max_age ||
                           (object->fresh_until - now) / SECOND < demand->min_fresh)) {
        cache_release(&proxy->cache, object);
        return NULL;
    }
    return object;
}

/* ---- Replies that are passed on ---- */

/* How the client learns where the reply ends. */
static bool is_chunked_on(const struct exchange *exchange)
{
    return exchange->body.form != BODY_LENGTH && exchange->request->minor > 0;
}

/* Status line and fields of the reply, into the link's scratch, which has room for what is added.
 */
static struct text reply_head(struct exchange *exchange, bool kept)
{
    struct head head = {.at = exchange->link->scratch, .room = sizeof exchange->link->scratch};
    forward_reply(&head, &exchange->reply, kept);
    if (text_value(exchange->reply.fields, "date").at == NULL)
        head_add(&head, "Date: %s\r\n", client_date(exchange->handler->server));
    return (struct text){head.at, head.size};
}

/* An object that could not be kept after all stands for the reply's fields, which are gone, and
 * knows how old it is. */
static bool send_reply_head(struct exchange *exchange, const struct object *begun, bool goes_on)
{
    const struct http_reply *reply = &exchange->reply;
    char ending[160];
    struct head tail = {.at = ending, .room = sizeof ending};
    struct text fields = begun != NULL ? begun->head : reply_head(exchange, false);
    if (begun != NULL)
        head_add(&tail, "Age: %" PRId64 "\r\n", age_of(begun));
    if (is_chunked_on(exchange))
        head_add(&tail, "Transfer-Encoding: chunked\r\n");
    else if (reply->has_length && reply->status != 204)
        head_add(&tail, "Content-Length: %" PRIu64 "\r\n", reply->length);
    head_add(&tail, "%s\r\n", connection_field(goes_on));
    struct iovec parts[] = {{(char *)(uintptr_t)fields.at, fields.size}, {ending, tail.size}};
    /* What is left of a reply of unknown length is unknown, and counts as nothing. */
    uint64_t after = exchange->body.form == BODY_LENGTH ? exchange->body.left : 0;
    return client_write(exchange->handler, parts, 2, after);
}

static bool send_piece(struct exchange *exchange, struct text content)
{
    char size[24];
    bool chunked = is_chunked_on(exchange);
    int size_size = chunked ? snprintf(size, sizeof size, "%zx\r\n", content.size) : 0;
    struct iovec parts[] = {{size, (size_t)size_size},
                            {(char *)(uintptr_t)content.at, content.size},
                            {"\r\n", chunked ? 2 : 0}};
    uint64_t after = exchange->body.form == BODY_LENGTH ? exchange->body.left : 0;
    return client_write(exchange->handler, parts, 3, after);
}

/* What tells a client of chunks that the reply is complete. Returns whether the connection goes on.
 */
static bool send_end(struct exchange *exchange, bool goes_on)
{
    struct iovec end = {"0\r\n\r\n", 5};
    return is_chunked_on(exchange) ? client_write_end(exchange->handler, &end, 1, goes_on)
                                   : goes_on;
}

/* Passes the reply on. Where it was to be kept, the object holds the beginning, and `next` is the
 * piece behind that. */
static bool relay(struct exchange *exchange, const struct object *begun, struct text next)
{
    bool ends_with_connection = exchange->body.form != BODY_LENGTH && !is_chunked_on(exchange);
    bool goes_on = stays(exchange) && !ends_with_connection;
    struct text content;
    enum body_found found;
    count_reply(exchange->handler->server, exchange->reply.status);
    bool taken = send_reply_head(exchange, begun, goes_on);
    if (taken && begun != NULL && begun->body_size > 0) /* a chunk of nothing would be the last */
        taken = send_piece(exchange, (struct text){begun->body, begun->body_size});
    if (taken && begun != NULL)
        taken = send_piece(exchange, next);
    while (taken && (found = exchange_next(exchange, &content)) == BODY_CONTENT)
        taken = send_piece(exchange, content);
    if (!taken) { /* nobody wants the rest */
        exchange_drop(exchange);
        return false;
    }
    if (found != BODY_END)
        return cut(exchange);
    exchange_finish(exchange);
    return send_end(exchange, goes_on);
}

/* ---- Fetching ---- */

/* A fetch that other threads may wait for. */
struct fetch {
    struct exchange *exchange;
    struct proxy *proxy;
    struct cache_key key;
    struct flight flight;
};

static void settle(struct fetch *fetch, struct flight_end end)
{
    flight_settle(&fetch->proxy->flights, &fetch->flight, end);
}

/* An object for the reply, without its body. NULL: the reply is not to be kept, or there is no
 * room. */
static struct object *begin_object(struct fetch *fetch)
{
    struct exchange *exchange = fetch->exchange;
    const struct http_reply *reply = &exchange->reply;
    int64_t now = attune_now();
    struct freshness freshness = freshness_of(reply, time(NULL), (now - exchange->asked) / SECOND);
    if (!freshness.storable || exchange->body.form == BODY_UNTIL_CLOSE)
        return NULL;
    if (exchange->body.left > fetch->proxy->cache.object_limit)
        return NULL;
    struct text head = reply_head(exchange, true);
    struct object *object =
        cache_create(&fetch->proxy->cache, &fetch->key, head, (size_t)exchange->body.left);
    if (object != NULL) {
        object->made = now - freshness.age * SECOND;
        object->fresh_until = object->made + freshness.lifetime * SECOND;
    }
    return object;
}

/* Reads the body into the object. *rest is a piece for which there was no room, and then the body
 * goes on behind it. BODY_CONTENT, BODY_END or BODY_BAD. */
static enum body_found fill_object(struct fetch *fetch, struct object *object, struct text *rest)
{
    struct exchange *exchange = fetch->exchange;
    struct handler *handler = exchange->handler;
    int64_t chunk = handler->server->options.chunk;
    size_t yielded = 0;
    enum body_found found;
    while ((found = exchange_next(exchange, rest)) == BODY_CONTENT) {
        if (!cache_append(&fetch->proxy->cache, object, *rest))
            break;
        /* Where the length is unknown, as much may be left as has come. */
        uint64_t left = exchange->body.form == BODY_LENGTH ? exchange->body.left : 0;
        handler->imports.remaining = (int64_t)(object->body_size + left);
        if (object->body_size - yielded >= (size_t)chunk) {
            yielded = object->body_size;
            attune_yield();
        }
    }
    return found;
}

/* Fetches the reply as a whole, keeps it and sends it. */
static bool keep(struct fetch *fetch, struct object *object)
{
    struct exchange *exchange = fetch->exchange;
    struct cache *cache = &fetch->proxy->cache;
    struct text rest;
    bool goes_on;
    switch (fill_object(fetch, object, &rest)) {
    case BODY_END:
        exchange_finish(exchange);
        cache_list(cache, object);
        settle(fetch, (struct flight_end){.landing = LANDED_KEPT, .object = object});
        goes_on = send_object(exchange, object);
        break;
    case BODY_CONTENT:
        settle(fetch, (struct flight_end){.landing = LANDED_NOT});
        goes_on = relay(exchange, object, rest);
        break;
    default:
        exchange_drop(exchange);
        settle(fetch, (struct flight_end){.landing = LANDED_FAILED,
                                          .status = exchange->trouble.status,
                                          .reason = exchange->trouble.reason});
        goes_on = fail(exchange, exchange->trouble);
    }
    cache_release(cache, object);
    return goes_on;
}

/* What another request than GET does to what is kept (RFC 9111, 4.4). */
static void invalidate(struct proxy *proxy, const struct exchange *exchange,
                       const struct cache_key *key)
{
    const struct http_request *request = exchange->request;
    bool safe = is(request, "GET") || is(request, "HEAD") || is(request, "OPTIONS");
    if (!safe && exchange->reply.status < 400)
        cache_remove(&proxy->cache, key);
}

static bool fetch(struct fetch *fetch, bool may_keep)
{
    struct exchange *exchange = fetch->exchange;
    if (!exchange_ask(exchange)) {
        settle(fetch, (struct flight_end){.landing = LANDED_FAILED,
                                          .status = exchange->trouble.status,
                                          .reason = exchange->trouble.reason});
        return fail(exchange, exchange->trouble);
    }
    invalidate(fetch->proxy, exchange, &fetch->key);
    struct object *object = may_keep ? begin_object(fetch) : NULL;
    if (object != NULL)
        return keep(fetch, object);
    settle(fetch, (struct flight_end){.landing = LANDED_NOT});
    return relay(exchange, NULL, (struct text){NULL, 0});
}

/* ---- A request ---- */

/* Answers with what another thread fetches. False: that did not come to an answer. */
static bool share(struct fetch *fetch, struct flight *flight, bool *goes_on)
{
    struct exchange *exchange = fetch->exchange;
    /* Longer than the fetch itself waits for its reply's head, so as to share its failure. */
    struct flight_end end = flight_wait(flight, 2 * fetch->proxy->upstream.timeout);
    switch (end.landing) {
    case LANDED_KEPT:
        exchange->handler->server->counters.shared++;
        *goes_on = send_object(exchange, end.object);
        cache_release(&fetch->proxy->cache, end.object);
        return true;
    case LANDED_FAILED:
        exchange->handler->server->counters.shared++;
        *goes_on = fail(exchange, (struct trouble){end.status, end.reason});
        return true;
    case LANDED_NOT:
    case LANDED_LATE:
        break;
    }
    return false;
}

static bool answer(struct fetch *it, const struct demand *demand)
{
    struct exchange *exchange = it->exchange;
    struct server *server = exchange->handler->server;
    const struct http_request *request = exchange->request;
    bool may_find = (is(request, "GET") || request->head_only) && !demand->passes;
    bool may_keep = may_find && !request->head_only && server->proxy.cache.limit > 0;
    struct object *object = may_find ? find_object(it->proxy, &it->key, demand) : NULL;
    if (object != NULL) {
        server->counters.hits++;
        bool goes_on = send_object(exchange, object);
        cache_release(&it->proxy->cache, object);
        return goes_on;
    }
    if (demand->only_kept)
        return fail(exchange, (struct trouble){504, "the request forbids to ask the upstream"});
    exchange->handler->imports.miss = true;
    struct flight *flight = may_keep ? flight_find(it->proxy->flights, &it->key) : NULL;
    bool goes_on;
    if (flight != NULL && !demand->renews && share(it, flight, &goes_on))
        return goes_on;
    server->counters.misses++;
    if (may_keep && flight_find(it->proxy->flights, &it->key) == NULL)
        flight_begin(&it->proxy->flights, &it->flight, &it->key);
    return fetch(it, may_keep);
}

bool proxy_serve(struct handler *handler, const struct http_request *request, size_t head_size)
{
    struct proxy *proxy = &handler->server->proxy;
    struct exchange exchange = {
        .handler = handler,
        .request = request,
        .head_size = head_size,
        .taken = head_size,
        .request_done = !request->chunked && request->body_size == 0,
    };
    bool goes_on;
    if (is(request, "CONNECT") || is(request, "TRACE")) {
        exchange.request_done = false;
        goes_on = fail(&exchange, (struct trouble){501, "a reverse proxy has no use for it"});
    } else {
        struct demand demand = demand_of(request);
        struct fetch it = {.exchange = &exchange,
                           .proxy = proxy,
                           .key = cache_key(&proxy->cache, request->host, request->target)};
        goes_on = answer(&it, &demand);
    }
    handler->imports.miss = false;
    handler->imports.remaining = 0;
    if (goes_on)
        client_consume(handler, exchange.taken);
    else if (!exchange.request_done || handler->filled > exchange.taken)
        client_linger(handler);
    return goes_on;
}
