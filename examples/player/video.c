/* See video.h. Every handler changes something and then calls arm, which submits each event anew as
 * things are: submitting twice changes nothing, so no handler needs to know what the others wait
 * for. */
#include "video.h"

#include <libavutil/adler32.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <string.h>

#include "say.h"
#include "sound.h"

/* Packets a read event takes in. */
enum { PACKETS = 4 };
/* Pictures that are made ready before their time; the others are on their way to the screen. */
enum { PREPARED = 3 };
/* Pixels that are converted in one event: about 0.1 ms. */
enum { BAND = 1 << 16 };

/* Frames that a decoder keeps, mostly. */
enum { REFERENCES = 8 };

static void arm(struct video *video);

/* ---- Choosing what to decode
 * ------------------------------------------------------------------------------------- */

/* Whether a frame that no other needs should make way: it has little time left, and what others
 * need waits behind it. A film of independent frames needs no such rule, since nothing has to be
 * decoded before anything else. */
static bool should_make_way(const struct video *video, const struct frame *frame, uint64_t now)
{
    int droppable = video->settings.drop_reference_b ? DISPOSABLE - 1 : DISPOSABLE;
    if (video->film.independent || frame->rank < droppable)
        return false;
    uint64_t margin = video->settings.lookahead / (frame->rank == DISPOSABLE ? 4 : 8);
    if (frame->presentation >= now + margin)
        return false;
    for (int i = 0; i < video->frames.count; i++) {
        const struct frame *other = video->frames.all[i];
        if (other->state == WAITING && other->rank < frame->rank)
            return true;
    }
    return false;
}

static bool is_taken(const struct video *video, unsigned chain)
{
    for (int i = 0; i < LANES; i++)
        if (video->lanes[i].chain == chain)
            return true;
    return false;
}

/* The chain that matters most of those that no decoder has; 0: none. */
static unsigned choose_chain(const struct video *video)
{
    unsigned chosen = 0;
    int64_t most = ATTUNE_COOP_NOTHING;
    for (int i = 0; i < video->frames.count; i++) {
        const struct frame *frame = video->frames.all[i];
        if (frame->state == WAITING && frame->importance < most && !is_taken(video, frame->chain)) {
            chosen = frame->chain;
            most = frame->importance;
        }
    }
    return chosen;
}

static void drop_what_makes_way(struct video *video, unsigned chain, uint64_t now)
{
    struct frame *frame;
    while ((frame = frames_waiting(&video->frames, chain)) != NULL &&
           should_make_way(video, frame, now))
        frames_end(&video->frames, frame, video->counts.dropped);
}

/* Gives an idle lane something to do, if there is anything. */
static void employ(struct video_lane *lane, uint64_t now)
{
    struct video *video = lane->video;
    if (lane->chain == 0)
        lane->chain = choose_chain(video);
    if (lane->chain == 0)
        return;
    drop_what_makes_way(video, lane->chain, now);
    struct frame *frame = frames_waiting(&video->frames, lane->chain);
    if (frame != NULL) {
        lane->importance = frame->importance;
        lane->pts = frame->pts;
        lane_begin(&lane->lane, frame->packet);
        if (frame->late)
            frames_end(&video->frames, frame, NULL);
        else
            frame->state = INSIDE;
    } else if (frames_complete(&video->frames, lane->chain)) {
        lane->pts = AV_NOPTS_VALUE;
        lane_begin(&lane->lane, NULL);
    }
}

/* ---- Events ---- */

static void on_read(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)loop, (void)event;
    struct video *video = data;
    struct film_packet next = {.packet = video->packet};
    for (int i = 0; i < PACKETS && !video->frames.ended; i++) {
        if (!film_read(&video->film, &next)) {
            video->frames.ended = true;
            if (video->sound != NULL)
                sound_end(video->sound);
            break;
        }
        if (next.video) {
            const struct frame *frame =
                frames_add(&video->frames, &next, video->start, video->window->display->tick);
            video->counts.read[next.rank]++;
            if (frame == NULL)
                video->counts.dropped[next.rank]++;
            else
                video->last_read = frame->presentation;
        } else if (video->sound != NULL) {
            sound_packet(video->sound, next.packet);
        }
        av_packet_unref(video->packet);
    }
    arm(video);
}

