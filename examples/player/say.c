/* See say.h. */
#include "say.h"

#include <libavutil/error.h>
#include <stdarg.h>
#include <stdio.h>

bool fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("player: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

const char *ffmpeg_error(int error)
{
    static char text[AV_ERROR_MAX_STRING_SIZE];
    return av_strerror(error, text, sizeof text) == 0 ? text : "unknown error";
}
