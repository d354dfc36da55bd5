/* The server behind a proxy: connections to it, used again and again, with every wait bounded.
 *
 * Invariant: a link is either idle, open and without a byte unread, or belongs to one thread, which
 * ends with upstream_keep or upstream_drop. Times are nanoseconds, sizes bytes. */
#ifndef WEBSERVER_UPSTREAM_H
#define WEBSERVER_UPSTREAM_H

#include "http.h"

#include <netinet/in.h>
#include <sys/uio.h>

/* How much is received at a time, the longest head of a reply, and room for a head to send. */
#define LINK_BUFFER     32768
#define LINK_HEAD_LIMIT 16384
#define LINK_SCRATCH    (LINK_HEAD_LIMIT + 2048)

/* Links that stay open while nobody needs them. */
#define UPSTREAM_KEPT 64

struct link {
    int fd;
    bool used_before; /* the upstream may be about to end it */
    struct link *below;
    size_t begin, end; /* what has been received and not yet taken, in `buffer` */
    char buffer[LINK_BUFFER];
    char scratch[LINK_SCRATCH]; /* for the head that the exchange sends */
};

struct upstream {
    const char *name; /* as the user gave it */
    struct sockaddr_in address;
    int64_t timeout; /* for a connection to come about, a head to be complete, more to come */
    struct link *idle;
    int idle_count;
    uint64_t connections; /* made since the start */
};

/* What went wrong, as the client is to be told. */
struct trouble {
    int status;         /* 502, 503 or 504 */
    const char *reason; /* a literal */
};

/* "HOST:PORT", a name or an address; asks the system's resolver. False, with a message on stderr:
 * no such host or port. */
bool upstream_find(struct upstream *upstream, const char *name);

void upstream_end(struct upstream *upstream);

/* A link for one exchange: an idle one if `used_will_do` and there is one, else a new one. NULL
 * with *trouble. */
struct link *upstream_connect(struct upstream *upstream, bool used_will_do,
                              struct trouble *trouble);

/* After an exchange that is complete on both sides, on a connection that stays. */
void upstream_keep(struct upstream *upstream, struct link *link);
void upstream_drop(struct link *link);

/* Sends all of it. */
bool upstream_send(struct upstream *upstream, struct link *link, struct iovec *parts, int count,
                   struct trouble *trouble);

/* Receives the head of the reply, which *reply then points into, until the next upstream_receive.
 * Interim replies (1xx) are passed over. *began says whether any byte came. */
bool upstream_read_head(struct upstream *upstream, struct link *link, struct http_reply *reply,
                        bool *began, struct trouble *trouble);

/* Receives more. 1: some; 0: the upstream has ended; -1: with *trouble. Everything received before
 * must have been taken. */
int upstream_receive(struct upstream *upstream, struct link *link, struct trouble *trouble);

#endif
