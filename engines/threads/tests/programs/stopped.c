/* Threads in every state, and then a stop, for a debugger to look at.
 *
 *     stopped [away]
 */
#include <attune.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static attune_mutex mutex = ATTUNE_MUTEX_INIT;

static void *sleeps(void *nothing)
{
    attune_sleep_for(60000000000);
    return nothing;
}

static int recurses(int depth)
{
    if (depth == 0) {
        attune_yield();
        return 0;
    }
    return recurses(depth - 1) + 1;
}

static void *yields(void *depth)
{
    recurses(*(int *)depth);
    return NULL;
}

static void *locks(void *nothing)
{
    attune_mutex_lock(&mutex);
    return nothing;
}

static void *stops(void *nothing)
{
    raise(SIGABRT);
    return nothing;
}

static void *goes_away(void *arrived)
{
    attune_semaphore_post(arrived);
    attune_sleep_for(60000000000);
    return NULL;
}

/* On worker 2. */
static void send_away(void)
{
    attune_t thread;
    attune_semaphore arrived = ATTUNE_SEMAPHORE_INIT(0);
    struct attune_attributes attributes = {.name = "away", .worker = 2};
    if (attune_create(&thread, &attributes, goes_away, &arrived))
        exit(1);
    attune_semaphore_wait(&arrived);
}

static attune_t start(const char *name, void *(*body)(void *), void *argument)
{
    attune_t thread;
    struct attune_attributes attributes = {.name = name};
    if (attune_create(&thread, &attributes, body, argument))
        exit(1);
    return thread;
}

int main(int count, char **arguments)
{
    int depth = 3;
    if (count > 1 && !strcmp(arguments[1], "away"))
        send_away();
    attune_mutex_lock(&mutex);
    start("sleeper", sleeps, NULL);
    start("yielder", yields, &depth);
    start("locker", locks, NULL);
    attune_t stopper = start("stopper", stops, NULL);
    start("unborn", sleeps, NULL);
    attune_join(stopper, NULL);
}