/* What is inside the decoder, came out of it and was not given up meanwhile. */
static void decoded(void *data, AVFrame *picture)
{
    struct video_lane *lane = data;
    struct frames *frames = &lane->video->frames;
    for (int i = 0; i < frames->count; i++) {
        struct frame *frame = frames->all[i];
        if (frame->chain == lane->chain && frame->state == INSIDE && frame->pts == picture->pts) {
            frame->decoded = picture;
            frame->state = DECODED;
            return;
        }
    }
    av_frame_free(&picture);
}

/* Ends frames of a lane's chain that the decoder will not give out any more: all, or only one. */
static void end_broken(struct video_lane *lane, bool all)
{
    struct frames *frames = &lane->video->frames;
    for (int i = 0; i < frames->count;) {
        struct frame *frame = frames->all[i];
        if (frame->chain == lane->chain && frame->state == INSIDE &&
            (all || frame->pts == lane->pts))
            frames_end(frames, frame, lane->video->counts.broken);
        else
            i++;
    }
}

static void on_decode(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)loop, (void)event;
    struct video_lane *lane = data;
    if (!lane->lane.busy)
        employ(lane, attune_coop_now());
    if (lane->lane.busy)
        lane_step(&lane->lane);
    if (!lane->lane.busy && lane->chain != 0) {
        if (lane->lane.draining)
            end_broken(lane, true);
        else if (lane->lane.error != 0)
            end_broken(lane, false);
        if (lane->lane.draining)
            lane->chain = 0;
        lane->lane.draining = false;
    }
    arm(lane->video);
}

/* As `ffmpeg -f framecrc` does it. */
static uint32_t checksum(const AVFrame *frame)
{
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(frame->format);
    AVAdler sum = 0;
    for (int plane = 0; plane < av_pix_fmt_count_planes(frame->format); plane++) {
        int height = plane == 1 || plane == 2 ? AV_CEIL_RSHIFT(frame->height, format->log2_chroma_h)
                                              : frame->height;
        int width = av_image_get_linesize(frame->format, frame->width, plane);
        for (int y = 0; y < height && width > 0; y++)
            sum = av_adler32_update(sum, frame->data[plane] + (ptrdiff_t)y * frame->linesize[plane],
                                    (unsigned)width);
    }
    return (uint32_t)sum;
}

static struct picture *free_picture(struct window *window)
{
    for (int i = 0; i < PICTURES; i++)
        if (window->pictures[i].free)
            return &window->pictures[i];
    return NULL;
}

/* The next frame to convert: only the first few before their time, or the later would take the
 * memory that the earlier need. */
static struct frame *to_convert(struct video *video)
{
    if (video->converting != NULL)
        return video->converting;
    struct frame *frame = frames_first(&video->frames, DECODED, DECODED);
    if (frame == NULL || frames_before(&video->frames, frame) >= PREPARED ||
        free_picture(video->window) == NULL)
        return NULL;
    return frame;
}

static void stop_converting(struct video *video)
{
    video->converting = NULL;
    video->rows_converted = 0;
}

/* From pictures as they are coded to the screen's pixels; made anew when the film changes its size
 * or format in its middle. */
static bool prepare_scaler(struct video *video, int width, int height, enum AVPixelFormat format)
{
    const struct window *window = video->window;
    video->scaler =
        sws_getCachedContext(video->scaler, width, height, format, window->width, window->height,
                             AV_PIX_FMT_BGR0, SWS_FAST_BILINEAR, NULL, NULL, NULL);
    return video->scaler != NULL;
}

