/* See body.h. */
#include "body.h"

#include <string.h>

/* A chunk's head (size and extension), and the whole trailer, may be no longer. */
#define MAX_OVERHEAD 4096

enum state {
    SIZE,      /* hexadecimal digits */
    EXTENSION, /* the rest of a chunk's first line */
    CONTENT,
    CONTENT_CR,
    CONTENT_LF,
    TRAILER_LINE, /* at the beginning of a line */
    TRAILER,      /* inside a line */
    TRAILER_LF    /* behind the carriage return of an empty line */
};

struct body body_of_length(uint64_t length)
{
    return (struct body){.form = BODY_LENGTH, .left = length};
}

struct body body_of_chunks(void)
{
    return (struct body){.form = BODY_CHUNKED, .state = SIZE};
}

struct body body_until_close(void)
{
    return (struct body){.form = BODY_UNTIL_CLOSE, .left = UINT64_MAX};
}

static enum body_found take_content(struct body *body, struct text *bytes, struct text *content)
{
    if (bytes->size == 0)
        return BODY_MORE;
    size_t size = bytes->size < body->left ? bytes->size : (size_t)body->left;
    *content = (struct text){bytes->at, size};
    *bytes = (struct text){bytes->at + size, bytes->size - size};
    if (body->form != BODY_UNTIL_CLOSE)
        body->left -= size;
    return BODY_CONTENT;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c != 0 ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;
    return found != NULL ? (int)(found - digits) : -1;
}

/* The line feed that ends a chunk's first line. */
static void chunk_begins(struct body *body)
{
    body->overhead = 0;
    body->state = body->left > 0 ? CONTENT : TRAILER_LINE;
}

/* One byte of what stands around the content. False: it cannot stand there. */
static bool take_frame(struct body *body, char c)
{
    switch ((enum state)body->state) {
    case SIZE: {
        int digit = hex_digit(c);
        if (digit >= 0) {
            body->left = body->left << 4 | (unsigned)digit;
            return ++body->overhead <= 15; /* below 2^60 */
        }
        if (body->overhead == 0)
            return false;
        body->state = EXTENSION;
        return c == '\r' || c == ';' || c == ' ' || c == '\t';
    }
    case EXTENSION:
        if (c != '\n')
            return ++body->overhead <= MAX_OVERHEAD;
        chunk_begins(body);
        return true;
    case CONTENT_CR:
        body->state = CONTENT_LF;
        return c == '\r';
    case CONTENT_LF:
        body->state = SIZE;
        return c == '\n';
    case TRAILER_LINE:
        body->state = c == '\r' ? TRAILER_LF : TRAILER;
        return c != '\n' && ++body->overhead <= MAX_OVERHEAD;
    case TRAILER:
        if (c == '\n')
            body->state = TRAILER_LINE;
        return ++body->overhead <= MAX_OVERHEAD;
    case CONTENT:
    case TRAILER_LF:
        break;
    }
    return false;
}

static enum body_found take_chunks(struct body *body, struct text *bytes, struct text *content)
{
    while (bytes->size > 0) {
        if (body->state == CONTENT) {
            enum body_found found = take_content(body, bytes, content);
            if (body->left == 0)
                body->state = CONTENT_CR;
            return found;
        }
        char c = bytes->at[0];
        *bytes = (struct text){bytes->at + 1, bytes->size - 1};
        if (body->state == TRAILER_LF)
            return c == '\n' ? BODY_END : BODY_BAD;
        if (!take_frame(body, c))
            return BODY_BAD;
    }
    return BODY_MORE;
}

enum body_found body_take(struct body *body, struct text *bytes, struct text *content)
{
    if (body->form == BODY_CHUNKED)
        return take_chunks(body, bytes, content);
    if (body->left == 0)
        return BODY_END;
    return take_content(body, bytes, content);
}
