/* See forward.h. */
#include "forward.h"

#include <stdarg.h>
#include <stdio.h>

/* How this proxy signs its work. */
#define PSEUDONYM "attune-webserver"

void head_add(struct head *head, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t left = head->room - head->size;
    int size = vsnprintf(head->at + head->size, left, format, arguments);
    va_end(arguments);
    if (size < 0 || (size_t)size >= left)
        head->full = true;
    else
        head->size += (size_t)size;
}

/* For "%.*s". */
#define TEXT(text) (int)(text).size, (text).size > 0 ? (text).at : ""

static bool is_one_of(struct text name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text_is(name, names[i]))
            return true;
    return false;
}

#define IS_ONE_OF(name, names) is_one_of((name), (names), sizeof(names) / sizeof(names)[0])

/* Whether a Connection field says that the field of that name is the connection's. */
static bool is_nominated(struct text fields, struct text name)
{
    struct field field;
    while (text_field(&fields, &field) == FIELD_FOUND)
        if (text_is(field.name, "connection") && text_has(field.value, name))
            return true;
    return false;
}

static bool concerns_connection(struct text fields, struct text name)
{
    static const char *const names[] = {
        "connection",        "keep-alive",        "proxy-connection", "te",
        "trailer",           "transfer-encoding", "upgrade",          "proxy-authorization",
        "proxy-authenticate"};
    return IS_ONE_OF(name, names) || is_nominated(fields, name);
}

static void add_field(struct head *head, const struct field *field)
{
    head_add(head, "%.*s: %.*s\r\n", TEXT(field->name), TEXT(field->value));
}

void forward_request(struct head *head, const struct http_request *request, const char *client)
{
    /* These are written anew. What the client expects, the proxy does itself. */
    static const char *const own[] = {"host", "content-length", "expect", "x-forwarded-for"};
    struct text target = request->target;
    bool rooted = target.size > 0 && target.at[0] != '?';
    head_add(head, "%.*s %s%.*s HTTP/1.1\r\nHost: %.*s\r\n", TEXT(request->method),
             rooted ? "" : "/", TEXT(target), TEXT(request->host));
    struct text rest = request->fields;
    struct field field;
    while (text_field(&rest, &field) == FIELD_FOUND)
        if (!IS_ONE_OF(field.name, own) && !concerns_connection(request->fields, field.name))
            add_field(head, &field);
    head_add(head, "X-Forwarded-For: ");
    rest = request->fields;
    while (text_field(&rest, &field) == FIELD_FOUND)
        if (text_is(field.name, "x-forwarded-for"))
            head_add(head, "%.*s, ", TEXT(field.value));
    head_add(head, "%s\r\nVia: 1.%d " PSEUDONYM "\r\n", client, request->minor);
    if (request->chunked)
        head_add(head, "Transfer-Encoding: chunked\r\n");
    else if (request->body_size > 0 || text_value(request->fields, "content-length").at != NULL)
        head_add(head, "Content-Length: %llu\r\n", (unsigned long long)request->body_size);
    head_add(head, "\r\n");
}

void forward_reply(struct head *head, const struct http_reply *reply, bool kept)
{
    head_add(head, "HTTP/1.1 %d %.*s\r\n", reply->status, TEXT(reply->reason));
    struct text rest = reply->fields;
    struct field field;
    while (text_field(&rest, &field) == FIELD_FOUND)
        if (!text_is(field.name, "content-length") && !(kept && text_is(field.name, "age")) &&
            !concerns_connection(reply->fields, field.name))
            add_field(head, &field);
    head_add(head, "Via: 1.%d " PSEUDONYM "\r\n", reply->minor);
}
