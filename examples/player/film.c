/* See film.h. */
#include "film.h"

#include <libavutil/mathematics.h>

#include "importance.h"
#include "say.h"

/* A frame of a film that does not say how fast it is. */
#define USUAL_DURATION UINT64_C(40000000)

static AVStream *best(struct film *film, enum AVMediaType type, const AVCodec **codec)
{
    int found = av_find_best_stream(film->format, type, -1, -1, codec, 0);
    return found < 0 ? NULL : film->format->streams[found];
}

/* A film of a codec that could have dependencies has none if its first frames are all key frames.
 */
static bool look_for_dependencies(struct film *film)
{
    enum { FRAMES = 16 };
    AVPacket *packet = film->held[0];
    int frames = 0, keys = 0;
    while (frames < FRAMES && frames == keys && av_read_frame(film->format, packet) >= 0) {
        if (packet->stream_index == film->video->index) {
            frames++;
            keys += (packet->flags & AV_PKT_FLAG_KEY) != 0;
        }
        av_packet_unref(packet);
    }
    film->independent = frames > 1 && frames == keys;
    int error = av_seek_frame(
        film->format, -1, film->format->start_time == AV_NOPTS_VALUE ? 0 : film->format->start_time,
        AVSEEK_FLAG_BACKWARD);
    return error >= 0 ||
           fail("%s: going back to its beginning: %s", film->path, ffmpeg_error(error));
}

