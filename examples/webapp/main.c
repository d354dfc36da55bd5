/* A web server, its database and its clients, each a process.
 *
 * The two servers schedule their own user-level threads. With the node schedulers of a cluster they
 * are its nodes; without, each runs first in, first out.
 */
#define _GNU_SOURCE /* prctl, accept4 */
#include "webapp.h"
#include "attune.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BACKLOG = 1024, MOST_CONNECTIONS = 1024 };

const struct kind kinds[KINDS] = {
    {"/picture.gif", 2100, 35}, {"/style.css", 600, 20},  {"/page", 9600, 20},
    {"/photo.jpg", 26200, 15},  {"/script.js", 5900, 10},
};

struct options options = {NULL, NULL, 3000, 30, 1000, 0.012, 1};

_Noreturn void fail(const char *what)
{
    perror(what);
    exit(1);
}

double chance(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

uint64_t compute(uint64_t rounds)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (; rounds > 0; rounds--)
        sum = (sum ^ rounds) * 0x100000001b3u;
    return sum;
}

/* ---- What both servers do ---- */

_Noreturn void serve(int listening, const char *name, void *(*connection)(void *))
{
    static struct connection connections[MOST_CONNECTIONS];
    for (;;) {
        int fd = attune_accept(listening, NULL, NULL);
        if (fd < 0)
            continue;
        if (fd >= MOST_CONNECTIONS) {
            attune_close(fd);
            continue;
        }
        connections[fd] = (struct connection){.fd = fd};
        struct attune_attributes attributes = {
            .name = name, .userdata = &connections[fd], .stack_size = 64 << 10, .detached = 1};
        if (attune_create(NULL, &attributes, connection, &connections[fd]) != 0)
            attune_close(fd);
    }
}

/* ---- Sockets ---- */

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                .sin_port = htons((uint16_t)port)};
}

static int listen_at(int *port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        fail("webapp: cannot listen");
    *port = ntohs(address.sin_port);
    return fd;
}

int connect_to(int port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        fail("webapp: cannot connect");
    return fd;
}

/* ---- The command line ---- */

static const char usage[] =
    "usage: webapp [--web FILE.so --database FILE.so] [--requests N] [--clients N] [--work N]\n"
    "              [--disk S] [--seed N]\n"
    "A web server, its database and clients on the loopback interface. Says as a line of JSON how\n"
    "long replies took. --work is the rounds of computing for a byte of a page, --disk how many\n"
    "seconds the database waits for its disk.\n"
    "example: ATTUNE_CLUSTER=webapp webapp --web ./web.so --database ./database.so\n";

static _Noreturn void refuse(const char *why)
{
    fprintf(stderr, "webapp: %s\n%s", why, usage);
    exit(2);
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        char *end;
        double number = strtod(value, &end);
        int good = *value && !*end && number >= 0;
        if (!strcmp(name, "--help")) {
            fputs(usage, stdout);
            exit(0);
        }
        if (*value && !strcmp(name, "--web"))
            options.web_policy = value;
        else if (*value && !strcmp(name, "--database"))
            options.database_policy = value;
        else if (good && !strcmp(name, "--requests") && number >= 1 && number <= 1e7)
            options.requests = (int)number;
        else if (good && !strcmp(name, "--clients") && number >= 1 && number <= 500)
            options.clients = (int)number;
        else if (good && !strcmp(name, "--work") && number <= 1e6)
            options.work = (int)number;
        else if (good && !strcmp(name, "--disk") && number <= 60)
            options.disk = number;
        else if (good && !strcmp(name, "--seed") && number < 1e15)
            options.seed = (uint64_t)number;
        else
            refuse(name);
    }
    if (!options.web_policy != !options.database_policy)
        refuse("--web and --database come together");
}

/* ---- The whole ---- */

static pid_t start(const char *policy)
{
    pid_t process = fork();
    if (process < 0)
        fail("webapp: cannot start a process");
    if (process > 0)
        return process;
    /* It ends with the first process, however that ends. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    if (policy) {
        setenv("ATTUNE_SCHED", policy, 1);
    } else {
        unsetenv("ATTUNE_SCHED");
        unsetenv("ATTUNE_CLUSTER");
    }
    struct attune_options settings = {.size = sizeof(settings), .ignore_unknown_imports = 1};
    attune_init(&settings);
    return 0;
}

int main(int argc, char **argv)
{
    int web_port, database_port;
    read_options(argc, argv);
    int at_web = listen_at(&web_port), at_database = listen_at(&database_port);
    pid_t servers[2];
    if ((servers[0] = start(options.database_policy)) == 0)
        database(at_database);
    if ((servers[1] = start(options.web_policy)) == 0)
        web(at_web, database_port);
    close(at_web);
    close(at_database);
    int status = clients(web_port);
    for (int i = 0; i < 2; i++) {
        kill(servers[i], SIGKILL);
        waitpid(servers[i], NULL, 0);
    }
    return status;
}