static void on_convert(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)loop, (void)event;
    struct video *video = data;
    struct frame *frame = to_convert(video);
    if (frame == NULL)
        return;
    struct window *window = video->window;
    const AVFrame *from = frame->decoded;
    if (video->converting == NULL) {
        video->converting = frame;
        frame->picture = free_picture(window);
        frame->picture->free = false;
        frame->picture->presentation = frame->presentation;
        if (video->settings.log != NULL)
            frame->checksum = checksum(from);
        if (!prepare_scaler(video, from->width, from->height, from->format)) {
            stop_converting(video);
            frames_end(&video->frames, frame, video->counts.broken);
            arm(video);
            return;
        }
    }
    const AVPixFmtDescriptor *format = av_pix_fmt_desc_get(from->format);
    int rows = (BAND / from->width + 16) & ~15;
    if (rows > from->height - video->rows_converted)
        rows = from->height - video->rows_converted;
    const uint8_t *planes[4];
    for (int i = 0; i < 4; i++) {
        int row = i == 1 || i == 2 ? video->rows_converted >> format->log2_chroma_h
                                   : video->rows_converted;
        planes[i] = from->data[i] == NULL || (format->flags & AV_PIX_FMT_FLAG_PAL) != 0
                        ? from->data[i]
                        : from->data[i] + (ptrdiff_t)row * from->linesize[i];
    }
    if ((format->flags & AV_PIX_FMT_FLAG_PAL) != 0)
        planes[0] += (ptrdiff_t)video->rows_converted * from->linesize[0];
    sws_scale(video->scaler, planes, from->linesize, video->rows_converted, rows,
              (uint8_t *[4]){frame->picture->pixels}, (int[4]){frame->picture->stride});
    video->rows_converted += rows;
    if (video->rows_converted == from->height) {
        stop_converting(video);
        av_frame_free(&frame->decoded);
        frame->state = READY;
    }
    arm(video);
}

static void on_show(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)loop, (void)event;
    struct video *video = data;
    uint64_t now = attune_coop_now();
    struct frame *frame = frames_first(&video->frames, READY, READY);
    if (frame != NULL && frame->presentation <= now + video->window->display->ahead) {
        uint64_t late = now + video->window->display->ahead - frame->presentation;
        samples_add(&video->counts.tardiness, late);
        struct picture *picture = frame->picture;
        frame->picture = NULL;
        video->window->display->show(picture);
        /* the first picture's tick may lie before the film's start */
        if (video->settings.log != NULL)
            fprintf(video->settings.log, "%.3f %d %08x %.1f\n",
                    (double)(int64_t)(frame->presentation - video->start) / 1e6, frame->rank,
                    frame->checksum, (double)late / 1e3);
        frames_end(&video->frames, frame, video->counts.shown);
    }
    arm(video);
}

static void on_expire(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)loop, (void)event;
    struct video *video = data;
    uint64_t now = attune_coop_now() + video->window->display->ahead;
    struct frame *frame;
    while ((frame = frames_first(&video->frames, WAITING, DECODED)) != NULL &&
           frame->presentation <= now) {
        if (frame == video->converting)
            stop_converting(video);
        bool needed =
            frame->state == WAITING && !video->film.independent && frame->rank < DISPOSABLE;
        if (needed) {
            video->counts.expired[frame->rank]++;
            frame->late = true;
            /* What can still be shown in this window comes first, the next key frame above all. */
            frame->importance = importance_of(now + WINDOW, DISPOSABLE);
        } else {
            frames_end(&video->frames, frame, video->counts.expired);
        }
    }
    arm(video);
}

static void on_drawn(void *data, const struct picture *picture)
{
    struct video *video = data;
    uint64_t now = attune_coop_now();
    samples_add(&video->counts.drawn,
                now > picture->presentation ? now - picture->presentation : 0);
    arm(video);
}

/* ---- What is to happen next
 * -------------------------------------------------------------------------------------- */

static void at(struct video *video, attune_coop_event event, const struct frame *frame)
{
    if (frame == NULL)
        attune_coop_cancel(video->loop, event);
    else
        attune_coop_submit_timer(video->loop, event,
                                 frame->presentation - video->window->display->ahead);
}

static void arm_lane(struct video_lane *lane)
{
    struct video *video = lane->video;
    unsigned chain = lane->chain != 0 ? lane->chain : choose_chain(video);
    int64_t importance =
        chain == 0 ? ATTUNE_COOP_NOTHING : frames_importance(&video->frames, chain);
    bool drain = lane->chain != 0 && importance == ATTUNE_COOP_NOTHING &&
                 frames_complete(&video->frames, lane->chain);
    /* What is under way stands in the way of what follows, and so matters as much. */
    if ((lane->lane.busy || drain) && lane->importance < importance)
        importance = lane->importance;
    if (importance == ATTUNE_COOP_NOTHING)
        attune_coop_cancel(video->loop, lane->decode);
    else
        attune_coop_submit_best_effort(video->loop, lane->decode, importance, ATTUNE_COOP_NEVER);
}

