/* See sound.h. */
#include "sound.h"

#include <libavutil/audio_fifo.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>
#include <stdlib.h>

#include "importance.h"
#include "say.h"

/* How often samples are given to the output. */
#define TURN UINT64_C(20000000)

enum {
    PACKETS = 1024,
    DECODED_AHEAD = SOUND_RATE / 2,
    TOLERANCE = SOUND_RATE / 25, /* 40 ms: too little to be seen on lips */
    CHUNK = 4096,
    /* a server that says for so many turns that it has not played the last samples never will */
    MOST_DRAINS = 100,
};

struct sound {
    attune_coop_loop *loop;
    attune_coop_event decode, play;
    AVCodecContext *codec;
    SwrContext *resampler;
    AVAudioFifo *decoded;
    AVFrame *frame, *resampled;
    struct {
        AVPacket *packet;
        uint64_t time;
    } packets[PACKETS]; /* a ring */
    unsigned first, count;
    AVRational time_base;
    int64_t start_time; /* of the film, in AV_TIME_BASE */
    struct sound_output *output;
    uint64_t start, turn;
    int64_t produced, given, missing; /* samples; produced: as the packets' times have it */
    uint64_t broken;
    bool ended;
    int drains; /* turns since all has been given */
    void (*at_end)(void *data);
    void *data;
};

static void arm(struct sound *sound)
{
    bool wanted = sound->count > 0 && av_audio_fifo_size(sound->decoded) < DECODED_AHEAD;
    uint64_t needed = sound->start + (uint64_t)sound->given * 1000000000 / SOUND_RATE;
    /* A gap in the sound is heard by everyone: before the pictures of the same time. */
    if (wanted)
        attune_coop_submit_best_effort(sound->loop, sound->decode, (int64_t)(needed - WINDOW),
                                       ATTUNE_COOP_NEVER);
    else
        attune_coop_cancel(sound->loop, sound->decode);
}

static void add_silence(struct sound *sound, int64_t samples)
{
    static const uint8_t silence[CHUNK * SOUND_BYTES];
    void *from[] = {(void *)silence};
    for (; samples > 0; samples -= CHUNK)
        av_audio_fifo_write(sound->decoded, from, samples < CHUNK ? (int)samples : CHUNK);
}

static bool resample(struct sound *sound)
{
    AVFrame *out = sound->resampled;
    av_frame_unref(out);
    out->sample_rate = SOUND_RATE;
    out->format = AV_SAMPLE_FMT_S16;
    av_channel_layout_default(&out->ch_layout, 2);
    if (swr_convert_frame(sound->resampler, out, sound->frame) < 0) {
        /* The stream changed its format: begin anew with what it is now. */
        swr_close(sound->resampler);
        if (swr_config_frame(sound->resampler, out, sound->frame) < 0 ||
            swr_convert_frame(sound->resampler, out, sound->frame) < 0)
            return false;
    }
    av_audio_fifo_write(sound->decoded, (void **)out->data, out->nb_samples);
    sound->produced += out->nb_samples;
    return true;
}

static void on_decode(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)loop, (void)event;
    struct sound *sound = data;
    if (sound->count == 0)
        return;
    AVPacket *packet = sound->packets[sound->first].packet;
    int64_t expected = (int64_t)(sound->packets[sound->first].time * SOUND_RATE / 1000000000);
    sound->first = (sound->first + 1) % PACKETS;
    sound->count--;
    if (expected > sound->produced + TOLERANCE && expected - sound->produced < 60 * SOUND_RATE) {
        add_silence(sound, expected - sound->produced);
        sound->produced = expected;
    }
    bool good = avcodec_send_packet(sound->codec, packet) >= 0;
    while (avcodec_receive_frame(sound->codec, sound->frame) >= 0)
        good = resample(sound) && good;
    sound->broken += !good;
    av_packet_free(&packet);
    arm(sound);
}

/* Lets the sound catch up with the clock, or wait for it. */
static void follow_clock(struct sound *sound, uint64_t now)
{
    int64_t unheard = sound->output->unheard(sound->output);
    if (now < sound->start || sound->given == 0)
        return;
    int64_t heard = sound->given - unheard,
            due = (int64_t)((now - sound->start) * SOUND_RATE / 1000000000);
    if (due - heard > TOLERANCE) {
        int behind = (int)(due - heard), there = av_audio_fifo_size(sound->decoded);
        int left_out = behind < there ? behind : there;
        av_audio_fifo_drain(sound->decoded, left_out);
        sound->given += left_out;
        sound->missing += left_out;
    }
}

