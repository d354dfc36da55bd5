/* A film's file: packets in the order in which they must be decoded, each with its rank and the
 * chain it belongs to.
 *
 * A chain is a key frame and the frames up to the next one across which no frame refers: it can be
 * decoded without any other chain. In a film whose frames need no others each frame is a chain.
 * Times are nanoseconds from the film's beginning. */
#ifndef PLAYER_FILM_H
#define PLAYER_FILM_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <stdbool.h>
#include <stdint.h>

/* Packets of sound between two frames, and one; a film with more is taken for one in which a chain
 * begins. */
enum { FILM_HELD = 64 };

struct film {
    const char *path;
    AVFormatContext *format;
    AVStream *video, *audio; /* audio: NULL without */
    const AVCodec *video_codec, *audio_codec;
    bool independent; /* no frame needs another, as far as it is known */
    uint64_t independent_read;
    uint64_t frame_duration;      /* of most frames */
    AVCodecParserContext *parser; /* says what kind a frame is; NULL: the codec has none */
    AVCodecContext *parsed;
    /* read already, because what follows a key frame says whether a chain begins there */
    AVPacket *held[FILM_HELD];
    int holding;
    bool ended;
    unsigned chain;
};

struct film_packet {
    AVPacket *packet;
    bool video;
    uint64_t time; /* presentation */
    int rank;
    unsigned chain;
};

/* Says what is wrong when it fails. */
bool film_open(struct film *film, const char *path, bool with_sound);
void film_close(struct film *film);

/* The next packet into next->packet; false: there is none, or the file is broken from here on. */
bool film_read(struct film *film, struct film_packet *next);

#endif
