/* Replies kept in memory, found by host and target; those that have not been asked for the longest
 * go first.
 *
 * Invariants
 *   - cache.bytes counts every object that exists, listed or not, with its key and head, and never
 *     exceeds cache.limit.
 *   - An object is freed when it is not listed and nobody uses it. A listed object does not change.
 * Times are nanoseconds of the caller's clock; sizes are bytes. */
#ifndef WEBSERVER_CACHE_H
#define WEBSERVER_CACHE_H

#include "text.h"

struct cache_key {
    struct text host, target; /* the host without regard to case */
    uint64_t hash;
};

struct object {
    struct cache_key key; /* in `text` */
    struct text head;     /* status line and fields, each with its line end; in `text` */
    char *body;
    size_t body_size, body_room;
    int64_t made;        /* when the upstream made it, which may be before the clock's 0 */
    int64_t fresh_until; /* from then on it is stale */

    int users;
    bool listed;
    struct object *next;          /* in its bucket */
    struct object *older, *newer; /* by when they were last asked for */
    char text[];
};

struct cache {
    size_t limit, object_limit; /* of all objects, and of the body of one */
    size_t bytes, count;        /* count: listed ones */
    uint64_t evicted;
    uint64_t seed;
    size_t bucket_count;
    struct object **buckets;
    struct object *oldest, *newest;
};

/* False: no memory. A limit of 0 keeps nothing. */
bool cache_start(struct cache *cache, size_t limit, size_t object_limit);
void cache_end(struct cache *cache);

struct cache_key cache_key(const struct cache *cache, struct text host, struct text target);
bool cache_same(const struct cache_key *a, const struct cache_key *b);

/* The fresh object of that key, with one more user, or NULL. A stale one is removed. */
struct object *cache_find(struct cache *cache, const struct cache_key *key, int64_t now);

/* A new object with one user, not listed yet, with room for a body of `expected` bytes. NULL: there
 * is no room, or no memory. */
struct object *cache_create(struct cache *cache, const struct cache_key *key, struct text head,
                            size_t expected);

/* Adds to the body of an object that is not listed. False: there is no room; the object is as it
 * was. */
bool cache_append(struct cache *cache, struct object *object, struct text bytes);

/* Lists the object in place of another of its key. */
void cache_list(struct cache *cache, struct object *object);

/* One user less. */
void cache_release(struct cache *cache, struct object *object);

/* The object of that key is no longer found. */
void cache_remove(struct cache *cache, const struct cache_key *key);

#endif