bool film_open(struct film *film, const char *path, bool with_sound)
{
    *film = (struct film){.path = path};
    int error = avformat_open_input(&film->format, path, NULL, NULL);
    if (error < 0)
        return fail("%s: %s", path, ffmpeg_error(error));
    film->format->flags |= AVFMT_FLAG_GENPTS;
    if ((error = avformat_find_stream_info(film->format, NULL)) < 0)
        return fail("%s: looking for its streams: %s", path, ffmpeg_error(error));
    film->video = best(film, AVMEDIA_TYPE_VIDEO, &film->video_codec);
    if (film->video == NULL) {
        int undecoded = av_find_best_stream(film->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
        if (undecoded < 0)
            return fail("%s: there are no pictures in it", path);
        enum AVCodecID id = film->format->streams[undecoded]->codecpar->codec_id;
        return fail("%s: this FFmpeg has no decoder for its pictures (%s)", path,
                    avcodec_get_name(id));
    }
    if (with_sound)
        film->audio = best(film, AVMEDIA_TYPE_AUDIO, &film->audio_codec);
    for (unsigned i = 0; i < film->format->nb_streams; i++) {
        AVStream *stream = film->format->streams[i];
        stream->discard =
            stream == film->video || stream == film->audio ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    }
    const AVCodecParameters *parameters = film->video->codecpar;
    if (parameters->width <= 0 || parameters->height <= 0 || parameters->format < 0)
        return fail("%s: nothing in it says how large its pictures are; is it whole?", path);
    AVRational rate = film->video->avg_frame_rate;
    film->frame_duration = rate.num > 0 ? (uint64_t)(av_q2d(av_inv_q(rate)) * 1e9) : USUAL_DURATION;
    film->parser = av_parser_init(parameters->codec_id);
    film->parsed = avcodec_alloc_context3(film->video_codec);
    bool memory = film->parsed != NULL;
    for (int i = 0; i < FILM_HELD; i++)
        memory = (film->held[i] = av_packet_alloc()) != NULL && memory;
    if (!memory || avcodec_parameters_to_context(film->parsed, parameters) < 0)
        return fail("%s: no memory", path);
    if (film->parser != NULL)
        film->parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
    const AVCodecDescriptor *descriptor = avcodec_descriptor_get(parameters->codec_id);
    film->independent = descriptor != NULL && (descriptor->props & AV_CODEC_PROP_INTRA_ONLY) != 0;
    return film->independent || look_for_dependencies(film);
}

void film_close(struct film *film)
{
    if (film->parser != NULL)
        av_parser_close(film->parser);
    for (int i = 0; i < FILM_HELD; i++)
        av_packet_free(&film->held[i]);
    avcodec_free_context(&film->parsed);
    avformat_close_input(&film->format);
}

static uint64_t time_of(const struct film *film, const AVPacket *packet)
{
    const AVStream *stream = film->format->streams[packet->stream_index];
    int64_t time = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    int64_t start = film->format->start_time != AV_NOPTS_VALUE ? film->format->start_time : 0;
    int64_t since = av_rescale_q(time == AV_NOPTS_VALUE ? 0 : time, stream->time_base,
                                 (AVRational){1, 1000000000});
    since -= av_rescale(start, 1000000000, AV_TIME_BASE);
    return since > 0 ? (uint64_t)since : 0;
}

/* The nal_ref_idc of an H.264 picture: 0 when no other refers to it. -1: there is none in the
 * packet. */
static int h264_reference(const AVPacket *packet, const AVCodecParameters *parameters)
{
    const uint8_t *at = packet->data, *end = packet->data + packet->size;
    bool lengths = parameters->extradata_size > 4 && parameters->extradata[0] == 1;
    int bytes = lengths ? (parameters->extradata[4] & 3) + 1 : 0;
    while (at < end) {
        uint32_t length = 0;
        if (lengths) {
            if (end - at <= bytes)
                return -1;
            for (int i = 0; i < bytes; i++)
                length = length << 8 | *at++;
        } else {
            while (end - at > 3 && (at[0] != 0 || at[1] != 0 || at[2] != 1))
                at++;
            if (end - at <= 3)
                return -1;
            at += 3;
        }
        int type = *at & 31;
        if (type == 1 || type == 5)
            return *at >> 5 & 3;
        if (length > (uint32_t)(end - at))
            return -1;
        at += length;
    }
    return -1;
}

static int rank_of(struct film *film, const AVPacket *packet)
{
    if ((packet->flags & AV_PKT_FLAG_KEY) != 0)
        return 0;
    enum AVCodecID codec = film->video->codecpar->codec_id;
    int type = AV_PICTURE_TYPE_NONE;
    if (film->parser != NULL) {
        uint8_t *out;
        int size;
        av_parser_parse2(film->parser, film->parsed, &out, &size, packet->data, packet->size,
                         packet->pts, packet->dts, packet->pos);
        type = film->parser->pict_type;
    }
    bool old = codec == AV_CODEC_ID_MPEG1VIDEO || codec == AV_CODEC_ID_MPEG2VIDEO ||
               codec == AV_CODEC_ID_MPEG4;
    if ((packet->flags & AV_PKT_FLAG_DISPOSABLE) != 0 || (old && type == AV_PICTURE_TYPE_B) ||
        (codec == AV_CODEC_ID_H264 && h264_reference(packet, film->video->codecpar) == 0))
        return DISPOSABLE;
    return type == AV_PICTURE_TYPE_B ? 2 : 1;
}

static bool read_wanted(struct film *film, AVPacket *packet)
{
    while (!film->ended) {
        if (av_read_frame(film->format, packet) < 0) {
            film->ended = true;
            break;
        }
        if (packet->stream_index == film->video->index ||
            (film->audio != NULL && packet->stream_index == film->audio->index))
            return true;
        av_packet_unref(packet);
    }
    return false;
}

static bool next_packet(struct film *film, AVPacket *packet)
{
    if (film->holding == 0)
        return read_wanted(film, packet);
    AVPacket *first = film->held[0];
    av_packet_move_ref(packet, first);
    film->holding--;
    memmove(&film->held[0], &film->held[1], (size_t)film->holding * sizeof film->held[0]);
    film->held[film->holding] = first;
    return true;
}

/* The next frame's packet, which stays where it is; NULL: there is none, or it is far. */
static const AVPacket *following_frame(struct film *film)
{
    for (int i = 0; i < FILM_HELD; i++) {
        if (i == film->holding && !read_wanted(film, film->held[film->holding++])) {
            film->holding--;
            return NULL;
        }
        if (film->held[i]->stream_index == film->video->index)
            return film->held[i];
    }
    return NULL;
}

bool film_read(struct film *film, struct film_packet *next)
{
    if (!next_packet(film, next->packet))
        return false;
    next->time = time_of(film, next->packet);
    next->video = next->packet->stream_index == film->video->index;
    if (!next->video)
        return true;
    next->rank = rank_of(film, next->packet);
    if (next->rank == 0) {
        /* A frame that is shown before the key frame, and decoded after it, refers to what came
         * before it. */
        const AVPacket *following = following_frame(film);
        film->chain += following == NULL || time_of(film, following) >= next->time;
    } else {
        film->independent = false;
    }
    if (film->independent)
        next->rank = importance_rank_of_independent(film->independent_read++);
    next->chain = film->chain;
    return true;
}
