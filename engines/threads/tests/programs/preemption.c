/* Threads that give way at safe points, under schedulers/sliced.sched, one case an argument. A
 * second argument keeps the program from opting in. Prints `ok` and exits with 0, or says what went
 * wrong. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>
#include "attune.h"
#include "check.h"
#include "start.h"

/* What the policy knows, and counts. */
static int64_t turn;
static int expired, asks;

static char trace[64];
static volatile bool woke;

static void note(char c)
{
    trace[strlen(trace)] = c;
}

/* ---- hogs take turns */

static void *hog(void *name)
{
    for (int i = 0; i < 3; i++) {
        note(*(char *)name);
        errno = 77;
        CHECK(attune_check() == 0 && errno == 77);
    }
    return NULL;
}

static void two_hogs(const char *order)
{
    char a = 'a', b = 'b';
    attune_t one = start(hog, &a), other = start(hog, &b);
    join(one);
    join(other);
    CHECK(!strcmp(trace, order));
}

static void shares(void)
{
    two_hogs("ababab");
    /* six checks and two joins: each was a safe point at which a slice had been used up */
    CHECK(expired == 8);
}

static void keeps(void)
{
    two_hogs("aaabbb");
    CHECK(expired == 0 && attune_timeslice_left() == INT64_MAX);
}

/* ---- which calls are safe points: main's slice is used up at each */

#define GIVES_WAY(times, call)              \
    do {                                    \
        int before = expired;               \
        CHECK((call) >= 0);                 \
        CHECK(expired == before + (times)); \
    } while (0)

static void *ends(void *none)
{
    return none;
}

static void calls(void)
{
    attune_mutex mutex = ATTUNE_MUTEX_INIT;
    attune_condition condition = ATTUNE_CONDITION_INIT;
    attune_semaphore semaphore = ATTUNE_SEMAPHORE_INIT(0);
    attune_t thread;
    int pair[2];
    char byte = 'x';
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    struct pollfd wanted = {.fd = pair[0], .events = POLLOUT};

    GIVES_WAY(1, attune_check());
    GIVES_WAY(1, attune_yield());
    GIVES_WAY(1, attune_mutex_lock(&mutex));
    GIVES_WAY(1, attune_mutex_unlock(&mutex));
    GIVES_WAY(1, attune_semaphore_post(&semaphore));
    GIVES_WAY(1, attune_semaphore_wait(&semaphore));
    GIVES_WAY(1, attune_condition_signal(&condition));
    GIVES_WAY(1, attune_condition_broadcast(&condition));
    GIVES_WAY(1, attune_write(pair[0], &byte, 1));
    GIVES_WAY(1, attune_read(pair[1], &byte, 1));
    GIVES_WAY(1, attune_poll(&wanted, 1, ATTUNE_FOREVER));
    GIVES_WAY(0, attune_create(&thread, NULL, ends, NULL));
    GIVES_WAY(0, attune_suspend(thread));
    GIVES_WAY(1, attune_resume(thread));
    GIVES_WAY(1, attune_join(thread, NULL));

    GIVES_WAY(0, attune_mutex_trylock(&mutex));
    attune_mutex_unlock(&mutex);
    attune_semaphore_post(&semaphore);
    GIVES_WAY(0, attune_semaphore_trywait(&semaphore));
    GIVES_WAY(0, attune_now());
    GIVES_WAY(0, attune_close(pair[0]));
    GIVES_WAY(0, attune_close(pair[1]));
}

/* ---- what is left of a slice */

static void left(void)
{
    turn = 1000000 * MS;
    CHECK(attune_timeslice_left() == 0); /* of the stay that began before */
    CHECK(attune_yield() == 0);
    int64_t first = attune_timeslice_left();
    CHECK(first > 0 && first <= turn);
    while (attune_timeslice_left() >= first)
        CHECK(attune_check() == 0);
    CHECK(expired == 1); /* at the yield; there was time enough ever since */
    turn = -1;
    CHECK(attune_yield() == 0);
    CHECK(attune_timeslice_left() == INT64_MAX);
    CHECK(attune_check() == 0 && expired == 1);
}

static void answers(void)
{
    CHECK(attune_timeslice_left() == 3 * MS);
}

/* ---- the policy asks for the CPU when a thread wakes */

static void *waits(void *semaphore)
{
    CHECK(attune_semaphore_wait(semaphore) == 0);
    woke = true;
    return NULL;
}

static void *sleeps(void *none)
{
    CHECK(attune_sleep_for(MS) == 0);
    woke = true;
    return none;
}

