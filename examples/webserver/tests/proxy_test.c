/* Tests of what a proxy computes without a connection: bodies, what may be kept, the cache, the
 * heads that it sends on. Built with the address and undefined-behaviour sanitizers. Bytes to read
 * lie in allocations of exactly their size, so that reading beyond them ends the test. */
#define _GNU_SOURCE
#include "body.h"
#include "cache.h"
#include "forward.h"
#include "freshness.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

__attribute__((format(printf, 2, 3))) static void expect(bool holds, const char *form, ...)
{
    if (holds)
        return;
    va_list arguments;
    va_start(arguments, form);
    fputs("FAILED ", stdout);
    vprintf(form, arguments);
    putchar('\n');
    va_end(arguments);
    failures++;
}

static struct text text(const char *words)
{
    return (struct text){words, strlen(words)};
}

/* ---- Bodies ---- */

/* Feeds bytes in pieces of `piece`; returns how the body ended, what it held, and how many bytes
 * were left. */
static enum body_found read_body(struct body body, struct text bytes, size_t piece, char *held,
                                 size_t *left)
{
    size_t size = 0, at = 0;
    for (;;) {
        size_t some = bytes.size - at < piece ? bytes.size - at : piece;
        char *exact = malloc(some != 0 ? some : 1);
        memcpy(exact, bytes.at + at, some);
        struct text rest = {exact, some}, content;
        enum body_found found;
        while ((found = body_take(&body, &rest, &content)) == BODY_CONTENT) {
            memcpy(held + size, content.at, content.size);
            size += content.size;
        }
        held[size] = 0;
        at += some - rest.size;
        free(exact);
        *left = bytes.size - at;
        if (found != BODY_MORE || at == bytes.size)
            return found;
    }
}

static void expect_body(struct body body, const char *bytes, enum body_found end, const char *held,
                        size_t left)
{
    for (size_t piece = 1; piece <= strlen(bytes) + 1; piece++) {
        char got[256];
        size_t behind;
        enum body_found found = read_body(body, text(bytes), piece, got, &behind);
        bool same = found == end && (end == BODY_BAD || (strcmp(got, held) == 0 && behind == left));
        expect(same, "body %s in pieces of %zu: %d \"%s\" and %zu left", bytes, piece, found, got,
               behind);
    }
}

