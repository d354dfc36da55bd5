/* The body of a message, found among the bytes of a connection: by its length, in chunks, or until
 * the connection's end. Pure: the caller brings bytes as they come, in pieces of any size.
 *
 * Invariant: nothing behind the body's last byte is taken. */
#ifndef WEBSERVER_BODY_H
#define WEBSERVER_BODY_H

#include "text.h"

enum body_form { BODY_LENGTH, BODY_CHUNKED, BODY_UNTIL_CLOSE };

struct body {
    enum body_form form;
    int state;         /* of BODY_CHUNKED: what comes next */
    uint64_t left;     /* bytes of content still to come, of the body or of the chunk */
    unsigned overhead; /* bytes of a chunk's head, or of the trailer, so far */
};

enum body_found {
    BODY_CONTENT, /* *content is the next piece, not empty */
    BODY_MORE,    /* the bytes are used up, the body is not at its end */
    BODY_END,     /* nothing is left to come */
    BODY_BAD      /* these bytes are no chunks */
};

struct body body_of_length(uint64_t length);
struct body body_of_chunks(void);
struct body body_until_close(void);

/* Takes bytes off the front of *bytes. After BODY_END and BODY_BAD do not call again. */
enum body_found body_take(struct body *body, struct text *bytes, struct text *content);

#endif
