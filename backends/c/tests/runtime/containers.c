/* Runs the runtime's containers on commands from standard input, one a line, and prints after each
 * what there is.
 *
 *      move THREAD CONTAINER KEY       remove THREAD       key THREAD KEY
 *      visit CURSOR CONTAINER          next CURSOR         leave CURSOR
 *
 * Output: the thread that a cursor came to (`-`: its end; `.`: no cursor moved), then each
 * container's threads in order behind its number, as in `3 | 0: 4 1 | 1: | ..`. Ends with status 1
 * when a container is unsound.
 */
#define ATTUNE_DEBUG 1
#include "../../runtime/container.h"

#include <stdio.h>
#include <string.h>

enum { THREADS = 24, CONTAINERS = 10, CURSORS = 4 };

static struct attune_instance instance = {.stamp = 1};
static struct attune_thread threads[THREADS];
static struct attune_container containers[CONTAINERS];
static struct attune_cursor cursors[CURSORS];

static int show(const char *visited)
{
    printf("%s", visited);
    for (int i = 0; i < CONTAINERS; i++) {
        struct attune_container *c = &containers[i];
        int64_t found = 0;
        printf(" | %d:", i);
        for (struct attune_thread *t = attune_first(c); t; t = attune_after(t), found++)
            printf(" %d", (int)t->id);
        if (!attune_sound(c) || attune_size(c) != found) {
            printf(" unsound\n");
            return 0;
        }
    }
    printf("\n");
    return 1;
}

static const char *name_of(const struct attune_thread *t)
{
    static char text[24];
    if (!t)
        return "-";
    snprintf(text, sizeof text, "%d", (int)t->id);
    return text;
}

int main(void)
{
    char command[16];
    int a, b;
    long long key;
    for (int i = 0; i < THREADS; i++)
        threads[i].id = (uint64_t)i;
    for (int i = 0; i < CONTAINERS; i++) {
        /* Each kind twice: with the highest key first and the attribute 1, with the lowest first
         * and the attribute 2. */
        enum attune_kind kind = (enum attune_kind)(i % 5);
        int sorted = kind == ATTUNE_PQUEUE || kind == ATTUNE_PSTACK;
        attune_container_init(&containers[i], "C", i, kind, sorted && i >= 5,
                              sorted ? 1 + (uint32_t)(i / 5) : 0);
    }
    while (scanf("%15s %d", command, &a) == 2) {
        const char *visited = ".";
        if (!strcmp(command, "move") && scanf("%d %lld", &b, &key) == 2)
            attune_move(&instance, &threads[a], &containers[b], key, 1);
        else if (!strcmp(command, "remove"))
            attune_remove(&threads[a]);
        else if (!strcmp(command, "key") && scanf("%lld", &key) == 1)
            attune_resort(&instance, &threads[a], 1, key);
        else if (!strcmp(command, "visit") && scanf("%d", &b) == 1)
            visited = name_of(attune_visit(&instance, &containers[b], &cursors[a]));
        else if (!strcmp(command, "next"))
            visited = cursors[a].of ? name_of(attune_next(&cursors[a])) : "-";
        else if (!strcmp(command, "leave"))
            attune_leave(&cursors[a]);
        else
            return 2;
        if (!show(visited))
            return 1;
    }
    return 0;
}