static void *reads(void *descriptor)
{
    char c;
    CHECK(attune_read(*(int *)descriptor, &c, 1) == 1);
    woke = true;
    return NULL;
}

/* Computes until the thread has woken. */
static void until_woken(attune_t thread)
{
    while (!woke)
        CHECK(attune_check() == 0);
    woke = false;
    join(thread);
}

static void wakes(void)
{
    attune_semaphore semaphore = ATTUNE_SEMAPHORE_INIT(0);
    int pipe_ends[2];
    turn = -1;
    attune_t thread = start(waits, &semaphore);
    CHECK(attune_yield() == 0);
    CHECK(attune_semaphore_post(&semaphore) == 0 && !woke);
    CHECK(attune_check() == 0 && !woke);
    join(thread);
    CHECK(woke);
    woke = false;

    asks = 1;
    thread = start(waits, &semaphore);
    CHECK(attune_yield() == 0);
    CHECK(attune_semaphore_post(&semaphore) == 0 && woke);
    until_woken(thread);
    for (asks = 1; asks <= 2; asks++) {
        thread = start(sleeps, NULL);
        CHECK(attune_yield() == 0);
        until_woken(thread);
        CHECK(pipe(pipe_ends) == 0);
        thread = start(reads, &pipe_ends[0]);
        CHECK(attune_yield() == 0);
        CHECK(write(pipe_ends[1], "x", 1) == 1);
        until_woken(thread);
        CHECK(attune_close(pipe_ends[0]) == 0 && attune_close(pipe_ends[1]) == 0);
    }
    CHECK(expired == 1); /* the stay that began before */
}

/* ---- a thread that gives way keeps its mutex */

#define ROUNDS 100

static attune_mutex mutex = ATTUNE_MUTEX_INIT;
static int counted;

static void *counts(void *none)
{
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(attune_mutex_lock(&mutex) == 0);
        int before = counted, slices = expired;
        CHECK(attune_check() == 0);
        CHECK(expired > slices && counted == before);
        counted = before + 1;
        CHECK(attune_mutex_unlock(&mutex) == 0);
    }
    return none;
}

static void locked(void)
{
    attune_t one = start(counts, NULL), other = start(counts, NULL);
    join(one);
    join(other);
    CHECK(counted == 2 * ROUNDS);
}

/* ---- several workers: each shares its own CPU, and hears others at safe points */

static atomic_int running;
static atomic_bool stop;

static void *spins(void *none)
{
    CHECK(attune_worker() == 2);
    running++;
    while (!stop)
        CHECK(attune_check() == 0);
    return none;
}

static void spin(int hogs)
{
    attune_t threads[2];
    running = 0;
    stop = false;
    for (int i = 0; i < hogs; i++)
        threads[i] = start_on(2, spins, NULL);
    while (running < hogs)
        CHECK(attune_check() == 0);
    /* The other worker does what it is told although none of its threads stops. */
    CHECK(attune_suspend(threads[0]) == 0);
    CHECK(attune_resume(threads[0]) == 0);
    stop = true;
    for (int i = 0; i < hogs; i++)
        join(threads[i]);
}

static void workers(void)
{
    spin(2);
    turn = -1;
    spin(1);
}

/* ---- where there is no safe point */

static void *foreign(void *none)
{
    FAILS(EPERM, attune_check());
    FAILS(EPERM, (int)attune_timeslice_left());
    return none;
}

static void refuses(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, foreign, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void handlers(void)
{
    static int refused;
    CHECK(attune_register("refused", &refused) == 0);
    CHECK(attune_check() == 0);
    CHECK(refused == 1);
}

/* ---- the order of handlers, for schedulers/sliced_log.sched */

static void order(void)
{
    attune_t thread = start(ends, NULL);
    CHECK(attune_check() == 0);
    join(thread);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"shares", shares},     {"calls", calls},     {"keeps", keeps},
                 {"left", left},         {"answers", answers}, {"wakes", wakes},
                 {"locked", locked},     {"workers", workers}, {"refuses", refuses},
                 {"handlers", handlers}, {"order", order}};
    struct attune_options options = {
        .size = sizeof options, .ignore_unknown_imports = 1, .preempt = count == 2};
    CHECK(count > 1 && attune_check() == 0); /* the library has not started */
    CHECK(attune_init(&options) == 0);
    attune_register("turn", &turn);
    attune_register("expired", &expired);
    attune_register("asks", &asks);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(cases[i].name, arguments[1])) {
            cases[i].run();
            puts("ok");
            return 0;
        }
    return 2;
}
