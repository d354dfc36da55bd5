/* See freshness.h. */
#define _GNU_SOURCE
#include "freshness.h"

#include <string.h>

/* A number of seconds beyond this counts as this; RFC 9111, 1.2.2. */
#define LONG_TIME ((int64_t)1 << 31)

/* The directives of all Cache-Control fields. A time that is not there is -1; one that cannot be
 * read is 0, so that it allows nothing. */
struct directives {
    bool no_store, no_cache, private, only_if_cached, any;
    int64_t max_age, shared_max_age, min_fresh;
};

static int64_t seconds(struct text argument)
{
    uint64_t number;
    if (argument.size >= 2 && argument.at[0] == '"' && argument.at[argument.size - 1] == '"')
        argument = (struct text){argument.at + 1, argument.size - 2};
    if (!text_number(argument, &number))
        return 0;
    return number < (uint64_t)LONG_TIME ? (int64_t)number : LONG_TIME;
}

/* Keeps the shorter of two times. */
static void shorten(int64_t *time, struct text argument)
{
    int64_t other = seconds(argument);
    if (*time < 0 || other < *time)
        *time = other;
}

static void read_directive(struct text text, struct directives *directives)
{
    size_t size = text_token(text);
    struct text name = {text.at, size}, argument = {text.at + size, 0};
    if (size < text.size && text.at[size] == '=')
        argument = (struct text){text.at + size + 1, text.size - size - 1};
    if (text_is(name, "no-store"))
        directives->no_store = true;
    else if (text_is(name, "no-cache"))
        directives->no_cache = true;
    else if (text_is(name, "private"))
        directives->private = true;
    else if (text_is(name, "only-if-cached"))
        directives->only_if_cached = true;
    else if (text_is(name, "max-age"))
        shorten(&directives->max_age, argument);
    else if (text_is(name, "s-maxage"))
        shorten(&directives->shared_max_age, argument);
    else if (text_is(name, "min-fresh"))
        shorten(&directives->min_fresh, argument);
}

static const struct directives no_directives = {
    .max_age = -1, .shared_max_age = -1, .min_fresh = -1};

/* Adds those of one Cache-Control field. */
static void read_cache_control(struct text value, struct directives *directives)
{
    struct text directive;
    directives->any = true;
    while (text_element(&value, &directive))
        read_directive(directive, directives);
}

/* False: the field is not there. A date that cannot be read is long ago. */
static bool read_date(struct text fields, const char *name, time_t *date)
{
    struct text value = text_value(fields, name);
    if (value.at == NULL)
        return false;
    char copy[40];
    struct tm tm = {.tm_sec = 0};
    size_t size = value.size < sizeof copy ? value.size : sizeof copy - 1;
    memcpy(copy, value.at, size);
    copy[size] = 0;
    char *end = strptime(copy, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    *date = end != NULL && *end == 0 ? timegm(&tm) : 0;
    return true;
}

static int64_t lifetime_of(struct text fields, const struct directives *directives, time_t made)
{
    time_t expires;
    if (directives->shared_max_age >= 0)
        return directives->shared_max_age;
    if (directives->max_age >= 0)
        return directives->max_age;
    if (!read_date(fields, "expires", &expires) || expires <= made)
        return 0;
    return expires - made < LONG_TIME ? expires - made : LONG_TIME;
}

struct freshness freshness_of(const struct http_reply *reply, time_t now, int64_t delay)
{
    struct directives directives = no_directives;
    struct text rest = reply->fields;
    struct field field;
    while (text_field(&rest, &field) == FIELD_FOUND)
        if (text_is(field.name, "cache-control"))
            read_cache_control(field.value, &directives);
    struct text told = text_value(reply->fields, "age");
    time_t made;
    if (!read_date(reply->fields, "date", &made))
        made = now;
    struct freshness freshness = {.lifetime = lifetime_of(reply->fields, &directives, made)};
    int64_t apparent = now > made ? now - made : 0;
    freshness.age = (told.at != NULL ? seconds(told) : 0) + delay;
    if (apparent > freshness.age)
        freshness.age = apparent;
    freshness.storable = reply->status == 200 && !directives.no_store && !directives.no_cache &&
                         !directives.private && freshness.lifetime > freshness.age &&
                         text_value(reply->fields, "vary").at == NULL &&
                         text_value(reply->fields, "set-cookie").at == NULL;
    return freshness;
}

/* Fields that make a request one of its own, or its reply a part or an answer to a condition. */
static bool is_personal(struct text name)
{
    static const char *const personal[] = {
        "authorization",       "range",   "if-match", "if-none-match", "if-modified-since",
        "if-unmodified-since", "if-range"};
    for (size_t i = 0; i < sizeof personal / sizeof personal[0]; i++)
        if (text_is(name, personal[i]))
            return true;
    return false;
}

struct demand demand_of(const struct http_request *request)
{
    static const struct text no_cache = {"no-cache", 8};
    struct directives directives = no_directives;
    struct text rest = request->fields;
    struct field field;
    bool personal = false, pragma = false;
    while (text_field(&rest, &field) == FIELD_FOUND) {
        if (text_is(field.name, "cache-control"))
            read_cache_control(field.value, &directives);
        else if (text_is(field.name, "pragma"))
            pragma |= text_has(field.value, no_cache);
        else
            personal |= is_personal(field.name);
    }
    return (struct demand){
        .passes = personal || directives.no_store || request->chunked || request->body_size > 0,
        .renews = directives.no_cache || (pragma && !directives.any),
        .only_kept = directives.only_if_cached,
        .max_age = directives.max_age >= 0 ? directives.max_age : INT64_MAX,
        .min_fresh = directives.min_fresh >= 0 ? directives.min_fresh : 0,
    };
}