static void arm(struct video *video)
{
    if (video->finished)
        return;
    frames_prune(&video->frames);
    at(video, video->expire, frames_first(&video->frames, WAITING, DECODED));
    at(video, video->show, frames_first(&video->frames, READY, READY));
    const struct frame *convert = to_convert(video);
    if (convert == NULL)
        attune_coop_cancel(video->loop, video->convert);
    else
        attune_coop_submit_best_effort(video->loop, video->convert,
                                       (int64_t)(convert->presentation - 2 * WINDOW),
                                       ATTUNE_COOP_NEVER);
    for (int i = 0; i < LANES; i++)
        arm_lane(&video->lanes[i]);
    bool empty = video->frames.count == 0;
    bool wanted = video->last_read < attune_coop_now() + video->settings.lookahead || empty;
    if (!video->frames.ended && wanted && video->frames.count <= FRAMES - PACKETS)
        attune_coop_submit_best_effort(video->loop, video->read,
                                       (int64_t)(video->last_read - 2 * WINDOW), ATTUNE_COOP_NEVER);
    else if (video->frames.ended && empty) {
        for (int i = 0; i < LANES; i++)
            attune_coop_cancel(video->loop, video->lanes[i].decode);
        video->finished = true;
        video->at_end(video->data);
    }
}

/* ---- Beginning and end
 * ------------------------------------------------------------------------------------------- */

bool video_open(struct video *video, attune_coop_loop *loop, struct display *display,
                const char *path, const struct video_settings *settings, bool with_sound)
{
    *video = (struct video){.loop = loop, .settings = *settings};
    if (!film_open(&video->film, path, with_sound))
        return false;
    const AVCodecParameters *parameters = video->film.video->codecpar;
    /* What is decoded ahead, in turn by one lane and the other, and what a decoder keeps to refer
     * to. */
    int frames = (int)(settings->lookahead / video->film.frame_duration) / LANES + REFERENCES;
    for (int i = 0; i < LANES; i++) {
        struct video_lane *lane = &video->lanes[i];
        if (!lane_open(&lane->lane, loop, video->film.video_codec, parameters, frames, path))
            return false;
        lane->video = video;
        lane->lane.decoded = decoded;
        lane->lane.data = lane;
        lane->decode = attune_coop_event_new(loop, "decode", on_decode, lane);
    }
    video->packet = av_packet_alloc();
    if (video->packet == NULL)
        return fail("%s: no memory", path);
    const char *name = strrchr(path, '/');
    video->window = display->open_window(display, parameters->width, parameters->height,
                                         name == NULL ? path : name + 1);
    if (video->window == NULL)
        return false;
    if (!prepare_scaler(video, parameters->width, parameters->height, parameters->format))
        return fail("%s: FFmpeg cannot turn its pictures into those of a screen", path);
    video->window->drawn = on_drawn;
    video->window->data = video;
    video->read = attune_coop_event_new(loop, "read", on_read, video);
    video->convert = attune_coop_event_new(loop, "convert", on_convert, video);
    video->show = attune_coop_event_new(loop, "show", on_show, video);
    video->expire = attune_coop_event_new(loop, "expire", on_expire, video);
    return true;
}

void video_start(struct video *video, uint64_t start, struct sound *sound)
{
    video->start = video->last_read = start;
    video->sound = sound;
    arm(video);
}

void video_close(struct video *video)
{
    for (int i = 0; i < LANES; i++)
        lane_close(&video->lanes[i].lane);
    frames_clear(&video->frames);
    sws_freeContext(video->scaler);
    if (video->window != NULL)
        video->window->display->close_window(video->window);
    av_packet_free(&video->packet);
    film_close(&video->film);
    samples_free(&video->counts.tardiness);
    samples_free(&video->counts.drawn);
}
