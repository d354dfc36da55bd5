/* Threads that move between workers; their number comes from ATTUNE_WORKERS. One case an argument.
 * Prints `ok` and exits with 0, or says what went wrong.
 */
#define ATTUNE_MOVES
#include "attune.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include "check.h"
#include "start.h"

enum { THREADS = 6 };

/* How long a program waits for what must come. */
#define PATIENCE (20 * 1000 * MS)

static atomic_bool finished;

static uint64_t moves(void)
{
    struct attune_statistics numbers;
    CHECK(attune_stats(&numbers, sizeof numbers) == 0);
    return numbers.moves;
}

static void compute(void)
{
    volatile unsigned number = 1;
    for (int i = 0; i < 2000; i++)
        number = number * 1664525 + 1013904223;
}

/* Sleeps until it holds. */
#define UNTIL(what)                                      \
    do {                                                 \
        int64_t end = attune_now() + PATIENCE;           \
        while (!(what)) {                                \
            CHECK(attune_now() < end && "it must come"); \
            attune_sleep_for(MS);                        \
        }                                                \
    } while (0)

/* ---- a worker without threads gets some, and each of its threads has been somewhere else */

static atomic_int on[THREADS];

static void *runs(void *place)
{
    while (!finished) {
        compute();
        attune_yield();
        atomic_store((atomic_int *)place, attune_worker());
    }
    return place;
}

static int on_worker(int worker)
{
    int count = 0;
    for (int i = 0; i < THREADS; i++)
        count += on[i] == worker;
    return count;
}

static void pulls(void)
{
    attune_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(runs, &on[i]);
    UNTIL(on_worker(attune_workers()) > 0);
    CHECK(moves() > 0 && attune_worker() == 1);
    finished = true;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        CHECK(attune_join(threads[i], &result) == 0 && result == &on[i]);
        FAILS(ESRCH, attune_join(threads[i], NULL));
    }
}

/* ---- more than that: lastingly, no worker has two threads more than another */

static void evens(void)
{
    attune_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(runs, &on[i]);
    UNTIL(on_worker(1) == THREADS / 2 && on_worker(2) == THREADS / 2);
    finished = true;
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
}

/* ---- a pinned thread stays, however many others go */

static void *stays(void *times)
{
    for (int i = 0; i < (int)(intptr_t)times; i++)
        CHECK(attune_pin() == 0);
    int worker = attune_worker();
    while (!finished) {
        compute();
        attune_yield();
        CHECK(attune_worker() == worker);
    }
    for (int i = 0; i < (int)(intptr_t)times; i++)
        CHECK(attune_unpin() == 0);
    if (times)
        FAILS(EINVAL, attune_unpin());
    return NULL;
}

/* One that stays on worker 1 until it unpins itself. */
static attune_t start_pinned(void *(*body)(void *))
{
    attune_t thread;
    struct attune_attributes attributes = {.pinned = 1};
    CHECK(attune_create(&thread, &attributes, body, NULL) == 0);
    return thread;
}

static void *unpins_and_goes(void *none)
{
    CHECK(attune_pin() == 0 && attune_pin() == 0 && attune_unpin() == 0 && attune_unpin() == 0);
    for (int i = 0; i < 200; i++) {
        compute();
        attune_yield();
        CHECK(attune_worker() == 1);
    }
    CHECK(attune_unpin() == 0);
    UNTIL(attune_worker() != 1);
    return none;
}

static void pinned(void)
{
    attune_t threads[THREADS], stay[3];
    stay[0] = start_pinned(stays);
    stay[1] = start(stays, (void *)(intptr_t)1);
    stay[2] = start(stays, (void *)(intptr_t)3);
    for (int i = 0; i < THREADS; i++)
        threads[i] = start(runs, &on[i]);
    UNTIL(on_worker(2) > 0);
    uint64_t before = moves();
    attune_sleep_for(50 * MS);
    CHECK(before > 0 && attune_worker() == 1);
    finished = true;
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    for (int i = 0; i < 3; i++)
        join(stay[i]);
    /* Alone with a thread that keeps worker 1 busy, one that unpins itself goes. */
    finished = false;
    attune_t keeps = start_pinned(stays), goes = start_pinned(unpins_and_goes);
    join(goes);
    finished = true;
    join(keeps);
}

/* ---- a thread that waits stays: in a call that blocks, for a descriptor, an object, a time */

static attune_mutex held = ATTUNE_MUTEX_INIT;
static attune_condition never = ATTUNE_CONDITION_INIT;
static attune_semaphore nothing = ATTUNE_SEMAPHORE_INIT(0);
static int ends[2];
static atomic_int waiting;

static void *rests(void *none)
{
    usleep(20000);
    return none;
}

