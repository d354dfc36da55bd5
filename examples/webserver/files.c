/* See files.h. */
#define _GNU_SOURCE
#include "files.h"
#include "http.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 64

static bool complain(const char *what, const char *reason)
{
    fprintf(stderr, "webserver: %s: %s\n", what, reason);
    return false;
}

/* Takes path and body over, also when it fails. */
static bool add(struct files *files, char *path, char *body, size_t size)
{
    if (files->count == files->room) {
        size_t room = files->room != 0 ? files->room * 2 : 64;
        struct file *grown = realloc(files->file, room * sizeof *grown);
        if (grown == NULL) {
            free(path);
            free(body);
            return complain("files", "out of memory");
        }
        files->file = grown;
        files->room = room;
    }
    struct file *file = &files->file[files->count++];
    *file = (struct file){.path = path, .body = body, .size = size};
    file->head_size = (size_t)snprintf(file->head, sizeof file->head,
                                       "Content-Type: %s\r\nContent-Length: %zu\r\n",
                                       http_content_type(path), size);
    files->bytes += size;
    return true;
}

static bool read_all(int fd, char *body, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(fd, body + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool load_file(struct files *files, int fd, const char *path)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return complain(path, strerror(errno));
    size_t size = (size_t)status.st_size;
    char *body = malloc(size != 0 ? size : 1);
    char *copy = strdup(path);
    if (body == NULL || copy == NULL) {
        free(body);
        free(copy);
        return complain(path, "out of memory");
    }
    if (!read_all(fd, body, size)) {
        free(body);
        free(copy);
        return complain(path, "cannot be read, or became shorter meanwhile");
    }
    return add(files, copy, body, size);
}

/* path is the directory's, without a slash at its end. Takes fd over. */
static bool load_directory(struct files *files, int fd, const char *path, int depth)
{
    DIR *directory = fdopendir(fd);
    if (directory == NULL) {
        close(fd);
        return complain(path, strerror(errno));
    }
    bool fine = depth < MAX_DEPTH || complain(path, "directories too deep");
    struct dirent *entry;
    while (fine && (entry = readdir(directory)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        char *child = NULL;
        if (asprintf(&child, "%s/%s", path, entry->d_name) < 0) {
            fine = complain(path, "out of memory");
            break;
        }
        struct stat status;
        int inner = -1;
        if (fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            fine = complain(child, strerror(errno));
        } else if (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)) {
            /* O_NONBLOCK: if it has just become a pipe, opening must not hang. */
            inner = openat(fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
            if (inner < 0)
                fine = complain(child, strerror(errno));
        }
        if (inner >= 0 && S_ISDIR(status.st_mode)) {
            fine = load_directory(files, inner, child, depth + 1);
        } else if (inner >= 0) {
            fine = load_file(files, inner, child);
            close(inner);
        }
        free(child);
    }
    closedir(directory);
    return fine;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->path, ((const struct file *)b)->path);
}

static void sort(struct files *files)
{
    if (files->count > 0)
        qsort(files->file, files->count, sizeof *files->file, by_path);
}

bool files_load(struct files *files, const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return complain(directory, strerror(errno));
    bool fine = load_directory(files, fd, "", 0);
    sort(files);
    return fine;
}

/* Text that looks like nothing, the same for the same path, so that a client can tell a wrong
 * answer from the right one. */
static char *generate_body(const char *path, size_t size)
{
    char *body = malloc(size);
    if (body == NULL)
        return NULL;
    uint64_t state = 14695981039346656037u;
    for (const char *c = path; *c != 0; c++)
        state = (state ^ (unsigned char)*c) * 1099511628211u;
    for (size_t i = 0; i < size; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        body[i] = i % 64 == 63 ? '\n' : (char)('a' + state % 26);
    }
    return body;
}

static bool generate_file(struct files *files, const char *folder, size_t name, size_t size)
{
    char *path = NULL;
    if (asprintf(&path, "/%s/%zu", folder, name) < 0)
        return complain("files", "out of memory");
    char *body = generate_body(path, size);
    if (body == NULL) {
        free(path);
        return complain("files", "out of memory");
    }
    return add(files, path, body, size);
}

bool files_generate(struct files *files)
{
    bool fine = true;
    for (size_t i = 0; fine && i < 64; i++) {
        size_t size = 600 + (26000 - 600) * i / 63;
        fine = generate_file(files, "bytes", size, size);
    }
    for (size_t i = 0; fine && i < 8; i++)
        fine = generate_file(files, "large", i, (size_t)1 << 20);
    sort(files);
    return fine;
}

const struct file *files_find(const struct files *files, const char *path)
{
    static const char index[] = "index.html";
    size_t size = strlen(path);
    bool directory = size > 0 && path[size - 1] == '/';
    size_t low = 0, high = files->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct file *file = &files->file[middle];
        int order = directory ? strncmp(path, file->path, size) : strcmp(path, file->path);
        if (order == 0 && directory)
            order = strcmp(index, file->path + size);
        if (order == 0)
            return file;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

void files_free(struct files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->file[i].path);
        free(files->file[i].body);
    }
    free(files->file);
    *files = (struct files){.count = 0};
}
