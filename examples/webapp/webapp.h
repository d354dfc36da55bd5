/* What the parts of the program share: what there is to ask for, the command line, small tools. */
#ifndef WEBAPP_H
#define WEBAPP_H

#include <stddef.h>
#include <stdint.h>

enum { DYNAMIC = 2, KINDS = 5 };

/* The published mix of a web server's requests. */
struct kind {
    const char *path;
    size_t bytes;
    int share; /* of 100 requests */
};
extern const struct kind kinds[KINDS];

struct options {
    const char *web_policy, *database_policy;
    int requests, clients;
    int work;    /* rounds of computing for each byte of a page */
    double disk; /* seconds that the database waits for its disk, on average */
    uint64_t seed;
};
extern struct options options;

/* Ends the process with a message and errno's. */
_Noreturn void fail(const char *what);

/* A random number in [0, 1): splitmix64, the same for the same seed. */
double chance(uint64_t *state);

/* Keeps the CPU busy for so many rounds; the result depends on all of them. */
uint64_t compute(uint64_t rounds);

/* Each process of the program; they return never, or when all requests are answered. */
_Noreturn void web(int listening, int database_port);
_Noreturn void database(int listening);
int clients(int web_port);

/* A connection of the loopback interface, blocking. */
int connect_to(int port);

/* Accepts for ever, as a thread of the library; each connection gets a thread. */
_Noreturn void serve(int listening, const char *name, void *(*connection)(void *));

/* What a connection's thread gets, and what it shows to the policy. */
struct connection {
    int fd;
    int phase; /* import of the web server: what it will do next */
    int disk;  /* import of the database: it is about to wait for the disk */
};

#endif
