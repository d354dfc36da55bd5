/* Sound through PulseAudio. Its main loop has no turn of its own: it is run, without waiting,
 * whenever the player gives samples. */
#include <pulse/pulseaudio.h>
#include <stdlib.h>

#include "sound.h"

enum { BUFFER_BYTES = SOUND_RATE / 10 * SOUND_BYTES, ROUNDS = 16 };

/* How long a server may take to answer at the beginning, microseconds. */
#define PATIENCE 1000000

struct pulse {
    struct sound_output output;
    pa_mainloop *loop;
    pa_context *context;
    pa_stream *stream;
    int64_t given, heard; /* samples; heard: at a time */
    uint64_t heard_at;    /* 0: nothing yet */
    uint64_t asked_at;    /* 0: nothing is asked */
    bool draining, drained;
};

static bool gone(const struct pulse *pulse)
{
    return !PA_CONTEXT_IS_GOOD(pa_context_get_state(pulse->context)) ||
           (pulse->stream != NULL && !PA_STREAM_IS_GOOD(pa_stream_get_state(pulse->stream)));
}

/* What has come from the server, without waiting; a bounded number of times. */
static void take_in(struct pulse *pulse)
{
    for (int i = 0; i < ROUNDS && pa_mainloop_iterate(pulse->loop, 0, NULL) > 0; i++)
        ;
}

/* What the server said of its buffers, soon after it was asked. (The library's own interpolation is
 * off by 40 ms in the first seconds.) */
static void on_timing(pa_stream *stream, int success, void *data)
{
    struct pulse *pulse = data;
    const pa_timing_info *timing = pa_stream_get_timing_info(stream);
    if (success && timing != NULL && !timing->read_index_corrupt && timing->playing) {
        pulse->heard =
            timing->read_index / SOUND_BYTES - (int64_t)timing->sink_usec * SOUND_RATE / 1000000;
        pulse->heard_at = pulse->asked_at;
    }
    pulse->asked_at = 0;
}

static void ask_timing(struct pulse *pulse)
{
    if (pulse->asked_at != 0)
        return;
    pa_operation *asked = pa_stream_update_timing_info(pulse->stream, on_timing, pulse);
    if (asked == NULL)
        return;
    pulse->asked_at = attune_coop_now();
    pa_operation_unref(asked);
}

static int room(struct sound_output *output)
{
    struct pulse *pulse = (struct pulse *)output;
    take_in(pulse);
    if (gone(pulse))
        return -1;
    ask_timing(pulse);
    size_t bytes = pa_stream_writable_size(pulse->stream);
    return bytes == (size_t)-1 ? 0 : (int)(bytes / SOUND_BYTES);
}

static void give(struct sound_output *output, const void *samples, int count)
{
    struct pulse *pulse = (struct pulse *)output;
    pulse->given += count;
    pa_stream_write(pulse->stream, samples, (size_t)count * SOUND_BYTES, NULL, 0, PA_SEEK_RELATIVE);
    take_in(pulse);
}

static int64_t unheard(struct sound_output *output)
{
    const struct pulse *pulse = (struct pulse *)output;
    if (pulse->heard_at == 0)
        return pulse->given;
    int64_t heard =
        pulse->heard + (int64_t)((attune_coop_now() - pulse->heard_at) * SOUND_RATE / 1000000000);
    return heard < pulse->given ? pulse->given - heard : 0;
}

static void on_drained(pa_stream *stream, int success, void *data)
{
    (void)stream;
    ((struct pulse *)data)->drained = success != 0;
}

static bool drained(struct sound_output *output)
{
    struct pulse *pulse = (struct pulse *)output;
    if (!pulse->draining) {
        pa_operation *asked = pa_stream_drain(pulse->stream, on_drained, pulse);
        if (asked != NULL)
            pa_operation_unref(asked);
        pulse->draining = true;
    }
    take_in(pulse);
    return pulse->drained || gone(pulse);
}

static void close_output(struct sound_output *output)
{
    struct pulse *pulse = (struct pulse *)output;
    if (pulse->stream != NULL)
        pa_stream_unref(pulse->stream);
    if (pulse->context != NULL) {
        pa_context_disconnect(pulse->context);
        pa_context_unref(pulse->context);
    }
    if (pulse->loop != NULL)
        pa_mainloop_free(pulse->loop);
    free(pulse);
}

/* Waits until both are ready; false: refused, or no answer in time. */
static bool wait_until_ready(struct pulse *pulse)
{
    pa_usec_t end = pa_rtclock_now() + PATIENCE;
    for (;;) {
        if (gone(pulse) || pa_rtclock_now() >= end)
            return false;
        bool connected = pa_context_get_state(pulse->context) == PA_CONTEXT_READY;
        if (connected &&
            (pulse->stream == NULL || pa_stream_get_state(pulse->stream) == PA_STREAM_READY))
            return true;
        if (pa_mainloop_prepare(pulse->loop, 100000) < 0 || pa_mainloop_poll(pulse->loop) < 0 ||
            pa_mainloop_dispatch(pulse->loop) < 0)
            return false;
    }
}

struct sound_output *sound_output_pulse(void)
{
    struct pulse *new = calloc(1, sizeof *new);
    if (new == NULL)
        return NULL;
    new->output = (struct sound_output){"pulse", room, give, unheard, drained, close_output};
    new->loop = pa_mainloop_new();
    new->context =
        new->loop == NULL ? NULL : pa_context_new(pa_mainloop_get_api(new->loop), "player");
    const pa_sample_spec format = {.format = PA_SAMPLE_S16NE, .rate = SOUND_RATE, .channels = 2};
    const pa_buffer_attr buffer = {(uint32_t)-1, BUFFER_BYTES, (uint32_t)-1, (uint32_t)-1,
                                   (uint32_t)-1};
    const pa_stream_flags_t flags = PA_STREAM_AUTO_TIMING_UPDATE | PA_STREAM_ADJUST_LATENCY;
    if (new->context != NULL &&
        pa_context_connect(new->context, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL) >= 0 &&
        wait_until_ready(new) &&
        (new->stream = pa_stream_new(new->context, "film", &format, NULL)) !=
            NULL &&pa_stream_connect_playback(new->stream, NULL, &buffer, flags, NULL, NULL) >= 0 &&
        wait_until_ready(new))
        return &new->output;
    close_output(&new->output);
    return NULL;
}
