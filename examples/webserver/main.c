/* A web server whose threads run in the order that a scheduler file says.
 *
 *     ATTUNE_SCHED=./shortest_reply.so ./webserver --port 8080
 *
 * The main thread starts the others, sees that no client waits for ever, and ends them on SIGINT or
 * SIGTERM; a second signal ends the process at once. */
#define _GNU_SOURCE
#include "pool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Descriptors that are no connections: standard streams, listener, signals, epoll, the scheduler's.
 */
#define OTHER_DESCRIPTORS 32

static bool complain(const char *what)
{
    fprintf(stderr, "webserver: %s: %s\n", what, strerror(errno));
    return false;
}

/* As many descriptors as handlers want, if the system lets us. */
static bool allow_descriptors(struct server *server)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return complain("getrlimit");
    /* A proxy's handler may have a connection to the upstream, too. */
    rlim_t each = server->proxy.on ? 2 : 1;
    rlim_t others = OTHER_DESCRIPTORS + (server->proxy.on ? UPSTREAM_KEPT : 0);
    rlim_t wanted = (rlim_t)server->options.handlers * each + others;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
            return complain("setrlimit");
        if (limit.rlim_cur < wanted)
            fprintf(stderr,
                    "webserver: only %llu descriptors for %d handlers; some will stay idle\n",
                    (unsigned long long)limit.rlim_cur, server->options.handlers);
    }
    rlim_t left = limit.rlim_cur > others + each ? (limit.rlim_cur - others) / each : 1;
    server->imports.descriptors_left = left < INT32_MAX ? (int)left : INT32_MAX;
    return true;
}

