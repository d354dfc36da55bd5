/* Tests of http.c, built with the address and undefined-behaviour sanitizers: heads and the verdict
 * on each, and damaged heads by the hundred thousand. Every head lies in an allocation of exactly
 * its size, so that reading or writing beyond it ends the test. */
#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

/* The verdict on a head: HTTP_INCOMPLETE as 0, HTTP_GARBAGE as -1, else the status. *request's path
 * is copied to path. */
static int verdict(const char *bytes, size_t size, struct http_request *request, char *path,
                   size_t room)
{
    char *exact = malloc(size != 0 ? size : 1);
    memcpy(exact, bytes, size);
    size_t scanned = 0;
    int status = 0;
    switch (http_scan_head(exact, size, &scanned)) {
    case HTTP_INCOMPLETE:
        break;
    case HTTP_GARBAGE:
        status = -1;
        break;
    case HTTP_COMPLETE:
        exact = realloc(exact, scanned);
        status = http_parse(exact, scanned, 64, request);
        if (status == 200)
            snprintf(path, room, "%s", request->path);
        break;
    }
    free(exact);
    return status;
}

static void expect(const char *head, int status, const char *path, int keep_alive)
{
    struct http_request request = {.keep_alive = false};
    char found[256] = "";
    int got = verdict(head, strlen(head), &request, found, sizeof found);
    if (got != status ||
        (status == 200 && (strcmp(found, path) != 0 || request.keep_alive != (keep_alive != 0)))) {
        printf("FAILED %s\n  got %d %s keep-alive %d, wanted %d %s %d\n", head, got, found,
               request.keep_alive, status, path, keep_alive);
        failures++;
    }
}

#define H           "Host: x\r\n"
#define GET(target) "GET " target " HTTP/1.1\r\n" H "\r\n"

