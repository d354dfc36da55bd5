/* The files that are served: all in memory, read once at the start.
 *
 * Invariant: sorted by path; a path begins with '/' and is normal in the sense of
 * http_normalise_path, so that a request can name nothing but what was loaded. Sizes in bytes. */
#ifndef WEBSERVER_FILES_H
#define WEBSERVER_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct file {
    char *path;
    char *body;
    size_t size;
    /* the fields of a reply's head that never change, each with its line end */
    char head[192];
    size_t head_size;
};

struct files {
    struct file *file;
    size_t count, room;
    size_t bytes; /* of all bodies */
};

/* Loads the regular files below directory, links not followed. False, with a message on stderr, if
 * one cannot be read. */
bool files_load(struct files *files, const char *directory);

/* Makes a set to measure with: /bytes/N for 64 sizes N from 600 to 26000, and /large/K for K from 0
 * to 7, of 1 MB (2^20) each. */
bool files_generate(struct files *files);

/* The file of a normal path; of "/x/" it is "/x/index.html". NULL if there is none. */
const struct file *files_find(const struct files *files, const char *path);

void files_free(struct files *files);

#endif
