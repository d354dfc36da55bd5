/* Pieces of HTTP text: lines, fields, lists and numbers, as slices of bytes that stay as they are.
 *
 * Invariant: nothing outside of the given slices is read, whatever the bytes. Names and words
 * compare without regard to case, as fields and their values do. */
#ifndef WEBSERVER_TEXT_H
#define WEBSERVER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes inside a larger text; they do not end in 0. */
struct text {
    const char *at;
    size_t size;
};

bool text_is(struct text text, const char *word);
bool text_same(struct text a, struct text b);

/* Decimal digits and nothing else, below 2^64. */
bool text_number(struct text text, uint64_t *number);

/* How many bytes at the front may stand in a token: a method, a field's name. */
size_t text_token(struct text text);

/* Takes the next line off *rest, without its line end. False: no line end is left. */
bool text_line(struct text *rest, struct text *line);

struct field {
    struct text name, value;
};

enum field_found {
    FIELD_FOUND,
    FIELD_NONE, /* the empty line, or the end of the text */
    FIELD_BAD   /* a folded line, a space before the colon, a lone carriage return */
};

/* Takes the next field off *rest. */
enum field_found text_field(struct text *rest, struct field *field);

/* The value of the first field of that name; its `at` is NULL if there is none. */
struct text text_value(struct text fields, const char *name);

/* Takes the next element of a comma-separated list off *list; commas in quotes separate nothing,
 * and empty elements do not count. False: none is left. */
bool text_element(struct text *list, struct text *element);

/* Whether a comma-separated list has the word. */
bool text_has(struct text list, struct text word);

#endif
