/* Opens films, plays them in one event loop, and says how it went. */
#include <attune_coop.h>
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "options.h"
#include "say.h"
#include "sound.h"
#include "video.h"

/* Between opening and the first picture: time to decode some ahead. */
#define PREROLL UINT64_C(500000000)

struct player {
    attune_coop_loop *loop;
    struct display *display;
    struct video videos[FILMS];
    int count, playing; /* playing: films, and the sound */
    struct sound *sound;
    bool display_lost;
};

static void on_end(void *data)
{
    struct player *player = data;
    if (--player->playing == 0)
        attune_coop_stop(player->loop);
}

static void on_display(attune_coop_loop *loop, attune_coop_event event, short ready, void *data)
{
    (void)event, (void)ready;
    struct player *player = data;
    if (!player->display->take_events(player->display, &player->display_lost))
        attune_coop_stop(loop);
}

static void on_signal(attune_coop_loop *loop, attune_coop_event event, short ready, void *data)
{
    (void)event, (void)ready, (void)data;
    attune_coop_stop(loop);
}

static void on_time(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)event, (void)data;
    attune_coop_stop(loop);
}

/* What the user and the display do is looked at before any frame. */
static bool watch(struct player *player, int fd, const char *name,
                  attune_coop_descriptor_callback callback)
{
    return attune_coop_descriptor_new(player->loop, fd, POLLIN, INT64_MIN, name, callback,
                                      player) != 0 ||
           fail("watching for %s: %s", name, attune_coop_error());
}

static sigset_t ending_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    return signals;
}

static const char *report_of_nothing;

/* While films, display and sound are opened, which may wait for a disk or a server: there is
 * nothing to end but the process. */
static void end_before_the_beginning(int signal)
{
    (void)signal;
    static const char why[] = "player: ended before it could play anything\n";
    if (write(STDERR_FILENO, why, sizeof why - 1) < 0 ||
        write(STDOUT_FILENO, report_of_nothing, strlen(report_of_nothing)) < 0)
        _exit(2);
    _exit(1);
}