static void on_play(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    struct sound *sound = data;
    uint64_t now = attune_coop_now();
    int room = sound->output->room(sound->output);
    if (room < 0) {
        fail("the sound server has gone; playing on without sound");
        sound->output->close(sound->output);
        sound->output = sound_output_null();
        room = 0;
    }
    follow_clock(sound, now);
    while (room > 0 && av_audio_fifo_size(sound->decoded) > 0) {
        uint8_t samples[CHUNK * SOUND_BYTES];
        void *to[] = {samples};
        int count = av_audio_fifo_read(sound->decoded, to, room < CHUNK ? room : CHUNK);
        if (count <= 0)
            break;
        sound->output->give(sound->output, samples, count);
        sound->given += count;
        room -= count;
    }
    bool over = sound->ended && sound->count == 0 && av_audio_fifo_size(sound->decoded) == 0;
    if (!over) {
        attune_coop_submit_timer(loop, event, sound->turn += TURN);
    } else if (sound->drains++ < MOST_DRAINS && !sound->output->drained(sound->output)) {
        attune_coop_submit_timer(loop, event, sound->turn += TURN);
    } else {
        sound->at_end(sound->data);
    }
    arm(sound);
}

struct sound *sound_open(attune_coop_loop *loop, const struct film *film,
                         struct sound_output *output)
{
    struct sound *new = calloc(1, sizeof *new);
    if (new == NULL) {
        output->close(output);
        fail("%s: no memory for its sound", film->path);
        return NULL;
    }
    new->loop = loop;
    new->output = output;
    new->time_base = film->audio->time_base;
    new->start_time = film->format->start_time == AV_NOPTS_VALUE ? 0 : film->format->start_time;
    new->codec = avcodec_alloc_context3(film->audio_codec);
    new->resampler = swr_alloc();
    new->decoded = av_audio_fifo_alloc(AV_SAMPLE_FMT_S16, 2, SOUND_RATE);
    new->frame = av_frame_alloc();
    new->resampled = av_frame_alloc();
    int error = AVERROR(ENOMEM);
    if (new->codec != NULL &&new->resampler != NULL &&new->decoded != NULL &&new->frame !=
        NULL &&new->resampled != NULL)
        error = avcodec_parameters_to_context(new->codec, film->audio->codecpar);
    if (error >= 0) {
        new->codec->thread_count = 1;
        error = avcodec_open2(new->codec, film->audio_codec, NULL);
    }
    if (error < 0) {
        fail("%s: opening the decoder %s of its sound: %s", film->path, film->audio_codec->name,
             ffmpeg_error(error));
        sound_close(new);
        return NULL;
    }
    new->decode = attune_coop_event_new(loop, "decode sound", on_decode, new);
    new->play = attune_coop_event_new(loop, "play sound", on_play, new);
    return new;
}

void sound_start(struct sound *sound, uint64_t start, void (*at_end)(void *data), void *data)
{
    sound->at_end = at_end;
    sound->data = data;
    sound->start = sound->turn = start;
    attune_coop_submit_timer(sound->loop, sound->play, start);
}

void sound_packet(struct sound *sound, AVPacket *packet)
{
    AVPacket *own = sound->count == PACKETS ? NULL : av_packet_alloc();
    if (own == NULL) {
        sound->broken++;
        return;
    }
    av_packet_move_ref(own, packet);
    int64_t since = av_rescale_q(own->pts == AV_NOPTS_VALUE ? 0 : own->pts, sound->time_base,
                                 (AVRational){1, 1000000000}) -
                    av_rescale(sound->start_time, 1000000000, AV_TIME_BASE);
    unsigned at = (sound->first + sound->count++) % PACKETS;
    sound->packets[at].packet = own;
    sound->packets[at].time = since > 0 ? (uint64_t)since : 0;
    arm(sound);
}

void sound_end(struct sound *sound)
{
    sound->ended = true;
}

struct sound_counts sound_counts(const struct sound *sound)
{
    return (struct sound_counts){sound->output->name,
                                 (double)(sound->given - sound->missing) / SOUND_RATE,
                                 (double)sound->missing / SOUND_RATE, sound->broken};
}

void sound_close(struct sound *sound)
{
    for (; sound->count > 0; sound->count--, sound->first = (sound->first + 1) % PACKETS)
        av_packet_free(&sound->packets[sound->first].packet);
    sound->output->close(sound->output);
    if (sound->decoded != NULL)
        av_audio_fifo_free(sound->decoded);
    swr_free(&sound->resampler);
    avcodec_free_context(&sound->codec);
    av_frame_free(&sound->frame);
    av_frame_free(&sound->resampled);
    free(sound);
}
