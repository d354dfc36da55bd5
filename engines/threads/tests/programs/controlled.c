/* Threads for a user to look at and to set, until stdin ends.
 *
 *     controlled waits | yields | computes | supplies
 */
#include <attune.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct task {
    int urgent;
};

static const char *what;
static volatile long rounds;

static void say_begun(void)
{
    puts("begun");
    fflush(stdout);
}

static void *works(void *nothing)
{
    if (!strcmp(what, "waits") || !strcmp(what, "supplies"))
        attune_sleep_for(60000000000);
    if (!strcmp(what, "computes"))
        say_begun();
    while (!strcmp(what, "computes"))
        rounds++;
    while (1)
        attune_yield();
    return nothing;
}

static void start(const char *name, struct task *task, int worker)
{
    attune_t thread;
    struct attune_attributes attributes = {.name = name, .userdata = task, .worker = worker};
    if (attune_create(&thread, &attributes, works, NULL))
        exit(1);
}

int main(int count, char **arguments)
{
    static int64_t switches;
    static struct task tasks[2];
    char byte;
    what = count > 1 ? arguments[1] : "waits";
    if (!strcmp(what, "supplies")) {
        attune_register("switches", &switches);
        attune_register_thread_field("urgent", struct task, urgent);
    }
    start("first", &tasks[0], attune_workers());
    start("second", &tasks[1], 1);
    if (strcmp(what, "computes"))
        say_begun();
    while (attune_read(0, &byte, 1) > 0)
        continue;
    return 0;
}