static void end_at_signals(bool json)
{
    report_of_nothing = json ? "{\"films\":[],\"callbacks\":[]}\n" : "";
    struct sigaction action = {.sa_handler = end_before_the_beginning, .sa_mask = ending_signals()};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* From now on signals are events. */
static bool watch_signals(struct player *player)
{
    sigset_t signals = ending_signals();
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? fail("signals: %m") : watch(player, fd, "signal", on_signal);
}

static struct sound_output *sound_output(const char *wanted)
{
    if (strcmp(wanted, "null") != 0) {
        struct sound_output *pulse = sound_output_pulse();
        if (pulse != NULL)
            return pulse;
        if (strcmp(wanted, "pulse") == 0) {
            fail("no PulseAudio answers; --sound null plays unheard");
            return NULL;
        }
    }
    return sound_output_null();
}

static bool open_all(struct player *player, const struct options *options, FILE *log)
{
    player->loop = attune_coop_new(NULL, (uint32_t)options->group);
    if (player->loop == NULL)
        return fail("%s", attune_coop_error());
    bool null = strcmp(options->display, "null") == 0;
    player->display = null ? display_null() : display_x11((uint64_t)options->sync_ahead);
    if (player->display == NULL)
        return false;
    const struct video_settings settings = {(uint64_t)options->lookahead, options->drop_reference_b,
                                            log};
    for (; player->count < options->count; player->count++) {
        struct video *video = &player->videos[player->count];
        bool with_sound = player->count == 0 && strcmp(options->sound, "none") != 0;
        if (!video_open(video, player->loop, player->display, options->films[player->count],
                        &settings, with_sound)) {
            player->count++; /* closed with the others */
            return false;
        }
        video->at_end = on_end;
        video->data = player;
    }
    const struct film *first = &player->videos[0].film;
    if (first->audio != NULL) {
        struct sound_output *output = sound_output(options->sound);
        player->sound = output == NULL ? NULL : sound_open(player->loop, first, output);
        if (player->sound == NULL)
            return false;
    }
    return watch_signals(player) &&
           (player->display->fd < 0 || watch(player, player->display->fd, "display", on_display));
}

static bool play(struct player *player, const struct options *options)
{
    uint64_t start = attune_coop_now() + PREROLL;
    player->playing = player->count + (player->sound != NULL);
    for (int i = 0; i < player->count; i++)
        video_start(&player->videos[i], start, i == 0 ? player->sound : NULL);
    if (player->sound != NULL)
        sound_start(player->sound, start, on_end, player);
    if (options->seconds > 0)
        attune_coop_submit_timer(player->loop,
                                 attune_coop_event_new(player->loop, "end", on_time, NULL),
                                 start + (uint64_t)options->seconds);
    if (attune_coop_run(player->loop) != 0)
        return fail("%s", attune_coop_error());
    return !player->display_lost || fail("the X server has gone");
}

/* ---- What it was like
 * -------------------------------------------------------------------------------------------- */

static const char *const callbacks[] = {"read",   "decode",       "convert",    "show",
                                        "expire", "decode sound", "play sound", "display"};

static void print_text(const struct player *player)
{
    for (int i = 0; i < player->count; i++) {
        const struct video *video = &player->videos[i];
        printf("%s: %s, %dx%d\n", video->film.path, video->film.video_codec->name,
               video->window->width, video->window->height);
        counts_print(stdout, &video->counts, video->film.independent);
    }
    if (player->sound != NULL) {
        struct sound_counts sound = sound_counts(player->sound);
        printf("sound (%s): %.2f s played, %.2f s missing, %lu packets broken\n", sound.output,
               sound.played, sound.missing, sound.broken);
    }
    fflush(stdout);
    attune_coop_print_trace(player->loop, STDOUT_FILENO);
}

static void print_string_json(const char *text)
{
    putchar('"');
    for (; *text != 0; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < 32)
            printf("\\u%04x", *text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void print_json(const struct player *player)
{
    printf("{\"films\":[");
    for (int i = 0; i < player->count; i++) {
        const struct video *video = &player->videos[i];
        printf("%s{\"film\":", i == 0 ? "" : ",");
        print_string_json(video->film.path);
        printf(",\"codec\":\"%s\",\"width\":%d,\"height\":%d,", video->film.video_codec->name,
               video->window->width, video->window->height);
        counts_print_json(stdout, &video->counts, video->film.independent);
        printf("}");
    }
    printf("]");
    if (player->sound != NULL) {
        struct sound_counts sound = sound_counts(player->sound);
        printf(",\"sound\":{\"output\":\"%s\",\"played_s\":%.3f,\"missing_s\":%.3f,\"broken\":%lu}",
               sound.output, sound.played, sound.missing, sound.broken);
    }
    printf(",\"callbacks\":[");
    const char *between = "";
    for (size_t i = 0; i < sizeof callbacks / sizeof callbacks[0]; i++) {
        struct attune_coop_executions executions;
        if (attune_coop_trace(player->loop, callbacks[i], &executions) != 0)
            continue;
        printf("%s{\"name\":\"%s\",\"count\":%lu,\"total_us\":%.1f,\"worst_us\":%.1f}", between,
               callbacks[i], executions.count, (double)executions.total / 1e3,
               (double)executions.worst / 1e3);
        between = ",";
    }
    printf("]}\n");
    fflush(stdout); /* a reader of the figures need not wait for closing */
}

static bool anything_shown(const struct player *player)
{
    bool any = false;
    for (int i = 0; i < player->count; i++) {
        const struct video *video = &player->videos[i];
        if (counts_sum(video->counts.shown) > 0)
            any = true;
        else
            fail("%s: no picture could be shown; %lu of %lu frames are broken", video->film.path,
                 counts_sum(video->counts.broken), counts_sum(video->counts.read));
    }
    return any;
}

int main(int argc, char **argv)
{
    struct options options;
    int status = options_parse(&options, argc, argv);
    if (status >= 0)
        return status;
    /* Broken frames are counted; a line for each would be too much. */
    av_log_set_level(AV_LOG_QUIET);
    /* Memory that was had once is kept: getting it again from the kernel, page by page, makes
     * events long. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    static struct player player;
    FILE *log = options.log == NULL ? NULL : fopen(options.log, "w");
    if (options.log != NULL && log == NULL) {
        fail("%s: %s", options.log, strerror(errno));
        return 1;
    }
    end_at_signals(options.json);
    bool good = open_all(&player, &options, log) && play(&player, &options);
    if (player.playing > 0 || good) {
        if (options.json)
            print_json(&player);
        else
            print_text(&player);
        good = anything_shown(&player) && good;
    }
    for (int i = 0; i < player.count; i++)
        video_close(&player.videos[i]);
    if (player.sound != NULL)
        sound_close(player.sound);
    if (player.display != NULL)
        player.display->close(player.display);
    if (player.loop != NULL)
        attune_coop_free(player.loop);
    if (log != NULL && fclose(log) != 0)
        good = fail("%s: %s", options.log, strerror(errno));
    return good ? 0 : 1;
}
