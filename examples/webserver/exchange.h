/* One request that a proxy passes on: the request to the upstream, body and all, and back the head
 * of its reply. What then becomes of the reply's body is proxy.c's affair.
 *
 * Invariant: the request's head stays in the handler's buffer until the exchange is over; its body
 * comes and goes behind it. */
#ifndef WEBSERVER_EXCHANGE_H
#define WEBSERVER_EXCHANGE_H

#include "body.h"
#include "server.h"
#include "upstream.h"

struct exchange {
    struct handler *handler;
    const struct http_request *request;
    size_t head_size; /* of the request */
    size_t taken;     /* bytes of handler->buffer: the head, and what has been read of the body */
    bool request_done;

    struct link *link; /* NULL unless there is one */
    struct http_reply reply;
    struct body body; /* of the reply */
    int64_t asked;    /* when the request went out */

    /* status 0: the client has gone, and wants no answer */
    struct trouble trouble;
};

/* Sends the request and receives the reply's head. False: with trouble, and without a link. */
bool exchange_ask(struct exchange *exchange);

/* The next piece of the reply's body, valid until the next call. On BODY_BAD there is trouble;
 * BODY_MORE does not occur. */
enum body_found exchange_next(struct exchange *exchange, struct text *content);

/* Gives the link back once the reply has been read to its end. */
void exchange_finish(struct exchange *exchange);

/* Gives up: neither side can go on. */
void exchange_drop(struct exchange *exchange);

#endif
