/* See options.h. */
#define _GNU_SOURCE
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: webserver [OPTION]...\n"
    "Serves files from memory over HTTP/1.1, or passes requests on to another server and keeps its "
    "replies, on threads that a scheduler of your choice "
    "(ATTUNE_SCHED=FILE.so) switches.\n"
    "\n"
    "  --files DIR           serve the files below DIR; without it a generated set: /bytes/N, "
    "/large/0 to /large/7\n"
    "  --upstream HOST:PORT  be a caching reverse proxy for the server there\n"
    "  --cache BYTES         memory for replies of the upstream; 0 keeps none (67108864)\n"
    "  --object-limit BYTES  size of a reply's body beyond which it is not kept (8388608)\n"
    "  --upstream-timeout S  how long the upstream may keep a request waiting (10)\n"
    "  --host ADDRESS        IPv4 address to listen at (127.0.0.1)\n"
    "  --port N              port; 0 takes a free one and prints it (8080)\n"
    "  --handlers N          handler threads, which is also the number of connections served at a "
    "time (512)\n"
    "  --chunk BYTES         how much of a reply is written between two yields (65536)\n"
    "  --backlog N           connections that may wait to be accepted (4096)\n"
    "  --head-limit BYTES    size of a request's head beyond which it is refused (8192)\n"
    "  --target-limit BYTES  the same for its target (4096)\n"
    "  --body-limit BYTES    size of a request's body beyond which it is refused (65536)\n"
    "  --idle-timeout S      how long a connection may wait for its next request (15)\n"
    "  --head-timeout S      how long a request may take to arrive (10)\n"
    "  --reply-timeout S     how long a client may take nothing of its reply (10)\n"
    "  --slowest BYTES       bytes a second below which a client that takes its reply is given up "
    "(4096)\n"
    "  --grace S             how long replies under way may go on after SIGINT or SIGTERM (5)\n"
    "  --json                print the summary at the end as JSON\n"
    "  --help                print this\n"
    "\n"
    "Exit status: 0 after SIGINT or SIGTERM, 1 if it cannot serve, 2 for a wrong command line or "
    "an unusable scheduler.\n";

enum kind { TEXT, COUNT, BYTES, SECONDS, FLAG, HELP };

struct option_word {
    const char *name;
    enum kind kind;
    size_t offset;
    double least, most;
};

#define AT(member) offsetof(struct options, member)

static const struct option_word words[] = {
    {"files", TEXT, AT(files), 0, 0},
    {"upstream", TEXT, AT(upstream), 0, 0},
    {"cache", BYTES, AT(cache), 0, (double)((int64_t)1 << 40)},
    {"object-limit", BYTES, AT(object_limit), 0, 1 << 30},
    {"upstream-timeout", SECONDS, AT(upstream_timeout), 0.001, 86400},
    {"host", TEXT, AT(host), 0, 0},
    {"port", COUNT, AT(port), 0, 65535},
    {"handlers", COUNT, AT(handlers), 1, 100000},
    {"backlog", COUNT, AT(backlog), 1, 65535},
    {"chunk", BYTES, AT(chunk), 1, 1 << 30},
    {"head-limit", BYTES, AT(head_limit), 64, 1 << 20},
    {"target-limit", BYTES, AT(target_limit), 1, 1 << 20},
    {"body-limit", BYTES, AT(body_limit), 0, 1 << 30},
    {"idle-timeout", SECONDS, AT(idle_timeout), 0.001, 86400},
    {"head-timeout", SECONDS, AT(head_timeout), 0.001, 86400},
    {"reply-timeout", SECONDS, AT(reply_timeout), 0.001, 86400},
    {"slowest", BYTES, AT(slowest), 1, 1 << 30},
    {"grace", SECONDS, AT(grace), 0, 86400},
    {"json", FLAG, AT(json), 0, 0},
    {"help", HELP, 0, 0, 0},
};

enum { WORDS = sizeof words / sizeof words[0] };

static bool set(struct options *options, const struct option_word *word, char *value)
{
    void *field = (char *)options + word->offset;
    if (word->kind == TEXT) {
        *(const char **)field = value;
        return true;
    }
    char *end;
    errno = 0;
    double number = word->kind == SECONDS ? strtod(value, &end) : (double)strtoll(value, &end, 10);
    if (errno != 0 || end == value || *end != 0 ||
        !(number >= word->least && number <= word->most)) {
        fprintf(stderr, "webserver: --%s %s: wants a %snumber from %g to %.0f\n", word->name, value,
                word->kind == SECONDS ? "" : "whole ", word->least, word->most);
        return false;
    }
    if (word->kind == SECONDS)
        *(int64_t *)field = (int64_t)(number * 1e9);
    else if (word->kind == BYTES)
        *(int64_t *)field = (int64_t)number;
    else
        *(int *)field = (int)number;
    return true;
}

int options_parse(struct options *options, int argc, char **argv)
{
    *options = (struct options){
        .host = "127.0.0.1",
        .port = 8080,
        .handlers = 512,
        .backlog = 4096,
        .chunk = 65536,
        .head_limit = 8192,
        .target_limit = 4096,
        .body_limit = 65536,
        .slowest = 4096,
        .cache = 67108864,
        .object_limit = 8388608,
        .upstream_timeout = 10000000000,
        .idle_timeout = 15000000000,
        .head_timeout = 10000000000,
        .reply_timeout = 10000000000,
        .grace = 5000000000,
    };
    struct option table[WORDS + 1] = {{0}};
    for (int i = 0; i < WORDS; i++) {
        bool valued = words[i].kind != FLAG && words[i].kind != HELP;
        table[i] =
            (struct option){words[i].name, valued ? required_argument : no_argument, NULL, 256 + i};
    }
    for (int found; (found = getopt_long(argc, argv, "", table, NULL)) != -1;) {
        if (found == '?') { /* getopt_long has said what is wrong */
            fputs("webserver: try --help\n", stderr);
            return 2;
        }
        const struct option_word *word = &words[found - 256];
        if (word->kind == HELP) {
            fputs(usage, stdout);
            return 0;
        }
        if (word->kind == FLAG)
            options->json = true;
        else if (!set(options, word, optarg))
            return 2;
    }
    if (optind < argc) {
        fprintf(stderr, "webserver: %s: options only; try --help\n", argv[optind]);
        return 2;
    }
    if (options->files != NULL && options->upstream != NULL) {
        fputs("webserver: --files and --upstream: one of the two; try --help\n", stderr);
        return 2;
    }
    return -1;
}
