/* See text.h. */
#define _GNU_SOURCE
#include "text.h"

#include <string.h>
#include <strings.h>

bool text_same(struct text a, struct text b)
{
    return a.size == b.size && (a.size == 0 || strncasecmp(a.at, b.at, a.size) == 0);
}

bool text_is(struct text text, const char *word)
{
    return text_same(text, (struct text){word, strlen(word)});
}

bool text_number(struct text text, uint64_t *number)
{
    if (text.size == 0)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.at[i];
        if (c < '0' || c > '9' || value > (UINT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (uint64_t)(c - '0');
    }
    *number = value;
    return true;
}

static bool is_token_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

size_t text_token(struct text text)
{
    size_t size = 0;
    while (size < text.size && is_token_char((unsigned char)text.at[size]))
        size++;
    return size;
}

bool text_line(struct text *rest, struct text *line)
{
    const char *newline = rest->size > 0 ? memchr(rest->at, '\n', rest->size) : NULL;
    if (newline == NULL)
        return false;
    size_t whole = (size_t)(newline - rest->at) + 1, size = whole - 1;
    if (size > 0 && rest->at[size - 1] == '\r')
        size--;
    *line = (struct text){rest->at, size};
    *rest = (struct text){rest->at + whole, rest->size - whole};
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct text trimmed(struct text text)
{
    while (text.size > 0 && is_blank(text.at[0]))
        text = (struct text){text.at + 1, text.size - 1};
    while (text.size > 0 && is_blank(text.at[text.size - 1]))
        text.size--;
    return text;
}

enum field_found text_field(struct text *rest, struct field *field)
{
    struct text line;
    if (!text_line(rest, &line) || line.size == 0)
        return FIELD_NONE;
    size_t name = text_token(line);
    if (name == 0 || name == line.size || line.at[name] != ':' ||
        memchr(line.at, '\r', line.size) != NULL)
        return FIELD_BAD;
    field->name = (struct text){line.at, name};
    field->value = trimmed((struct text){line.at + name + 1, line.size - name - 1});
    return FIELD_FOUND;
}

struct text text_value(struct text fields, const char *name)
{
    struct field field;
    while (text_field(&fields, &field) == FIELD_FOUND)
        if (text_is(field.name, name))
            return field.value;
    return (struct text){NULL, 0};
}

bool text_element(struct text *list, struct text *element)
{
    while (list->size > 0) {
        size_t size = 0;
        bool quoted = false;
        for (; size < list->size && (quoted || list->at[size] != ','); size++) {
            if (list->at[size] == '"')
                quoted = !quoted;
            else if (quoted && list->at[size] == '\\' && size + 1 < list->size)
                size++;
        }
        *element = trimmed((struct text){list->at, size});
        size_t taken = size < list->size ? size + 1 : size;
        *list = (struct text){list->at + taken, list->size - taken};
        if (element->size > 0)
            return true;
    }
    return false;
}

bool text_has(struct text list, struct text word)
{
    struct text element;
    while (text_element(&list, &element))
        if (text_same(element, word))
            return true;
    return false;
}
