/* See http.h. */
#define _GNU_SOURCE
#include "http.h"

#include <string.h>
#include <strings.h>

/* Bytes of empty lines that are forgiven before a request. */
#define MAX_BLANK 8

enum http_scan http_scan_head(const char *bytes, size_t size, size_t *scanned)
{
    size_t i = *scanned;
    while (i < size) {
        unsigned char c = (unsigned char)bytes[i];
        if (c < ' ' && c != '\r' && c != '\n' && c != '\t')
            return HTTP_GARBAGE;
        i++;
        if (c != '\n')
            continue;
        /* An empty line ends the head, unless nothing but empty lines came before it: some clients
         * send one too many. */
        size_t end = i - 1, blank = 0;
        if (end > 0 && bytes[end - 1] == '\r')
            end--;
        while (blank < end && (bytes[blank] == '\r' || bytes[blank] == '\n'))
            blank++;
        if (blank > MAX_BLANK)
            return HTTP_GARBAGE;
        bool empty = end == 0 || bytes[end - 1] == '\n';
        if (empty && blank < end) {
            *scanned = i;
            return HTTP_COMPLETE;
        }
    }
    *scanned = i;
    return HTTP_INCOMPLETE;
}

/* What the header fields say together. */
struct fields {
    int hosts, lengths, codings;
    bool chunked, close, keep_alive, expects_continue, bad, too_many;
    uint64_t length;
    struct text host;
};

static void read_field(struct field field, struct fields *fields)
{
    static const struct text close = {"close", 5}, keep_alive = {"keep-alive", 10};
    static const struct text go_on = {"100-continue", 12};
    if (text_is(field.name, "host")) {
        fields->hosts++;
        fields->host = field.value;
    } else if (text_is(field.name, "connection")) {
        fields->close |= text_has(field.value, close);
        fields->keep_alive |= text_has(field.value, keep_alive);
    } else if (text_is(field.name, "content-length")) {
        uint64_t length = 0;
        if (!text_number(field.value, &length) || (fields->lengths > 0 && fields->length != length))
            fields->bad = true;
        fields->lengths++;
        fields->length = length;
    } else if (text_is(field.name, "transfer-encoding")) {
        fields->codings++;
        fields->chunked = text_is(field.value, "chunked");
    } else if (text_is(field.name, "expect")) {
        fields->expects_continue |= text_has(field.value, go_on);
    }
}

static struct fields read_fields(struct text rest)
{
    struct fields fields = {.hosts = 0};
    struct field field;
    enum field_found found;
    for (int count = 0; (found = text_field(&rest, &field)) == FIELD_FOUND; count++) {
        if (count == HTTP_FIELDS)
            fields.too_many = true;
        read_field(field, &fields);
    }
    fields.bad |= found == FIELD_BAD || (fields.lengths > 0 && fields.codings > 0);
    return fields;
}

/* Takes "HTTP/1.x" apart. 200, 400, or 505 for another version. */
static int read_version(struct text text, int *minor)
{
    const char *c = text.at;
    if (text.size != 8 || memcmp(c, "HTTP/", 5) != 0 || c[6] != '.' || c[5] < '0' || c[5] > '9' ||
        c[7] < '0' || c[7] > '9')
        return 400;
    *minor = c[7] > '0';
    return c[5] == '1' ? 200 : 505;
}

/* A target is "/path?query", "http://host/path?query", or anything else, which stays as it is. */
static void split_target(struct http_request *request)
{
    static const char scheme[] = "http://";
    struct text *target = &request->target;
    size_t size = sizeof scheme - 1;
    if (target->size < size || strncasecmp(target->at, scheme, size) != 0)
        return;
    struct text rest = {target->at + size, target->size - size};
    size_t host = 0;
    while (host < rest.size && strchr("/?#", rest.at[host]) == NULL)
        host++;
    if (host == 0)
        return;
    request->host = (struct text){rest.at, host};
    *target = (struct text){rest.at + host, rest.size - host};
}

