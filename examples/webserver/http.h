/* HTTP/1.1 on bytes: finds where a head ends, reads the heads of requests and of replies. Pure: no
 * input or output, no allocation, no time.
 *
 * Invariant: nothing is read beyond the given size, whatever the bytes; what is accepted has
 * exactly one meaning (no folded lines, no two lengths, no length beside a transfer coding), so
 * that two servers in a row cannot disagree on where a message ends. */
#ifndef WEBSERVER_HTTP_H
#define WEBSERVER_HTTP_H

#include "text.h"

enum http_scan {
    HTTP_INCOMPLETE, /* no end of the head in sight yet */
    HTTP_COMPLETE,
    HTTP_GARBAGE /* bytes that no head contains: not worth waiting for more */
};

/* Looks for the empty line that ends a head. *scanned is 0 at first and remembers how far earlier
 * calls came, so that a client that sends byte by byte costs no more than one that does not. On
 * HTTP_COMPLETE *scanned is the head's size. */
enum http_scan http_scan_head(const char *bytes, size_t size, size_t *scanned);

/* A head with more fields is refused. */
#define HTTP_FIELDS 100

struct http_request {
    bool head_only; /* HEAD: the reply has no body */
    bool keep_alive;
    bool expects_continue; /* the client waits for permission before it sends the body */
    bool chunked;          /* the body's size shows as it comes */
    uint64_t body_size;    /* bytes that follow the head; 0 if chunked */
    int minor;             /* of the version: 1.minor */
    /* parts of the head: the method, the host without a scheme, path and query, all fields */
    struct text method, host, target, fields;
    /* http_parse: decoded, begins with '/', without empty, "." and ".." segments; ends in 0, inside
     * the head */
    const char *path;
};

/* Reads the head of `size` bytes that http_scan_head found, for any method and target. Returns 200,
 * or the status to refuse it with: 400, 414, 431, 501, 505; the fields of request are then
 * meaningless. */
int http_read_request(const char *head, size_t size, size_t target_limit,
                      struct http_request *request);

/* The same for a server of files, which knows GET and HEAD of a path without a body of unknown
 * size; overwrites the head. Also returns 405. */
int http_parse(char *head, size_t size, size_t target_limit, struct http_request *request);

struct http_reply {
    int status; /* 100 to 999 */
    int minor;
    bool keep_alive;
    bool has_length, chunked; /* never both; neither: the body ends with the connection */
    uint64_t length;
    struct text reason, fields;
};

/* Reads the head of a reply. False: it is none, or it has two meanings. */
bool http_read_reply(const char *head, size_t size, struct http_reply *reply);

/* Decodes %XX in the path of `size` bytes and removes empty, "." and ".." segments, in place; the
 * result ends in 0, so one byte beyond must be writable. False: a bad escape, an encoded 0, or a
 * path that leaves the root. */
bool http_normalise_path(char *path, size_t size);

/* The reason phrase of a status that this server sends. */
const char *http_reason(int status);

/* Content type by the extension of a file's name. */
const char *http_content_type(const char *path);

#endif
