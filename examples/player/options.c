/* See options.h. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

static const char usage[] =
    "usage: player [OPTION]... FILM...\n"
    "Plays films, each in a window of its own, and gives up what matters least when there is no "
    "time for all of it.\n"
    "\n"
    "  --display x11|null    where to show: the X server that DISPLAY names, or nowhere (x11)\n"
    "  --sound auto|pulse|null|none\n"
    "                        of the first film: PulseAudio if it answers, else unheard; or no "
    "sound at all (auto)\n"
    "  --group N             importance is compared with the other players of this group; 0: alone "
    "(0)\n"
    "  --lookahead MS        how far ahead frames are read and decoded (1000)\n"
    "  --sync-ahead MS       hand pictures to the X server so early; it waits by its own clock; 0: "
    "at their time (20)\n"
    "  --drop-reference-b    leave out B frames that others refer to, too; only for films that are "
    "strict pyramids\n"
    "  --seconds S           end after so much of the film (to its end)\n"
    "  --log FILE            a line for each picture shown: time in the film (ms), rank, checksum, "
    "lateness (us)\n"
    "  --json                print the summary at the end as JSON\n"
    "  --help                print this\n"
    "\n"
    "  ATTUNE_COOP=shared player --group 1 one.mkv & ATTUNE_COOP=shared player --group 1 two.mkv\n"
    "\n"
    "q or closing a window ends it. Exit status: 0 when something was played, 1 if not, 2 for a "
    "wrong command line.\n";

static bool one_of(const char *option, const char *value, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(value, words[i]) == 0)
            return true;
    return fail("--%s %s: no such choice; see --help", option, value);
}

static bool number(const char *option, const char *value, double most, double *result)
{
    char *end;
    errno = 0;
    *result = strtod(value, &end);
    if (errno == 0 && end != value && *end == 0 && *result >= 0 && *result <= most)
        return true;
    return fail("--%s %s: wants a number from 0 to %.0f", option, value, most);
}

int options_parse(struct options *options, int argc, char **argv)
{
    enum { DISPLAY, SOUND, GROUP, LOOKAHEAD, SYNC_AHEAD, DROP, SECONDS, LOG, JSON, HELP };
    static const struct option words[] = {
        {"display", required_argument, NULL, DISPLAY},
        {"sound", required_argument, NULL, SOUND},
        {"group", required_argument, NULL, GROUP},
        {"lookahead", required_argument, NULL, LOOKAHEAD},
        {"sync-ahead", required_argument, NULL, SYNC_AHEAD},
        {"drop-reference-b", no_argument, NULL, DROP},
        {"seconds", required_argument, NULL, SECONDS},
        {"log", required_argument, NULL, LOG},
        {"json", no_argument, NULL, JSON},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    static const char *const displays[] = {"x11", "null", NULL}, *const sounds[] = {"auto", "pulse",
                                                                                    "null", "none",
                                                                                    NULL};
    *options = (struct options){
        .display = "x11", .sound = "auto", .lookahead = 1000000000, .sync_ahead = 20000000};
    int word;
    while ((word = getopt_long(argc, argv, "", words, NULL)) != -1) {
        double value = 0;
        bool right = true;
        switch (word) {
        case DISPLAY:
            right = one_of("display", options->display = optarg, displays);
            break;
        case SOUND:
            right = one_of("sound", options->sound = optarg, sounds);
            break;
        case GROUP:
            right = number("group", optarg, 2e9, &value);
            options->group = (int)value;
            break;
        case LOOKAHEAD:
            right = number("lookahead", optarg, 10000, &value);
            options->lookahead = (int64_t)(value * 1e6);
            break;
        case SYNC_AHEAD:
            right = number("sync-ahead", optarg, 100, &value);
            options->sync_ahead = (int64_t)(value * 1e6);
            break;
        case DROP:
            options->drop_reference_b = true;
            break;
        case SECONDS:
            right = number("seconds", optarg, 1e6, &value);
            options->seconds = (int64_t)(value * 1e9);
            break;
        case LOG:
            options->log = optarg;
            break;
        case JSON:
            options->json = true;
            break;
        case HELP:
            fputs(usage, stdout);
            return 0;
        default:
            right = false;
        }
        if (!right)
            return 2;
    }
    options->count = argc - optind;
    if (options->count == 0 || options->count > FILMS) {
        fail("wants one film or more, up to %d; see --help", FILMS);
        return 2;
    }
    memcpy(options->films, argv + optind, (size_t)options->count * sizeof *argv);
    return -1;
}