static int read_request_line(struct text line, size_t target_limit, struct http_request *request)
{
    size_t method = text_token(line);
    if (method == 0 || method == line.size || line.at[method] != ' ')
        return 400;
    struct text rest = {line.at + method + 1, line.size - method - 1};
    const char *space = memchr(rest.at, ' ', rest.size);
    if (space == NULL || space == rest.at)
        return 400;
    request->method = (struct text){line.at, method};
    request->target = (struct text){rest.at, (size_t)(space - rest.at)};
    for (size_t i = 0; i < request->target.size; i++)
        if ((unsigned char)request->target.at[i] <= ' ' || request->target.at[i] == 0x7f)
            return 400;
    int status = read_version((struct text){space + 1, rest.size - request->target.size - 1},
                              &request->minor);
    if (status != 200)
        return status;
    if (request->target.size > target_limit)
        return 414;
    split_target(request);
    return 200;
}

int http_read_request(const char *head, size_t size, size_t target_limit,
                      struct http_request *request)
{
    *request = (struct http_request){.keep_alive = false};
    struct text rest = {head, size}, line;
    do {
        if (!text_line(&rest, &line))
            return 400;
    } while (line.size == 0);
    int status = read_request_line(line, target_limit, request);
    if (status == 400 || status == 505)
        return status;

    struct fields fields = read_fields(rest);
    request->fields = rest;
    if (fields.bad || fields.hosts > 1 || (request->minor > 0 && fields.hosts == 0) ||
        (request->minor == 0 && fields.codings > 0))
        return 400;
    if (fields.too_many)
        return 431;
    if (status != 200)
        return status;
    if (fields.codings > 1 || (fields.codings == 1 && !fields.chunked))
        return 501;
    /* a host in the target overrules the field */
    if (request->host.at == NULL)
        request->host = fields.host;
    request->head_only = request->method.size == 4 && memcmp(request->method.at, "HEAD", 4) == 0;
    request->keep_alive = !fields.close && (request->minor > 0 || fields.keep_alive);
    request->expects_continue = fields.expects_continue && request->minor > 0;
    request->chunked = fields.chunked;
    request->body_size = fields.length;
    return 200;
}

/* 200 for those served, 405 for those that exist, 501 for others. Methods are case-sensitive. */
static int method_status(struct text method)
{
    static const struct {
        const char *name;
        int status;
    } known[] = {{"GET", 200},     {"HEAD", 200},  {"POST", 405},  {"PUT", 405},    {"DELETE", 405},
                 {"OPTIONS", 405}, {"PATCH", 405}, {"TRACE", 405}, {"CONNECT", 405}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].name) == method.size &&
            memcmp(known[i].name, method.at, method.size) == 0)
            return known[i].status;
    return 501;
}

int http_parse(char *head, size_t size, size_t target_limit, struct http_request *request)
{
    int status = http_read_request(head, size, target_limit, request);
    if (status != 200 && status != 414)
        return status;
    if (method_status(request->method) != 200)
        return method_status(request->method);
    if (status == 414)
        return status;
    if (request->chunked) /* a body of unknown size, for a method that has no use for one */
        return 501;
    /* The target lies inside the head. "http://host" means its root; there is room, the host stood
     * before it. */
    char *path = head + (request->target.at - head);
    bool root =
        request->target.size == 0 || (request->target.at[0] == '?' || request->target.at[0] == '#');
    if (root && request->target.at > request->method.at + request->method.size + 1)
        *--path = '/';
    size_t length = 0;
    if (root)
        length = 1;
    else
        while (length < request->target.size && path[length] != '?' && path[length] != '#')
            length++;
    if (!http_normalise_path(path, length))
        return 400;
    request->path = path;
    return 200;
}

