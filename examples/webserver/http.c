/* See http.h. */
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

/* What is left to read of the head. */
struct cursor {
    char *at, *end;
};

/* The next line without its line end, cut to a string in place; false at the end. */
static bool next_line(struct cursor *cursor, char **line, size_t *size)
{
    char *newline = memchr(cursor->at, '\n', (size_t)(cursor->end - cursor->at));
    if (newline == NULL)
        return false;
    *line = cursor->at;
    cursor->at = newline + 1;
    if (newline > *line && newline[-1] == '\r')
        newline--;
    *newline = 0;
    *size = (size_t)(newline - *line);
    return true;
}

static bool is_token_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static size_t token_size(const char *text)
{
    size_t size = 0;
    while (is_token_char((unsigned char)text[size]))
        size++;
    return size;
}

static bool is(const char *text, size_t size, const char *word)
{
    return strlen(word) == size && strncasecmp(text, word, size) == 0;
}

/* Whether a comma-separated list has the word. */
static bool list_has(const char *list, const char *word)
{
    while (*list != 0) {
        list += strspn(list, ", \t");
        size_t size = strcspn(list, ", \t");
        if (is(list, size, word))
            return true;
        list += size;
    }
    return false;
}

static bool parse_number(const char *text, uint64_t *number)
{
    if (*text == 0)
        return false;
    uint64_t value = 0;
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9' || value > (UINT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *number = value;
    return true;
}

/* 200 for those served, 405 for those that exist, 501 for others. Methods are case-sensitive. */
static int method_status(const char *method, bool *head_only)
{
    static const char *const known[] = {"POST",  "PUT",   "DELETE", "OPTIONS",
                                        "PATCH", "TRACE", "CONNECT"};
    *head_only = strcmp(method, "HEAD") == 0;
    if (*head_only || strcmp(method, "GET") == 0)
        return 200;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(method, known[i]) == 0)
            return 405;
    return 501;
}

/* The path of a target, which is "/path?query" or "http://host/path?query"; NULL if it is neither.
 */
static char *target_path(char *target, size_t *size)
{
    static const char scheme[] = "http://";
    if (strncasecmp(target, scheme, sizeof scheme - 1) == 0) {
        target += sizeof scheme - 1;
        size_t host = strcspn(target, "/?#");
        if (host == 0)
            return NULL;
        target += host;
        if (*target !=
            '/') { /* "http://host" means its root; there is room, the scheme stood before it */
            target--;
            *target = '/';
            target[1] = 0;
        }
    }
    if (*target != '/')
        return NULL;
    *size = strcspn(target, "?#");
    return target;
}

static int parse_request_line(char *line, size_t size, size_t target_limit,
                              struct http_request *request, int *minor)
{
    size_t method = token_size(line);
    if (method == 0 || line[method] != ' ')
        return 400;
    char *target = line + method + 1;
    char *version = memchr(target, ' ', size - method - 1);
    if (version == NULL || version == target)
        return 400;
    line[method] = 0;
    *version++ = 0;
    if (strncmp(version, "HTTP/", 5) != 0 || strlen(version) != 8 || version[6] != '.' ||
        version[5] < '0' || version[5] > '9' || version[7] < '0' || version[7] > '9')
        return 400;
    if (version[5] != '1')
        return 505;
    *minor = version[7] > '0';
    int status = method_status(line, &request->head_only);
    if (status != 200)
        return status;
    if (strlen(target) > target_limit)
        return 414;
    char *path = target_path(target, &size);
    if (path == NULL || !http_normalise_path(path, size))
        return 400;
    request->path = path;
    return 200;
}

/* What the header fields say together. */
struct fields {
    int hosts;
    bool has_length, has_coding, close, keep_alive, expects_continue, bad;
    uint64_t length;
};

static void parse_field(char *line, size_t size, struct fields *fields)
{
    size_t name = token_size(line);
    if (name == 0 || line[name] != ':') { /* also a folded line, and a space before the colon */
        fields->bad = true;
        return;
    }
    for (char *c = line + name; c < line + size; c++)
        if (*c == '\r')
            fields->bad = true;
    char *value = line + name + 1;
    value += strspn(value, " \t");
    for (char *end = line + size; end > value && (end[-1] == ' ' || end[-1] == '\t'); end--)
        end[-1] = 0;
    if (is(line, name, "host")) {
        fields->hosts++;
    } else if (is(line, name, "connection")) {
        fields->close |= list_has(value, "close");
        fields->keep_alive |= list_has(value, "keep-alive");
    } else if (is(line, name, "content-length")) {
        uint64_t length = 0;
        if (!parse_number(value, &length) || (fields->has_length && fields->length != length))
            fields->bad = true;
        fields->has_length = true;
        fields->length = length;
    } else if (is(line, name, "transfer-encoding")) {
        fields->has_coding = true;
    } else if (is(line, name, "expect")) {
        fields->expects_continue |= list_has(value, "100-continue");
    }
}

int http_parse(char *head, size_t size, size_t target_limit, struct http_request *request)
{
    *request = (struct http_request){.keep_alive = false};
    struct cursor cursor = {head, head + size};
    char *line;
    size_t length;
    do {
        if (!next_line(&cursor, &line, &length))
            return 400;
    } while (length == 0);
    int minor = 0;
    int status = parse_request_line(line, length, target_limit, request, &minor);

    struct fields fields = {.hosts = 0};
    while (next_line(&cursor, &line, &length) && length > 0)
        parse_field(line, length, &fields);
    if (fields.bad || fields.hosts > 1 || (minor > 0 && fields.hosts == 0) ||
        (fields.has_length && fields.has_coding))
        return status == 505 ? 505 : 400;
    if (status != 200)
        return status;
    if (fields.has_coding) /* a body of unknown size, for a method that has no use for one */
        return 501;
    request->keep_alive = !fields.close && (minor > 0 || fields.keep_alive);
    request->expects_continue = fields.expects_continue;
    request->body_size = fields.length;
    return 200;
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