static void verdicts(void)
{
    expect(GET("/"), 200, "/", 1);
    expect("\r\n\n" GET("/a"), 200, "/a", 1);
    expect("GET / HTTP/1.1\nHost: x\n\n", 200, "/", 1);
    expect(GET("/a/b.txt?q=/../.."), 200, "/a/b.txt", 1);
    expect(GET("http://x/a"), 200, "/a", 1);
    expect(GET("HTTP://x"), 200, "/", 1);
    expect(GET("http://x?y"), 200, "/", 1);
    expect(GET("http:///a"), 400, "", 0);
    expect(GET("ftp://x/a"), 400, "", 0);
    expect(GET("a"), 400, "", 0);
    expect(GET("/a\tb"), 400, "", 0);
    expect(GET("/a\x7f"), 400, "", 0);
    expect(GET("*"), 400, "", 0);
    expect("HEAD /a HTTP/1.1\r\n" H "\r\n", 200, "/a", 1);

    /* paths */
    expect(GET("/%41%62c"), 200, "/Abc", 1);
    expect(GET("//a///b//"), 200, "/a/b/", 1);
    expect(GET("/./a/./b/."), 200, "/a/b/", 1);
    expect(GET("/a/b/../c"), 200, "/a/c", 1);
    expect(GET("/a/.."), 200, "/", 1);
    expect(GET("/..a/...b"), 200, "/..a/...b", 1);
    expect(GET("/.."), 400, "", 0);
    expect(GET("/a/../../b"), 400, "", 0);
    expect(GET("/%2e%2E/b"), 400, "", 0);
    expect(GET("/a%2f..%2f..%2fb"), 400, "", 0);
    expect(GET("/%00"), 400, "", 0);
    expect(GET("/%4"), 400, "", 0);
    expect(GET("/%"), 400, "", 0);
    expect(GET("/%zz"), 400, "", 0);
    expect(GET("/a%20b"), 200, "/a b", 1);

    /* keep-alive */
    expect("GET / HTTP/1.1\r\n" H "Connection: close\r\n\r\n", 200, "/", 0);
    expect("GET / HTTP/1.1\r\n" H "connection: upgrade, CLOSE\r\n\r\n", 200, "/", 0);
    expect("GET / HTTP/1.1\r\n" H "Connection: closed\r\n\r\n", 200, "/", 1);
    expect("GET / HTTP/1.0\r\n\r\n", 200, "/", 0);
    expect("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 200, "/", 1);
    expect("GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n", 200, "/", 0);
    expect("GET / HTTP/1.7\r\n" H "\r\n", 200, "/", 1);

    /* methods and versions */
    expect("POST / HTTP/1.1\r\n" H "\r\n", 405, "", 0);
    expect("DELETE / HTTP/1.1\r\n" H "\r\n", 405, "", 0);
    expect("BREW / HTTP/1.1\r\n" H "\r\n", 501, "", 0);
    expect("get / HTTP/1.1\r\n" H "\r\n", 501, "", 0);
    expect("GET / HTTP/2.0\r\n" H "\r\n", 505, "", 0);
    expect("GET / HTTP/1.1 \r\n" H "\r\n", 400, "", 0);
    expect("GET / HTTP/1.1x\r\n" H "\r\n", 400, "", 0);
    expect("GET / http/1.1\r\n" H "\r\n", 400, "", 0);
    expect("GET /\r\n\r\n", 400, "", 0);
    expect("GET  / HTTP/1.1\r\n" H "\r\n", 400, "", 0);
    expect(" GET / HTTP/1.1\r\n" H "\r\n", 400, "", 0);
    expect("\x7f\r\n\r\n", 400, "", 0);
    expect(
        "GET /0123456789012345678901234567890123456789012345678901234567890123456789 HTTP/1.1\r\n" H
        "\r\n",
        414, "", 0);

    /* fields that two servers could read differently */
    expect("GET / HTTP/1.1\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H H "\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H "A : b\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H "A: b\r\n c\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H "A: b\rc\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H ": b\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H "b\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\n", 200, "/", 1);
    expect("GET / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 200, "/", 1);
    expect("GET / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999999\r\n\r\n", 400, "", 0);
    expect("GET / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n", 501, "", 0);
    expect("GET / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400,
           "", 0);

    /* not the end yet, and never an end */
    expect("", 0, "", 0);
    expect("GET / HTTP/1.1\r\n" H "\r", 0, "", 0);
    expect("\r\n\r\n", 0, "", 0);
    expect("\n\n\n\n\n\n\n\n\n\n", -1, "", 0);
    expect("\x16\x03\x01\x02", -1, "", 0);
}

/* A head that arrives byte by byte ends at the same place. */
static void byte_by_byte(void)
{
    static const char head[] = "\r\nGET /a HTTP/1.1\r\n" H "\r\nGET /b";
    size_t whole = 0, scanned = 0;
    http_scan_head(head, sizeof head - 1, &whole);
    for (size_t size = 0; size <= whole; size++) {
        enum http_scan result = http_scan_head(head, size, &scanned);
        if ((result == HTTP_COMPLETE) != (size == whole)) {
            printf("FAILED byte by byte: %d at %zu of %zu\n", result, size, whole);
            failures++;
        }
    }
}

static uint64_t state = 88172645463325252u;

static size_t below(size_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % limit);
}

/* Good heads, cut, joined and with bytes replaced. Whatever is accepted must have a normal path. */
static void damaged(int rounds)
{
    static const char *const seeds[] = {
        GET("/a/b/../c%20d?x#y"),
        GET("http://host/x"),
        "HEAD /%41 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "GET / HTTP/1.1\r\n" H "Content-Length: 12\r\nExpect: 100-continue\r\n\r\n",
        "POST / HTTP/1.1\r\n" H "\r\n",
        "GET /./../.%2e/%2f HTTP/1.1\r\n" H
        "Connection: a, close , b\r\nTransfer-Encoding: chunked\r\n\r\n",
    };
    static const char spice[] = "\r\n\t %/.:?#,\0\x7f\xff"
                                "aHG01";
    int accepted = 0;
    for (int round = 0; round < rounds; round++) {
        char head[512];
        size_t size = 0;
        for (size_t parts = 1 + below(2); parts > 0; parts--) {
            const char *seed = seeds[below(sizeof seeds / sizeof seeds[0])];
            size_t from = below(4) == 0 ? below(strlen(seed)) : 0, length = strlen(seed) - from;
            memcpy(head + size, seed + from, length);
            size += length;
        }
        for (size_t changes = below(4); changes > 0; changes--)
            head[below(size)] = spice[below(sizeof spice - 1)];
        struct http_request request;
        char path[256];
        if (verdict(head, size, &request, path, sizeof path) != 200)
            continue;
        accepted++;
        if (path[0] != '/' || strstr(path, "//") != NULL || strstr(path, "/../") != NULL ||
            strstr(path, "/./") != NULL) {
            printf("FAILED damaged head %d gave path %s\n", round, path);
            failures++;
        }
    }
    if (accepted < rounds / 20) {
        printf("FAILED only %d of %d damaged heads were accepted: this tests little\n", accepted,
               rounds);
        failures++;
    }
}

int main(void)
{
    verdicts();
    byte_by_byte();
    damaged(300000);
    printf("%s\n", failures == 0 ? "parser: all fine" : "parser: FAILED");
    return failures != 0;
}