bool http_read_reply(const char *head, size_t size, struct http_reply *reply)
{
    *reply = (struct http_reply){.status = 0};
    struct text rest = {head, size}, line;
    if (!text_line(&rest, &line) || line.size < 12 || line.at[8] != ' ' ||
        read_version((struct text){line.at, 8}, &reply->minor) != 200)
        return false;
    uint64_t status;
    if (!text_number((struct text){line.at + 9, 3}, &status) || status < 100 ||
        (line.size > 12 && line.at[12] != ' ') || memchr(line.at, '\r', line.size) != NULL)
        return false;
    reply->status = (int)status;
    if (line.size > 13)
        reply->reason = (struct text){line.at + 13, line.size - 13};

    struct fields fields = read_fields(rest);
    if (fields.bad || fields.too_many || fields.codings > 1 ||
        (fields.codings == 1 && !fields.chunked))
        return false;
    reply->fields = rest;
    reply->keep_alive = !fields.close && (reply->minor > 0 || fields.keep_alive);
    reply->has_length = fields.lengths > 0;
    reply->length = fields.length;
    reply->chunked = fields.chunked;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool decode(char *path, size_t *size)
{
    size_t to = 0;
    for (size_t from = 0; from < *size; from++) {
        char c = path[from];
        if (c == '%') {
            int high = from + 1 < *size ? hex_digit(path[from + 1]) : -1;
            int low = high >= 0 && from + 2 < *size ? hex_digit(path[from + 2]) : -1;
            if (low < 0 || high * 16 + low == 0)
                return false;
            c = (char)(high * 16 + low);
            from += 2;
        }
        path[to++] = c;
    }
    *size = to;
    return true;
}

bool http_normalise_path(char *path, size_t size)
{
    if (size == 0 || path[0] != '/' || !decode(path, &size))
        return false;
    /* path[0..to] is normal and has no '/' at its end */
    size_t to = 0;
    for (size_t from = 0; from < size;) {
        from++; /* the '/' before the segment */
        size_t end = from;
        while (end < size && path[end] != '/')
            end++;
        size_t segment = end - from;
        bool last = end >= size;
        bool here = segment == 0 || (segment == 1 && path[from] == '.');
        if (segment == 2 && path[from] == '.' && path[from + 1] == '.') {
            if (to == 0)
                return false;
            while (path[--to] != '/') {
            }
            here = true;
        }
        if (!here) {
            path[to++] = '/';
            memmove(path + to, path + from, segment);
            to += segment;
        } else if (last) {
            path[to++] = '/'; /* a directory */
        }
        from = end;
    }
    path[to] = 0;
    return true;
}

const char *http_reason(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 413:
        return "Content Too Large";
    case 414:
        return "URI Too Long";
    case 431:
        return "Request Header Fields Too Large";
    case 501:
        return "Not Implemented";
    case 502:
        return "Bad Gateway";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Error";
    }
}

const char *http_content_type(const char *path)
{
    static const struct {
        const char *extension, *type;
    } types[] = {
        {"html", "text/html; charset=utf-8"},
        {"htm", "text/html; charset=utf-8"},
        {"css", "text/css; charset=utf-8"},
        {"txt", "text/plain; charset=utf-8"},
        {"js", "text/javascript; charset=utf-8"},
        {"json", "application/json"},
        {"xml", "application/xml"},
        {"svg", "image/svg+xml"},
        {"png", "image/png"},
        {"jpg", "image/jpeg"},
        {"jpeg", "image/jpeg"},
        {"gif", "image/gif"},
        {"webp", "image/webp"},
        {"ico", "image/x-icon"},
        {"pdf", "application/pdf"},
        {"woff2", "font/woff2"},
        {"wasm", "application/wasm"},
        {"mp4", "video/mp4"},
    };
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof types / sizeof types[0]; i++)
        if (strcasecmp(dot + 1, types[i].extension) == 0)
            return types[i].type;
    return "application/octet-stream";
}