static void bodies(void)
{
    expect_body(body_of_length(5), "helloGET", BODY_END, "hello", 3);
    expect_body(body_of_length(5), "hell", BODY_MORE, "hell", 0);
    expect_body(body_of_length(0), "GET", BODY_END, "", 3);
    expect_body(body_until_close(), "hello", BODY_MORE, "hello", 0);
    struct body chunks = body_of_chunks();
    expect_body(chunks, "5\r\nhello\r\n0\r\n\r\nGET", BODY_END, "hello", 3);
    expect_body(chunks, "a;x=\"y\"\r\n0123456789\r\n1\r\nX\r\n00\r\nT: v\r\nU: w\r\n\r\n", BODY_END,
                "0123456789X", 0);
    expect_body(chunks, "A\r\n0123456789\r\n", BODY_MORE, "0123456789", 0);
    expect_body(chunks, "0\r\n\r\n", BODY_END, "", 0);
    static const char *const bad[] = {
        "\r\n",          "x\r\n",     "-1\r\n",  "5\nhello", "1\r\nab\r\n",
        "1\r\na\rb",     "1\r\na\nb", "0\r\n\n", "0\r\n\rx", "ffffffffffffffff\r\n",
        "1\r\na\r\n\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_body(chunks, bad[i], BODY_BAD, "", 0);
    char endless[5000];
    memset(endless, 'x', sizeof endless);
    memcpy(endless, "1;", 2);
    endless[sizeof endless - 1] = 0;
    expect_body(chunks, endless, BODY_BAD, "", 0);
}

/* ---- What may be kept ---- */

#define NOW    784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define DATE   "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define BEFORE "Date: Sun, 06 Nov 1994 08:49:07 GMT\r\n"

static struct freshness freshness(const char *status, const char *fields, int64_t delay)
{
    char head[512];
    snprintf(head, sizeof head, "HTTP/1.1 %s X\r\n%s\r\n", status, fields);
    struct http_reply reply;
    expect(http_read_reply(head, strlen(head), &reply), "no reply: %s", head);
    return freshness_of(&reply, NOW, delay);
}

static void expect_kept(const char *fields, int64_t lifetime, int64_t age)
{
    struct freshness got = freshness("200", fields, 0);
    expect(got.storable && got.lifetime == lifetime && got.age == age,
           "%s: storable %d, %lld s of age %lld", fields, got.storable, (long long)got.lifetime,
           (long long)got.age);
}

static void expect_not_kept(const char *fields)
{
    expect(!freshness("200", fields, 0).storable, "kept: %s", fields);
}

static void what_is_kept(void)
{
    expect_kept(DATE "Cache-Control: max-age=60\r\n", 60, 0);
    expect_kept(BEFORE "Cache-Control: public, MAX-AGE=60\r\n", 60, 30);
    expect_kept(DATE "Cache-Control: max-age=60\r\nCache-Control: s-maxage=\"90\"\r\n", 90, 0);
    expect_kept(DATE "Cache-Control: max-age=60, max-age=9\r\n", 9, 0);
    expect_kept(DATE "Age: 40\r\nCache-Control: max-age=60\r\n", 60, 40);
    expect_kept(DATE "Cache-Control: x=\"a, no-store\", max-age=9999999999\r\n", 1LL << 31, 0);
}

static void what_is_kept_by_expires(void)
{
    expect_kept(DATE "Expires: Sun, 06 Nov 1994 08:50:37 GMT\r\n", 60, 0);
    expect_kept(BEFORE "Expires: Sun, 06 Nov 1994 08:50:07 GMT\r\n", 60, 30);
    expect_not_kept(DATE "Expires: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    expect_not_kept(DATE "Expires: 0\r\n");
    expect_not_kept(DATE "Expires: Sun, 06 Nov 1994 08:50:37 GMT\r\nCache-Control: max-age=0\r\n");
}

static void what_is_not_kept(void)
{
    static const char *const fields[] = {
        DATE,
        DATE "Cache-Control: public\r\n",
        DATE "Cache-Control: max-age=60, no-store\r\n",
        DATE "Cache-Control: max-age=60, No-Cache\r\n",
        DATE "Cache-Control: max-age=60, private=\"x, y\"\r\n",
        DATE "Cache-Control: max-age=sixty\r\n",
        DATE "Cache-Control: max-age=60\r\nVary: Accept\r\n",
        DATE "Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n",
        DATE "Cache-Control: max-age=60\r\nAge: 60\r\n",
        BEFORE "Cache-Control: max-age=30\r\n",
        "Date: soon\r\nCache-Control: max-age=60\r\n",
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        expect_not_kept(fields[i]);
    expect(!freshness("206", DATE "Cache-Control: max-age=60\r\n", 0).storable, "kept: 206");
    expect(!freshness("404", DATE "Cache-Control: max-age=60\r\n", 0).storable, "kept: 404");
    expect(freshness("200", DATE "Cache-Control: max-age=60\r\n", 7).age == 7,
           "a reply that took 7 s is 7 s old");
}

static struct demand demand(const char *fields)
{
    char head[512];
    snprintf(head, sizeof head, "GET / HTTP/1.1\r\nHost: x\r\n%s\r\n", fields);
    struct http_request request;
    expect(http_read_request(head, strlen(head), 100, &request) == 200, "no request: %s", head);
    return demand_of(&request);
}

static void demands(void)
{
    struct demand plain = demand("Accept: */*\r\n");
    expect(!plain.passes && !plain.renews && !plain.only_kept && plain.max_age == INT64_MAX &&
               plain.min_fresh == 0,
           "a plain request demands something");
    static const char *const passing[] = {"Authorization: x\r\n", "Range: bytes=0-1\r\n",
                                          "If-None-Match: \"a\"\r\n", "Cache-Control: no-store\r\n",
                                          "Content-Length: 4\r\n"};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++)
        expect(demand(passing[i]).passes, "does not pass: %s", passing[i]);
    expect(demand("Cache-Control: no-cache\r\n").renews, "no-cache");
    expect(demand("Pragma: no-cache\r\n").renews, "Pragma");
    expect(!demand("Pragma: no-cache\r\nCache-Control: max-age=1\r\n").renews, "both");
    expect(demand("Cache-Control: only-if-cached\r\n").only_kept, "only-if-cached");
    expect(demand("Cache-Control: max-age=5, min-fresh=7\r\n").max_age == 5, "max-age");
    expect(demand("Cache-Control: max-age=5, min-fresh=7\r\n").min_fresh == 7, "min-fresh");
}

/* ---- The cache ---- */

/* Keeps a reply of `size` bytes that is fresh until `until`. False: there was no room. */
static bool put(struct cache *cache, const char *target, size_t size, int64_t until)
{
    struct cache_key key = cache_key(cache, text("host"), text(target));
    struct object *object = cache_create(cache, &key, text("HTTP/1.1 200 OK\r\n"), size);
    if (object == NULL)
        return false;
    char *body = malloc(size + 1);
    memset(body, target[1], size);
    bool fine = cache_append(cache, object, (struct text){body, size});
    free(body);
    object->fresh_until = until;
    if (fine)
        cache_list(cache, object);
    cache_release(cache, object);
    return fine;
}

static struct object *get(struct cache *cache, const char *host, const char *target, int64_t now)
{
    struct cache_key key = cache_key(cache, text(host), text(target));
    return cache_find(cache, &key, now);
}

static bool has(struct cache *cache, const char *host, const char *target, int64_t now)
{
    struct object *object = get(cache, host, target, now);
    if (object != NULL)
        cache_release(cache, object);
    return object != NULL;
}

static void the_cache_finds_what_is_fresh(void)
{
    struct cache cache;
    expect(cache_start(&cache, 100000, 50000), "the cache does not start");
    expect(put(&cache, "/a", 1000, 10), "/a is not kept");
    expect(has(&cache, "HOST", "/a", 9), "/a is not found");
    expect(!has(&cache, "host", "/A", 9) && !has(&cache, "other", "/a", 9), "too much is found");
    expect(put(&cache, "/a", 2000, 20) && cache.count == 1, "/a is kept twice");
    expect(has(&cache, "host", "/a", 19), "the newer /a is not found");
    expect(!has(&cache, "host", "/a", 20) && cache.count == 0 && cache.bytes == 0,
           "what is stale stays");
    expect(!put(&cache, "/b", 50001, 10) && cache.bytes == 0, "beyond the limit of one");
    cache_end(&cache);
}

static void the_cache_keeps_its_bound(void)
{
    struct cache cache;
    cache_start(&cache, 10000, 10000);
    expect(put(&cache, "/a", 3000, 10) && put(&cache, "/b", 3000, 10), "two do not fit");
    expect(has(&cache, "host", "/a", 0), "/a is not found");
    expect(put(&cache, "/c", 4000, 10) && put(&cache, "/d", 100, 10), "/c and /d are not kept");
    expect(!has(&cache, "host", "/b", 0) && has(&cache, "host", "/a", 0) && cache.evicted == 1,
           "not the one that was asked for last goes");
    /* What is in use keeps its memory, and counts. */
    struct object *a = get(&cache, "host", "/a", 0);
    struct object *c = get(&cache, "host", "/c", 0);
    expect(!put(&cache, "/e", 9000, 10), "/e fits beside what is in use");
    struct cache_key key = cache_key(&cache, text("host"), text("/a"));
    cache_remove(&cache, &key);
    expect(!has(&cache, "host", "/a", 0) && a->body[2999] == 'a', "/a is gone too early");
    cache_release(&cache, a);
    cache_release(&cache, c);
    expect(put(&cache, "/e", 9000, 10) && cache.count == 1, "/e does not fit");
    expect(cache.bytes <= cache.limit, "%zu bytes of %zu", cache.bytes, cache.limit);
    cache_end(&cache);
    expect(cache.bytes == 0, "%zu bytes are left at the end", cache.bytes);
}

static void bodies_of_unknown_size_grow_to_the_limit(void)
{
    struct cache cache;
    cache_start(&cache, 1000000, 20000);
    struct cache_key key = cache_key(&cache, text("host"), text("/x"));
    struct object *object = cache_create(&cache, &key, text("x\r\n"), 0);
    char piece[1000] = {0};
    int pieces = 0;
    while (cache_append(&cache, object, (struct text){piece, sizeof piece}))
        pieces++;
    expect(pieces == 20 && object->body_size == 20000, "%d pieces", pieces);
    cache_release(&cache, object);
    expect(cache.bytes == 0, "an object that is not listed stays");
    cache_end(&cache);
}

/* ---- Heads ---- */

static void expect_request(const char *sent, const char *wanted)
{
    struct http_request request;
    char got[1024] = "";
    struct head head = {.at = got, .room = sizeof got};
    expect(http_read_request(sent, strlen(sent), 100, &request) == 200, "no request: %s", sent);
    forward_request(&head, &request, "1.2.3.4");
    expect(!head.full && strcmp(got, wanted) == 0, "%s\n  became %s\n  not %s", sent, got, wanted);
}

static void requests_are_passed_on(void)
{
    expect_request("GET /a?b HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n",
                   "GET /a?b HTTP/1.1\r\nHost: x\r\nAccept: */*\r\nX-Forwarded-For: 1.2.3.4\r\n"
                   "Via: 1.1 attune-webserver\r\n\r\n");
    expect_request("GET http://y HTTP/1.1\r\nHost: x\r\n\r\n",
                   "GET / HTTP/1.1\r\nHost: y\r\nX-Forwarded-For: 1.2.3.4\r\n"
                   "Via: 1.1 attune-webserver\r\n\r\n");
    expect_request("GET / HTTP/1.0\r\nConnection: keep-alive, X-One\r\nX-One: 1\r\nx-one-two: 2\r\n"
                   "Keep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\nX-Forwarded-For: 9.9.9.9\r\n"
                   "Via: 1.0 other\r\n\r\n",
                   "GET / HTTP/1.1\r\nHost: \r\nx-one-two: 2\r\nVia: 1.0 other\r\n"
                   "X-Forwarded-For: 9.9.9.9, 1.2.3.4\r\nVia: 1.0 attune-webserver\r\n\r\n");
    expect_request("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0005\r\nExpect: "
                   "100-continue\r\n\r\n",
                   "POST / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.2.3.4\r\n"
                   "Via: 1.1 attune-webserver\r\nContent-Length: 5\r\n\r\n");
    expect_request("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
                   "POST / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.2.3.4\r\n"
                   "Via: 1.1 attune-webserver\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static void replies_are_passed_on(void)
{
    const char *sent = "HTTP/1.1 200 Very well\r\nServer: s\r\nConnection: close, X-Hop\r\n"
                       "X-Hop: 1\r\nAge: 7\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct http_reply reply;
    char got[512], cut[20];
    expect(http_read_reply(sent, strlen(sent), &reply) && !reply.keep_alive && reply.chunked,
           "no reply");
    struct head head = {.at = got, .room = sizeof got};
    forward_reply(&head, &reply, false);
    expect(strcmp(got, "HTTP/1.1 200 Very well\r\nServer: s\r\nAge: 7\r\n"
                       "Via: 1.1 attune-webserver\r\n") == 0,
           "became %s", got);
    head = (struct head){.at = got, .room = sizeof got};
    forward_reply(&head, &reply, true);
    expect(strstr(got, "Age") == NULL, "keeps its age: %s", got);
    head = (struct head){.at = cut, .room = sizeof cut};
    forward_reply(&head, &reply, false);
    expect(head.full && head.size < sizeof cut, "what does not fit is not noticed");
}

static void replies_of_two_meanings_are_refused(void)
{
    static const char *const bad[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000\r\n\r\n",
        "HTTP/1.1 099 X\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct http_reply reply;
        expect(!http_read_reply(bad[i], strlen(bad[i]), &reply), "accepted: %s", bad[i]);
    }
}

int main(void)
{
    bodies();
    what_is_kept();
    what_is_kept_by_expires();
    what_is_not_kept();
    demands();
    the_cache_finds_what_is_fresh();
    the_cache_keeps_its_bound();
    bodies_of_unknown_size_grow_to_the_limit();
    requests_are_passed_on();
    replies_are_passed_on();
    replies_of_two_meanings_are_refused();
    printf("%s\n", failures == 0 ? "proxy: all fine" : "proxy: FAILED");
    return failures != 0;
}