static bool listen_at(struct server *server, struct sockaddr_in *address)
{
    const struct options *options = &server->options;
    *address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)options->port)};
    if (inet_pton(AF_INET, options->host, &address->sin_addr) != 1) {
        fprintf(stderr, "webserver: --host %s: no IPv4 address\n", options->host);
        return false;
    }
    int on = 1, seconds = 1;
    socklen_t size = sizeof *address;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->listener < 0)
        return complain("socket");
    /* Accepted connections inherit TCP_NODELAY: a chunk goes out when it is written. A connection
     * is to be accepted when its request has come, and not before (TCP_DEFER_ACCEPT): silent ones
     * cost no handler for the first second or so. */
    if (setsockopt(server->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(server->listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        setsockopt(server->listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof seconds) != 0)
        return complain("setsockopt");
    if (bind(server->listener, (struct sockaddr *)address, size) != 0 ||
        listen(server->listener, options->backlog) != 0 ||
        getsockname(server->listener, (struct sockaddr *)address, &size) != 0) {
        fprintf(stderr, "webserver: listening at %s:%d: %s\n", options->host, options->port,
                strerror(errno));
        return false;
    }
    return true;
}

static void block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    sigprocmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Returns when a signal has come (true) or accepting has failed. */
static bool await_signal(struct server *server, int signals)
{
    struct signalfd_siginfo info;
    while (!server->failed) {
        ssize_t got = attune_read_timed(signals, &info, sizeof info, POOL_MAKE_ROOM_EVERY);
        if (got > 0)
            return true;
        if (errno != ETIMEDOUT)
            return complain("waiting for signals");
        pool_make_room(server);
    }
    return false;
}

/* What a proxy says beside what every server says. */
static void print_proxy_summary(const struct server *server)
{
    const struct counters *c = &server->counters;
    const struct cache *cache = &server->proxy.cache;
    const char *form =
        server->options.json
            ? ",\"hits\":%" PRIu64 ",\"misses\":%" PRIu64 ",\"shared\":%" PRIu64
              ",\"failures\":%" PRIu64 ",\"kept\":%zu,\"kept_bytes\":%zu,\"evicted\":%" PRIu64
              ",\"upstream_connections\":%" PRIu64
            : "; %" PRIu64 " from the cache, %" PRIu64 " from the upstream, %" PRIu64
              " shared another's fetch, %" PRIu64 " failed; %zu replies of %zu bytes kept, %" PRIu64
              " gave way; %" PRIu64 " connections to the upstream";
    printf(form, c->hits, c->misses, c->shared, c->failures, cache->count, cache->bytes,
           cache->evicted, server->proxy.upstream.connections);
}

static void print_summary(const struct server *server)
{
    const struct counters *c = &server->counters;
    if (server->options.json)
        printf("{\"connections\":%" PRIu64 ",\"requests\":%" PRIu64 ",\"ok\":%" PRIu64
               ",\"not_found\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"timeouts\":%" PRIu64 ",\"resets\":%" PRIu64 ",\"reclaimed\":%" PRIu64
               ",\"no_descriptors\":%" PRIu64 ",\"aborted\":%" PRIu64,
               c->connections, c->requests, c->ok, c->not_found, c->refused, c->bytes, c->timeouts,
               c->resets, c->reclaimed, c->no_descriptors, c->aborted);
    else
        printf("served %" PRIu64 " requests on %" PRIu64 " connections: %" PRIu64 " files, %" PRIu64
               " not found, %" PRIu64 " refused; %.1f MB; %" PRIu64 " timed out, %" PRIu64
               " gone, %" PRIu64 " reclaimed, %" PRIu64 " cut; %" PRIu64
               " pauses for want of descriptors",
               c->requests, c->connections, c->ok, c->not_found, c->refused, (double)c->bytes / 1e6,
               c->timeouts, c->resets, c->reclaimed, c->aborted, c->no_descriptors);
    if (server->proxy.on)
        print_proxy_summary(server);
    puts(server->options.json ? "}" : "");
    fflush(stdout);
}

static bool serve(struct server *server)
{
    sigset_t signals;
    block_signals(&signals);
    struct sockaddr_in address;
    if (!allow_descriptors(server) || !listen_at(server, &address))
        return false;
    int wakeup = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (wakeup < 0)
        return complain("signalfd");

    /* A scheduler that wants to know nothing of the server is welcome. */
    struct attune_options attune = {.size = sizeof attune, .ignore_unknown_imports = 1};
    if (attune_init(&attune) != 0)
        return complain("attune_init");
    if (!imports_register(&server->imports) || !pool_start(server))
        return false;

    const char *scheduler = attune_scheduler_name();
    printf("listening on %s:%d, ", server->options.host, ntohs(address.sin_port));
    if (server->proxy.on)
        printf("upstream %s, cache of %.1f MB", server->proxy.upstream.name,
               (double)server->options.cache / 1e6);
    else
        printf("%zu files of %.1f MB", server->files.count, (double)server->files.bytes / 1e6);
    printf(", %d handlers, scheduler %s\n", server->options.handlers,
           scheduler != NULL ? scheduler : "unknown");
    fflush(stdout);
    bool fine = await_signal(server, wakeup);
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
    pool_stop(server);
    print_summary(server);
    return fine;
}

/* Files, or an upstream and a cache for its replies. False with a message on stderr. */
static bool prepare(struct server *server)
{
    const struct options *options = &server->options;
    struct proxy *proxy = &server->proxy;
    if (options->upstream == NULL)
        return options->files != NULL ? files_load(&server->files, options->files)
                                      : files_generate(&server->files);
    proxy->on = true;
    proxy->upstream.timeout = options->upstream_timeout;
    if (!upstream_find(&proxy->upstream, options->upstream))
        return false;
    if (!cache_start(&proxy->cache, (size_t)options->cache, (size_t)options->object_limit)) {
        fputs("webserver: out of memory for the cache\n", stderr);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct server server;
    int status = options_parse(&server.options, argc, argv);
    if (status >= 0)
        return status;
    bool fine = prepare(&server) && serve(&server);
    upstream_end(&server.proxy.upstream);
    cache_end(&server.proxy.cache);
    files_free(&server.files);
    return fine ? 0 : 1;
}