static void *waits(void *kind)
{
    char byte;
    waiting++;
    switch ((intptr_t)kind) {
    case 0:
        CHECK(attune_blocking(rests, NULL, NULL) == 0);
        break;
    case 1:
        FAILS(ETIMEDOUT, attune_read_timed(ends[0], &byte, 1, 20 * MS));
        break;
    case 2:
        FAILS(ETIMEDOUT, attune_mutex_lock_timed(&held, 20 * MS));
        break;
    case 3:
        FAILS(ETIMEDOUT, attune_semaphore_wait_timed(&nothing, 20 * MS));
        break;
    case 4:
        CHECK(attune_mutex_lock(&held) == 0);
        FAILS(ETIMEDOUT, attune_condition_wait_timed(&never, &held, 20 * MS));
        CHECK(attune_mutex_unlock(&held) == 0);
        break;
    default:
        CHECK(attune_sleep_for(20 * MS) == 0);
    }
    return NULL;
}

/* The other workers ask all the time, and nothing but the one that waits could go. */
static void blocked(void)
{
    CHECK(pipe(ends) == 0);
    for (intptr_t kind = 0; kind < 6; kind++) {
        if (kind != 4)
            CHECK(attune_mutex_lock(&held) == 0);
        waiting = 0;
        attune_t thread = start(waits, (void *)kind);
        while (!waiting)
            attune_yield();
        uint64_t before = moves();
        /* main has its worker to itself: what is ready for it may not go either. */
        for (int i = 0; i < 100; i++) {
            compute();
            attune_yield();
        }
        struct attune_statistics numbers;
        CHECK(attune_stats(&numbers, sizeof numbers) == 0);
        CHECK(numbers.waiting == 0 || numbers.moves == before);
        join(thread);
        if (kind != 4)
            CHECK(attune_mutex_unlock(&held) == 0);
    }
}

/* ---- errno is that of the OS thread on which the thread is by now */

static void *fails(void *none)
{
    errno = 0;
    CHECK(attune_worker() == 1 && attune_unpin() == 0);
    UNTIL(attune_worker() != 1);
    CHECK(errno == 0);
    CHECK(attune_join(1000000, NULL) == -1);
    CHECK(errno == ESRCH);
    return none;
}

static void errors(void)
{
    attune_t keeps = start_pinned(stays), goes = start_pinned(fails);
    join(goes);
    finished = true;
    join(keeps);
}

/* ---- everything at a time, while threads move as often as they can */

enum { CROWD = 16, COMMANDERS = 3 };

struct own {
    int place;
    int number; /* more than a byte holds */
    attune_t thread;
};

static struct own crowd[CROWD];
static attune_mutex mutex = ATTUNE_MUTEX_INIT;
static attune_condition changed = ATTUNE_CONDITION_INIT;
static attune_semaphore tokens = ATTUNE_SEMAPHORE_INIT(2);
static long counter, counted[CROWD];
static atomic_int orphans;
static attune_semaphore begin = ATTUNE_SEMAPHORE_INIT(0);

static unsigned next(unsigned *seed)
{
    return (*seed = *seed * 1664525 + 1013904223) >> 16;
}

static void *ends_soon(void *argument)
{
    if ((intptr_t)argument % 3 == 0)
        attune_yield();
    if ((intptr_t)argument % 3 == 1)
        attune_sleep_for(5000);
    return argument;
}

static void *ends_alone(void *none)
{
    attune_yield();
    orphans--;
    return none;
}

static void *answers(void *argument)
{
    return argument;
}

static void *mixes(void *argument)
{
    /* until all are known */
    CHECK(attune_semaphore_wait(&begin) == 0);
    struct own *own = argument;
    unsigned seed = (unsigned)own->place;
    char canary[512], byte;
    memset(canary, own->place, sizeof canary);
    while (!finished) {
        void *result;
        int worker;
        switch (next(&seed) % 10) {
        case 0:
            if (attune_mutex_lock_timed(&mutex, 20000)) {
                CHECK(errno == ETIMEDOUT);
                break;
            }
            counter++;
            counted[own->place]++;
            if (next(&seed) % 4 == 0)
                attune_yield();
            CHECK(attune_mutex_unlock(&mutex) == 0);
            break;
        case 1:
            if (attune_semaphore_wait_timed(&tokens, 20000)) {
                CHECK(errno == ETIMEDOUT);
                break;
            }
            attune_yield();
            CHECK(attune_semaphore_post(&tokens) == 0);
            break;
        case 2:
            CHECK(attune_mutex_lock(&mutex) == 0);
            if (attune_condition_wait_timed(&changed, &mutex, 10000))
                CHECK(errno == ETIMEDOUT);
            CHECK(attune_mutex_unlock(&mutex) == 0);
            break;
        case 3:
            CHECK(attune_condition_broadcast(&changed) == 0);
            break;
        case 4:
            attune_sleep_for(next(&seed) % 20000);
            break;
        case 5:
            CHECK(attune_pin() == 0);
            worker = attune_worker();
            for (int i = 0; i < 3; i++)
                attune_yield();
            CHECK(attune_worker() == worker && attune_unpin() == 0);
            break;
        case 6: {
            intptr_t wanted = next(&seed);
            attune_t child = start(ends_soon, (void *)wanted);
            CHECK(attune_join(child, &result) == 0 && result == (void *)wanted);
            FAILS(ESRCH, attune_join(child, NULL));
            break;
        }
        case 7: {
            struct attune_attributes attributes = {.detached = next(&seed) % 2};
            attune_t child;
            orphans++;
            CHECK(attune_create(&child, &attributes, ends_alone, NULL) == 0);
            if (!attributes.detached)
                CHECK(attune_detach(child) == 0);
            break;
        }
        case 8:
            if (next(&seed) % 20 == 0)
                CHECK(attune_blocking(answers, own, &result) == 0 && result == own);
            FAILS(ETIMEDOUT, attune_read_timed(ends[0], &byte, 1, 5000));
            break;
        default:
            compute();
            attune_yield();
        }
        for (size_t i = 0; i < sizeof canary; i++)
            CHECK(canary[i] == own->place);
        CHECK(attune_userdata(ATTUNE_SELF) == own && attune_self() == own->thread);
    }
    return own;
}

