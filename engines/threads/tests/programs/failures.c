/* Programs that go wrong, one per argument, for the tests of what is said about it. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attune.h"

static attune_mutex mutex;

static void *locks(void *none)
{
    attune_mutex_lock(&mutex);
    return none;
}

static void *naps(void *none)
{
    attune_sleep_for(1000000);
    return none;
}

static int deep(int n)
{
    volatile char frame[512];
    frame[0] = (char)n;
    return n == 0 ? 0 : deep(n - 1) + frame[0];
}

static void *overflows(void *none)
{
    deep(1000000);
    return none;
}

static void *yields(void *none)
{
    for (int i = 0; i < 3; i++)
        attune_yield();
    return none;
}

/* Yields from so deep down. */
static int deep_yield(int n)
{
    volatile char frame[512];
    frame[0] = (char)n;
    if (n == 0)
        return attune_yield();
    return deep_yield(n - 1) + frame[0] * 0;
}

static void *yields_deep_down(void *depth)
{
    for (int i = 0; i < 3; i++)
        deep_yield(*(int *)depth);
    return depth;
}

static void *crashes(void *none)
{
    *(volatile int *)none = 1;
    return none;
}

static void old_handler(int signal)
{
    (void)signal;
    _exit(33);
}

static attune_t start(const char *name, void *(*body)(void *))
{
    attune_t thread;
    struct attune_attributes attributes = {.name = name};
    if (attune_create(&thread, &attributes, body, NULL))
        exit(99);
    return thread;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    printf("begins\n");
    if (!strcmp(what, "deadlock")) {
        attune_mutex_lock(&mutex);
        start("stuck", locks);
        start("rests", naps);
        attune_suspend(ATTUNE_SELF);
        /* a trap or a wrong dispatch when thread 2 has slept */
    } else if (!strcmp(what, "wake")) {
        attune_join(start("sleeper", naps), NULL);
    } else if (!strcmp(what, "overflow")) {
        attune_join(start("deep one", overflows), NULL);
        /* a plain fault goes to the program's own handler */
    } else if (!strcmp(what, "crash")) {
        signal(SIGSEGV, old_handler);
        attune_join(start("crasher", crashes), NULL);
    } else if (!strcmp(what, "small stacks")) {
        struct attune_attributes attributes = {.stack_size = 16384};
        static int none = 0, nearly_all = 420; /* of 256 KiB */
        attune_t threads[4];
        for (int i = 0; i < 4; i++)
            if (attune_create(&threads[i], i % 2 ? &attributes : NULL, yields_deep_down,
                              i % 2 ? &none : &nearly_all))
                exit(99);
        for (int i = 0; i < 4; i++)
            attune_join(threads[i], NULL);
        printf("joined\n");
    } else if (!strcmp(what, "main exits")) {
        start("yields", yields);
        attune_exit(NULL);
    } else if (!strcmp(what, "unknown")) {
        static int variable;
        return attune_register("no_such_import", &variable) ? 5 : 6;
    } else if (!strcmp(what, "ignored")) {
        static int variable;
        struct attune_options options = {.size = sizeof options, .ignore_unknown_imports = 1};
        attune_init(&options);
        return attune_register("no_such_import", &variable) ? 5 : 6;
    } else if (!strcmp(what, "older")) {
        /* Compiled with the header before the last member came: what lies there is not its own. */
        struct attune_options options = {
            .size = offsetof(struct attune_options, scheduler_in_program),
            .ignore_unknown_imports = 1,
            .scheduler_in_program = (const struct attune_scheduler *)&mutex,
        };
        static int variable;
        if (attune_init(&options))
            return 9;
        return attune_register("no_such_import", &variable) ? 5 : 6;
    } else if (!strcmp(what, "fork")) {
        attune_yield();
        pid_t child = fork();
        if (!child)
            _exit(attune_yield() == -1 ? 7 : 8);
        int status;
        waitpid(child, &status, 0);
        return WEXITSTATUS(status);
    } else if (!strcmp(what, "name")) {
        printf("%s\n", attune_scheduler_name());
    } else if (!strcmp(what, "log")) {
        attune_t thread = start("yields", yields);
        attune_yield_to(thread);
        attune_suspend(thread);
        attune_resume(thread);
        attune_join(thread, NULL);
        attune_sleep_for(2000000);
    } else if (!strcmp(what, "many")) {
        static attune_t threads[10000];
        for (int i = 0; i < 10000; i++)
            threads[i] = start("one of many", i % 2 ? yields : naps);
        for (int i = 0; i < 10000; i++)
            attune_join(threads[i], NULL);
        struct attune_statistics numbers;
        attune_stats(&numbers, sizeof numbers);
        printf("%d %d\n", (int)numbers.created, (int)numbers.living);
    }
    return 0;
}
