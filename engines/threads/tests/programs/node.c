/* A node of a cluster, told what to do by lines on its standard input:
 *
 *      make N      N threads come and go
 *      keep N      N threads come and yield for ever
 *
 * It says `done` to each, and ends with its input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "attune.h"

static void *once(void *none)
{
    attune_yield();
    return none;
}

static void *forever(void *none)
{
    for (;;)
        attune_sleep_for(1000000);
    return none;
}

int main(void)
{
    char line[64];
    size_t length = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    attune_yield(); /* starts the library */
    puts("ready");
    while (attune_read(0, line + length, 1) == 1) {
        if (line[length] != '\n') {
            length++;
            continue;
        }
        line[length] = 0;
        length = 0;
        int count = atoi(line + 5);
        for (int i = 0; i < count; i++) {
            attune_t thread;
            int keep = !strncmp(line, "keep", 4);
            if (attune_create(&thread, NULL, keep ? forever : once, NULL) != 0)
                return 1;
            if (keep)
                attune_detach(thread);
            else
                attune_join(thread, NULL);
        }
        attune_yield();
        puts("done");
    }
    return 0;
}
