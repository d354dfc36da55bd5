/* Threads in every state, and then a stop, for a debugger to look at.
 *
 *     stopped [away | moved]
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

static int moved;

static void *keeps(void *nothing)
{
    while (!__atomic_load_n(&moved, __ATOMIC_RELAXED))
        attune_yield();
    return nothing;
}

static void *moves_away(void *arrived)
{
    while (attune_worker() == 1)
        attune_yield();
    __atomic_store_n(&moved, 1, __ATOMIC_RELAXED);
    return goes_away(arrived);
}

/* Created on worker 1, it goes to worker 2, which has no thread. */
static void let_move(void)
{
    attune_t thread, keeper;
    attune_semaphore arrived = ATTUNE_SEMAPHORE_INIT(0);
    struct attune_options options = {.size = sizeof options, .moves = 1};
    struct attune_attributes stays = {.name = "keeper", .pinned = 1}, goes = {.name = "moved"};
    if (attune_init(&options) || attune_create(&keeper, &stays, keeps, NULL) ||
        attune_create(&thread, &goes, moves_away, &arrived))
        exit(1);
    attune_semaphore_wait(&arrived);
    attune_join(keeper, NULL);
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
    if (count > 1 && !strcmp(arguments[1], "moved"))
        let_move();
    attune_mutex_lock(&mutex);
    start("sleeper", sleeps, NULL);
    start("yielder", yields, &depth);
    start("locker", locks, NULL);
    attune_t stopper = start("stopper", stops, NULL);
    start("unborn", sleeps, NULL);
    attune_join(stopper, NULL);
}
