/* The command line. Times in nanoseconds, sizes in bytes. */
#ifndef WEBSERVER_OPTIONS_H
#define WEBSERVER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct options {
    const char *host;
    int port;                    /* 0: the system chooses */
    const char *files;           /* directory; NULL: generate */
    const char *upstream;        /* "HOST:PORT" of the server behind a proxy; NULL: serve files */
    int64_t cache, object_limit; /* of a proxy: all that is kept, and one reply's body */
    int64_t upstream_timeout;
    int handlers, backlog;
    int64_t chunk; /* of a reply between two yields */
    int64_t head_limit, target_limit, body_limit;
    int64_t idle_timeout;  /* for the next request of a connection to begin */
    int64_t head_timeout;  /* for a request that has begun to arrive */
    int64_t reply_timeout; /* for a client that takes nothing */
    int64_t slowest;       /* bytes a second below which a client counts as stuck */
    int64_t grace;         /* between the signal to end and the end of replies under way */
    bool json;             /* the summary as JSON */
};

/* Returns -1 to go on, or the status to exit with. */
int options_parse(struct options *options, int argc, char **argv);

#endif