/* At the end a thread may have ended before the order came. */
static bool ended(int error)
{
    return error == ESRCH && finished;
}

/* Orders about threads that are anywhere by now. No thread gives orders about this one. */
static void *commands(void *argument)
{
    const char *policy = attune_scheduler_name();
    unsigned seed = 77 + (unsigned)(intptr_t)argument;
    while (!finished) {
        struct own *other = &crowd[next(&seed) % CROWD];
        int64_t *tag;
        switch (next(&seed) % 4) {
        case 0:
            if (attune_suspend(other->thread) == 0)
                CHECK(attune_resume(other->thread) == 0 || ended(errno));
            else
                CHECK(errno == EALREADY || ended(errno));
            break;
        case 1:
            tag = attune_thread_import_int(other->thread, "tag");
            CHECK(tag || ended(errno) || (errno == ENOENT && strcmp(policy, "moving")));
            if (tag)
                __atomic_store_n(tag, other->number, __ATOMIC_RELAXED);
            break;
        case 2:
            CHECK(attune_userdata(other->thread) == other);
            CHECK(attune_set_userdata(other->thread, other) == 0);
            CHECK(!strcmp(attune_name(other->thread), "one of many"));
            break;
        default:
            CHECK(attune_yield_to(other->thread) == 0 || errno == EAGAIN || ended(errno));
        }
    }
    return argument;
}

/* For so long, or until there were so many moves. */
static void stress(int64_t duration, uint64_t most)
{
    attune_t commanders[COMMANDERS];
    CHECK(pipe(ends) == 0);
    CHECK(attune_register_thread_field("number", struct own, number) == 0);
    attune_pin(); /* changes nothing: main stays */
    for (int i = 0; i < CROWD; i++) {
        struct attune_attributes attributes = {.name = "one of many", .userdata = &crowd[i]};
        crowd[i].place = i;
        crowd[i].number = 1000 * (i + 1);
        attributes.worker = i % 3 ? 1 : ATTUNE_LEAST_LOADED;
        CHECK(attune_create(&crowd[i].thread, &attributes, mixes, &crowd[i]) == 0);
    }
    for (int i = 0; i < CROWD; i++)
        CHECK(attune_semaphore_post(&begin) == 0);
    for (intptr_t i = 0; i < COMMANDERS; i++)
        commanders[i] = start(commands, (void *)i);
    int64_t end = attune_now() + duration;
    while ((attune_now() < end && moves() < most) || moves() == 0)
        attune_sleep_for(20 * MS);
    fprintf(stderr, "%llu moves\n", (unsigned long long)moves());
    finished = true;
    for (int i = 0; i < COMMANDERS; i++)
        join(commanders[i]);
    for (int i = 0; i < CROWD; i++) {
        void *result;
        CHECK(attune_join(crowd[i].thread, &result) == 0 && result == &crowd[i]);
        counter -= counted[i];
    }
    UNTIL(orphans == 0);
    struct attune_statistics numbers;
    do
        CHECK(attune_stats(&numbers, sizeof numbers) == 0);
    while (numbers.living > 1);
    CHECK(counter == 0 && tokens.value == 2 && mutex.owner == 0);
    CHECK(numbers.moves > 0 && attune_worker() == 1 && attune_unpin() == 0);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    bool preempt = count > 2 && !strcmp(arguments[2], "preempted");
    struct attune_options options = {.size = sizeof options, .moves = 1, .preempt = preempt};
    options.ignore_unknown_imports = 1;
    CHECK(attune_init(&options) == 0);
    if (!strcmp(what, "pulls"))
        pulls();
    else if (!strcmp(what, "evens"))
        evens();
    else if (!strcmp(what, "pinned"))
        pinned();
    else if (!strcmp(what, "blocked"))
        blocked();
    else if (!strcmp(what, "errors"))
        errors();
    else if (!strcmp(what, "stress"))
        stress(3000 * MS, 100000);
    else if (!strcmp(what, "brief"))
        stress(500 * MS, 100000);
    else if (!strcmp(what, "none"))
        CHECK(moves() == 0);
    else
        CHECK(!"a case");
    puts("ok");
}
