/* The heads that a proxy sends on: what the other side said, without what concerns one connection
 * only (RFC 9110, 7.6.1), and with what a proxy adds. Pure. */
#ifndef WEBSERVER_FORWARD_H
#define WEBSERVER_FORWARD_H

#include "http.h"

/* A head that is being written. */
struct head {
    char *at;
    size_t size, room;
    bool full; /* something did not fit */
};

__attribute__((format(printf, 2, 3))) void head_add(struct head *head, const char *format, ...);

/* A request, complete, for a connection that stays open. `client` is the address of the client's.
 */
void forward_request(struct head *head, const struct http_request *request, const char *client);

/* Status line and fields of a reply, each with its line end. Without Content-Length, Age where
 * `kept`, and the empty line: these depend on how and when it is sent on. */
void forward_reply(struct head *head, const struct http_reply *reply, bool kept);

#endif
