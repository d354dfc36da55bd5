/* See cache.h. */
#define _GNU_SOURCE
#include "cache.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* One bucket for so many bytes of the limit: about the size of a small reply. */
#define BYTES_PER_BUCKET 4096
#define MAX_BUCKETS      ((size_t)1 << 20)

/* A body of unknown size begins with so much room. */
#define FIRST_ROOM 4096

bool cache_start(struct cache *cache, size_t limit, size_t object_limit)
{
    size_t count = 16;
    while (count < MAX_BUCKETS && count < limit / BYTES_PER_BUCKET)
        count *= 2;
    *cache = (struct cache){.limit = limit, .object_limit = object_limit, .bucket_count = count};
    /* Random, so that nobody can choose targets that share a bucket; without it the cache is slower
     * under such an attack, and as right. */
    if (getrandom(&cache->seed, sizeof cache->seed, GRND_NONBLOCK) < 0)
        cache->seed = (uintptr_t)cache;
    cache->buckets = calloc(count, sizeof *cache->buckets);
    return cache->buckets != NULL;
}

void cache_end(struct cache *cache)
{
    while (cache->oldest != NULL)
        cache_remove(cache, &cache->oldest->key);
    free(cache->buckets);
    cache->buckets = NULL;
}

/* ---- Keys ---- */

static uint64_t mix(uint64_t hash, unsigned char byte)
{
    hash = (hash ^ byte) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

struct cache_key cache_key(const struct cache *cache, struct text host, struct text target)
{
    uint64_t hash = cache->seed;
    for (size_t i = 0; i < host.size; i++)
        hash = mix(hash, (unsigned char)tolower((unsigned char)host.at[i]));
    hash = mix(hash, 0);
    for (size_t i = 0; i < target.size; i++)
        hash = mix(hash, (unsigned char)target.at[i]);
    return (struct cache_key){host, target, hash};
}

bool cache_same(const struct cache_key *a, const struct cache_key *b)
{
    return a->hash == b->hash && a->target.size == b->target.size &&
           (a->target.size == 0 || memcmp(a->target.at, b->target.at, a->target.size) == 0) &&
           text_same(a->host, b->host);
}

static struct object **bucket(struct cache *cache, const struct cache_key *key)
{
    return &cache->buckets[key->hash & (cache->bucket_count - 1)];
}

/* ---- The list, and what is counted ---- */

static size_t bytes_of(const struct object *object)
{
    return sizeof *object + object->key.host.size + object->key.target.size + object->head.size +
           object->body_room;
}

static void destroy_unused(struct cache *cache, struct object *object)
{
    if (object->listed || object->users > 0)
        return;
    cache->bytes -= bytes_of(object);
    free(object->body);
    free(object);
}

static void push_newest(struct cache *cache, struct object *object)
{
    object->older = cache->newest;
    object->newer = NULL;
    if (cache->newest != NULL)
        cache->newest->newer = object;
    else
        cache->oldest = object;
    cache->newest = object;
}

static void take_out(struct cache *cache, struct object *object)
{
    if (object->older != NULL)
        object->older->newer = object->newer;
    else
        cache->oldest = object->newer;
    if (object->newer != NULL)
        object->newer->older = object->older;
    else
        cache->newest = object->older;
}

static void unlist(struct cache *cache, struct object *object)
{
    struct object **place = bucket(cache, &object->key);
    while (*place != object)
        place = &(*place)->next;
    *place = object->next;
    take_out(cache, object);
    object->listed = false;
    cache->count--;
    destroy_unused(cache, object);
}

/* Whether so many more bytes fit, if need be when others have gone. Objects in use go on counting,
 * so they are not worth removing. */
static bool make_room(struct cache *cache, size_t bytes)
{
    for (struct object *object = cache->oldest, *newer;
         object != NULL && cache->limit - cache->bytes < bytes; object = newer) {
        newer = object->newer;
        if (object->users == 0) {
            unlist(cache, object);
            cache->evicted++;
        }
    }
    return cache->limit - cache->bytes >= bytes;
}

/* ---- Finding and keeping ---- */

static struct object *find(struct cache *cache, const struct cache_key *key)
{
    struct object *object = *bucket(cache, key);
    while (object != NULL && !cache_same(&object->key, key))
        object = object->next;
    return object;
}

struct object *cache_find(struct cache *cache, const struct cache_key *key, int64_t now)
{
    struct object *object = find(cache, key);
    if (object == NULL)
        return NULL;
    if (now >= object->fresh_until) {
        unlist(cache, object);
        return NULL;
    }
    take_out(cache, object);
    push_newest(cache, object);
    object->users++;
    return object;
}

/* Copies text to *at and moves it on. */
static struct text copy(char **at, struct text text)
{
    if (text.size > 0)
        memcpy(*at, text.at, text.size);
    struct text copied = {*at, text.size};
    *at += text.size;
    return copied;
}

struct object *cache_create(struct cache *cache, const struct cache_key *key, struct text head,
                            size_t expected)
{
    size_t texts = key->host.size + key->target.size + head.size;
    size_t room = expected > 0 ? expected : FIRST_ROOM;
    if (expected > cache->object_limit || !make_room(cache, sizeof(struct object) + texts + room))
        return NULL;
    struct object *object = malloc(sizeof *object + texts);
    char *body = malloc(room);
    if (object == NULL || body == NULL) {
        free(object);
        free(body);
        return NULL;
    }
    *object = (struct object){.body = body, .body_room = room, .users = 1};
    char *at = object->text;
    object->key = (struct cache_key){copy(&at, key->host), copy(&at, key->target), key->hash};
    object->head = copy(&at, head);
    cache->bytes += bytes_of(object);
    return object;
}

bool cache_append(struct cache *cache, struct object *object, struct text bytes)
{
    size_t size = object->body_size + bytes.size;
    if (size > cache->object_limit)
        return false;
    if (size > object->body_room) {
        size_t room = size > object->body_room * 2 ? size : object->body_room * 2;
        /* The old body exists until the new one does, so both count. */
        if (!make_room(cache, room))
            return false;
        char *grown = realloc(object->body, room);
        if (grown == NULL)
            return false;
        object->body = grown;
        cache->bytes += room - object->body_room;
        object->body_room = room;
    }
    memcpy(object->body + object->body_size, bytes.at, bytes.size);
    object->body_size = size;
    return true;
}

void cache_list(struct cache *cache, struct object *object)
{
    cache_remove(cache, &object->key);
    struct object **place = bucket(cache, &object->key);
    object->next = *place;
    *place = object;
    object->listed = true;
    cache->count++;
    push_newest(cache, object);
}

void cache_release(struct cache *cache, struct object *object)
{
    object->users--;
    destroy_unused(cache, object);
}

void cache_remove(struct cache *cache, const struct cache_key *key)
{
    struct object *object = find(cache, key);
    if (object != NULL)
        unlist(cache, object);
}
