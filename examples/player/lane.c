/* See lane.h. */
#include "lane.h"

#include "coroutine.h"
#include "say.h"

static void pause_if_time_is_up(struct lane *lane)
{
    uint64_t now = attune_coop_now();
    if (now - lane->step_began >= LANE_STEP || now >= attune_coop_until(lane->loop))
        coroutine_pause(lane->coroutine);
}

static void row_is_done(AVCodecContext *codec, const AVFrame *frame,
                        int offset[AV_NUM_DATA_POINTERS], int y, int type, int height)
{
    (void)frame, (void)offset, (void)y, (void)type, (void)height;
    pause_if_time_is_up(codec->opaque);
}

static int execute(AVCodecContext *codec, int (*slice)(AVCodecContext *, void *), void *arguments,
                   int *results, int count, int size)
{
    for (int i = 0; i < count; i++) {
        int result = slice(codec, (char *)arguments + (ptrdiff_t)i * size);
        if (results != NULL)
            results[i] = result;
        pause_if_time_is_up(codec->opaque);
    }
    return 0;
}

static int execute2(AVCodecContext *codec, int (*slice)(AVCodecContext *, void *, int, int),
                    void *argument, int *results, int count)
{
    for (int i = 0; i < count; i++) {
        int result = slice(codec, argument, i, 0);
        if (results != NULL)
            results[i] = result;
        pause_if_time_is_up(codec->opaque);
    }
    return 0;
}

/* What a decoder does before the first row is a step of its own. */
static int get_buffer(AVCodecContext *codec, AVFrame *frame, int flags)
{
    int result = avcodec_default_get_buffer2(codec, frame, flags);
    pause_if_time_is_up(codec->opaque);
    return result;
}

/* Fills the decoder's pool. A new buffer costs a fault of the page table for each page of it, which
 * is as long as two steps. */
static void warm_up(AVCodecContext *codec, int frames)
{
    enum { MOST = 128 };
    AVFrame *held[MOST] = {NULL};
    for (int i = 0; i < frames && i < MOST; i++) {
        AVFrame *frame = held[i] = av_frame_alloc();
        if (frame == NULL)
            break;
        frame->format = codec->pix_fmt;
        frame->width = codec->coded_width > codec->width ? codec->coded_width : codec->width;
        frame->height = codec->coded_height > codec->height ? codec->coded_height : codec->height;
        if (avcodec_default_get_buffer2(codec, frame, AV_GET_BUFFER_FLAG_REF) < 0)
            break;
    }
    for (int i = 0; i < MOST; i++)
        av_frame_free(&held[i]);
}

static void receive(struct lane *lane)
{
    AVFrame *frame;
    while ((frame = av_frame_alloc()) != NULL) {
        int result = avcodec_receive_frame(lane->codec, frame);
        if (result < 0) {
            if (result != AVERROR(EAGAIN) && result != AVERROR_EOF)
                lane->error = result;
            av_frame_free(&frame);
            return;
        }
        lane->decoded(lane->data, frame);
    }
    lane->error = AVERROR(ENOMEM);
}

static void work(void *data)
{
    struct lane *lane = data;
    for (;;) {
        lane->error = 0;
        int result = avcodec_send_packet(lane->codec, lane->draining ? NULL : lane->packet);
        receive(lane);
        if (result < 0)
            lane->error = result;
        if (lane->draining)
            avcodec_flush_buffers(lane->codec);
        av_packet_unref(lane->packet);
        lane->busy = false;
        coroutine_pause(lane->coroutine);
    }
}

bool lane_open(struct lane *lane, attune_coop_loop *loop, const AVCodec *codec,
               const AVCodecParameters *parameters, int frames, const char *path)
{
    lane->loop = loop;
    lane->codec = avcodec_alloc_context3(codec);
    lane->packet = av_packet_alloc();
    lane->coroutine = coroutine_new(work, lane);
    if (lane->codec == NULL || lane->packet == NULL || lane->coroutine == NULL)
        return fail("%s: no memory for a decoder", path);
    int error = avcodec_parameters_to_context(lane->codec, parameters);
    lane->codec->opaque = lane;
    lane->codec->thread_count = 1;
    lane->codec->draw_horiz_band = row_is_done;
    lane->codec->slice_flags = SLICE_FLAG_CODED_ORDER | SLICE_FLAG_ALLOW_FIELD;
    lane->codec->get_buffer2 = get_buffer;
    lane->codec->execute = execute;
    lane->codec->execute2 = execute2;
    if (error >= 0)
        error = avcodec_open2(lane->codec, codec, NULL);
    if (error >= 0)
        warm_up(lane->codec, frames);
    return error >= 0 ||
           fail("%s: opening the decoder %s: %s", path, codec->name, ffmpeg_error(error));
}

void lane_begin(struct lane *lane, AVPacket *packet)
{
    lane->draining = packet == NULL;
    if (packet != NULL)
        av_packet_move_ref(lane->packet, packet);
    lane->busy = true;
}

void lane_step(struct lane *lane)
{
    lane->step_began = attune_coop_now();
    coroutine_resume(lane->coroutine);
}

static void throw_away(void *data, AVFrame *frame)
{
    (void)data;
    av_frame_free(&frame);
}

void lane_abandon(struct lane *lane)
{
    lane->decoded = throw_away;
    while (lane->busy)
        lane_step(lane);
}

void lane_close(struct lane *lane)
{
    if (lane->coroutine != NULL)
        lane_abandon(lane);
    coroutine_free(lane->coroutine);
    avcodec_free_context(&lane->codec);
    av_packet_free(&lane->packet);
}
