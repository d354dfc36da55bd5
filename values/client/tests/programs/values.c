/* Does what its input says, a line each, and answers with a line. */
#include <attune.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct order {
    char name[300];
    long long value;
    int64_t *place;
};

static int64_t *import(const char *name)
{
    return attune_thread_import_int(ATTUNE_SELF, name);
}

static void *supply(void *argument)
{
    struct order *order = argument;
    order->place = import(order->name);
    if (order->place)
        *order->place = order->value;
    printf("thread %llu %lld\n", (unsigned long long)attune_self(),
           order->place ? (long long)*order->place : -1);
    return NULL;
}

static void say(const int64_t *place)
{
    if (place)
        printf("%lld\n", (long long)*place);
    else
        printf("errno %d\n", errno);
}

int main(void)
{
    static char line[1024], verb[32];
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("process %d\n", getpid());
    while (fgets(line, sizeof line, stdin)) {
        struct order order = {.value = 0};
        sscanf(line, "%31s %299s %lld", verb, order.name, &order.value);
        if (!strcmp(verb, "get")) {
            say(import(order.name));
        } else if (!strcmp(verb, "set")) {
            int64_t *place = import(order.name);
            if (place)
                *place = order.value;
            say(place);
        } else if (!strcmp(verb, "thread")) {
            pthread_t thread;
            pthread_create(&thread, NULL, supply, &order);
            pthread_join(thread, NULL);
        } else if (!strcmp(verb, "fork")) {
            int64_t *place = import(order.name);
            pid_t child = fork();
            if (child == 0) {
                printf("child has %lld\n", (long long)*place);
                *place = order.value;
                _exit(*import(order.name) == order.value ? 0 : 1);
            }
            int status = -1;
            waitpid(child, &status, 0);
            printf("child %d, parent has %lld\n", status, (long long)*place);
        } else if (!strcmp(verb, "exec")) {
            execl("/proc/self/exe", "values", NULL);
            printf("errno %d\n", errno);
        } else if (!strcmp(verb, "unregister")) {
            printf("%d\n", attune_unregister(order.name));
        } else if (!strcmp(verb, "register")) {
            static int own;
            int global = attune_register(order.name, &own);
            printf("%d %d\n", global, attune_register_thread(order.name, 0));
        }
    }
    return 0;
}
