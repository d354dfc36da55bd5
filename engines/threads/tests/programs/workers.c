/* Threads on several workers, under any scheduler; the number of workers comes from ATTUNE_WORKERS.
 * Prints `ok` and exits with 0, or says what went wrong. With an argument: one of the ends below;
 * `preempted` opts into preemption.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "attune.h"
#include "check.h"

static int workers;

static attune_t start_on(int worker, void *(*body)(void *), void *argument)
{
    attune_t thread;
    struct attune_attributes attributes = {.name = "worker's", .worker = worker};
    CHECK(attune_create(&thread, &attributes, body, argument) == 0);
    return thread;
}

/* The worker of the i-th thread. */
static int spread(int i)
{
    return i % workers + 1;
}

/* ---- a ring: each thread waits for its semaphore and posts the next one's */

#define RING   8
#define ROUNDS 200

static attune_semaphore places[RING];
static long passed[RING];

static void *passes_on(void *argument)
{
    int place = (int)(intptr_t)argument;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(attune_semaphore_wait(&places[place]) == 0);
        passed[place]++;
        CHECK(attune_semaphore_post(&places[(place + 1) % RING]) == 0);
    }
    return argument;
}

static void ring(void)
{
    attune_t threads[RING];
    memset(passed, 0, sizeof passed);
    memset(places, 0, sizeof places);
    for (int i = 0; i < RING; i++)
        threads[i] = start_on(spread(i), passes_on, (void *)(intptr_t)i);
    CHECK(attune_semaphore_post(&places[0]) == 0);
    for (int i = 0; i < RING; i++) {
        void *result;
        CHECK(attune_join(threads[i], &result) == 0 && result == (void *)(intptr_t)i);
        CHECK(passed[i] == ROUNDS);
    }
    CHECK(places[0].value == 1);
}

/* ---- a mutex that threads of all workers contend for; some try, some have a timeout */

#define COUNTERS 12
#define STEPS    300

static attune_mutex mutex = ATTUNE_MUTEX_INIT;
static long counter, expected;
static pthread_t inside; /* the OS thread whose thread has the mutex */

static void *counts(void *argument)
{
    long mine = 0;
    for (int i = 0; i < STEPS; i++) {
        int locked = 0;
        switch ((i + (int)(intptr_t)argument) % 3) {
        case 0:
            locked = attune_mutex_lock(&mutex) == 0;
            break;
        case 1:
            locked = attune_mutex_trylock(&mutex) == 0;
            CHECK(locked || errno == EBUSY);
            break;
        case 2:
            locked = attune_mutex_lock_timed(&mutex, 20000) == 0;
            CHECK(locked || errno == ETIMEDOUT);
            break;
        }
        if (!locked)
            continue;
        long before = counter;
        inside = pthread_self();
        if (i % 7 == 0)
            attune_yield();
        CHECK(pthread_equal(inside, pthread_self()) && counter == before);
        counter = before + 1;
        mine++;
        CHECK(attune_mutex_unlock(&mutex) == 0);
    }
    return (void *)mine;
}

static void contention(void)
{
    attune_t threads[COUNTERS];
    counter = expected = 0;
    for (int i = 0; i < COUNTERS; i++)
        threads[i] = start_on(spread(i), counts, (void *)(intptr_t)i);
    for (int i = 0; i < COUNTERS; i++) {
        void *result;
        CHECK(attune_join(threads[i], &result) == 0);
        expected += (long)result;
    }
    CHECK(counter == expected && counter >= COUNTERS * STEPS / 3);
    CHECK(attune_mutex_destroy(&mutex) == 0);
}

/* ---- a semaphore and a mutex in tight loops of all workers at a time */

#define POSTS 2000000
#define LOCKS 5000

static attune_semaphore total = ATTUNE_SEMAPHORE_INIT(1);

static atomic_int arrived;

static void *tallies(void *none)
{
    arrived++;
    while (arrived < workers)
        attune_yield();
    for (int i = 0; i < POSTS; i++) {
        CHECK(attune_semaphore_post(&total) == 0);
        CHECK(attune_semaphore_post(&total) == 0);
        CHECK(attune_semaphore_trywait(&total) == 0);
    }
    for (int i = 0; i < LOCKS; i++) {
        CHECK(attune_mutex_lock(&mutex) == 0);
        counter++;
        CHECK(attune_mutex_unlock(&mutex) == 0);
    }
    return none;
}

static void tight(void)
{
    attune_t threads[64];
    counter = 0;
    for (int i = 0; i < workers; i++)
        threads[i] = start_on(i + 1, tallies, NULL);
    for (int i = 0; i < workers; i++)
        CHECK(attune_join(threads[i], NULL) == 0);
    CHECK(total.value == 1 + (uint64_t)workers * POSTS);
    CHECK(counter == (long)workers * LOCKS);
}

/* ---- a bounded buffer under a condition, where waits time out while they are signalled */

#define ITEMS 400

static attune_mutex door = ATTUNE_MUTEX_INIT;
static attune_condition changed = ATTUNE_CONDITION_INIT;
static int filled, produced, consumed, finished;

static void *produces(void *none)
{
    for (int i = 0; i < ITEMS; i++) {
        CHECK(attune_mutex_lock(&door) == 0);
        while (filled == 2)
            if (attune_condition_wait_timed(&changed, &door, 30000))
                CHECK(errno == ETIMEDOUT);
        filled++;
        produced++;
        CHECK(attune_condition_broadcast(&changed) == 0);
        CHECK(attune_mutex_unlock(&door) == 0);
    }
    return none;
}

static void *consumes(void *none)
{
    CHECK(attune_mutex_lock(&door) == 0);
    for (;;) {
        while (!filled && !finished)
            if (attune_condition_wait_timed(&changed, &door, 30000))
                CHECK(errno == ETIMEDOUT);
        if (!filled)
            break;
        filled--;
        consumed++;
        CHECK(attune_condition_signal(&changed) == 0);
    }
    CHECK(attune_mutex_unlock(&door) == 0);
    return none;
}

static void buffer(void)
{
    attune_t producers[3], consumers[3];
    filled = produced = consumed = finished = 0;
    for (int i = 0; i < 3; i++) {
        producers[i] = start_on(spread(i), produces, NULL);
        consumers[i] = start_on(spread(i + 1), consumes, NULL);
    }
    for (int i = 0; i < 3; i++)
        CHECK(attune_join(producers[i], NULL) == 0);
    CHECK(attune_mutex_lock(&door) == 0);
    finished = 1;
    CHECK(attune_condition_broadcast(&changed) == 0);
    CHECK(attune_mutex_unlock(&door) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(attune_join(consumers[i], NULL) == 0);
    CHECK(produced == 3 * ITEMS && consumed == produced && filled == 0);
}

/* ---- threads that end while they are joined, detached, suspended and resumed from elsewhere */

static void *ends(void *argument)
{
    if ((intptr_t)argument % 3 == 0)
        attune_yield();
    if ((intptr_t)argument % 3 == 1)
        attune_sleep_for(10000);
    return argument;
}

static void *parent(void *argument)
{
    int mine = (int)(intptr_t)argument;
    for (int i = 0; i < 60; i++) {
        attune_t child = start_on(spread(mine + i), ends, (void *)(intptr_t)i);
        if (attune_suspend(child) == 0)
            CHECK(attune_resume(child) == 0 || errno == ESRCH);
        else
            CHECK(errno == ESRCH || errno == ENOTSUP || errno == EALREADY);
        if (i % 4 == 3) {
            CHECK(attune_detach(child) == 0);
            CHECK(attune_detach(child) == -1 && (errno == EINVAL || errno == ESRCH));
        } else {
            void *result;
            CHECK(attune_join(child, &result) == 0 && result == (void *)(intptr_t)i);
            FAILS(ESRCH, attune_join(child, NULL));
        }
    }
    return NULL;
}

static void ending(void)
{
    attune_t parents[6];
    for (int i = 0; i < 6; i++)
        parents[i] = start_on(spread(i), parent, (void *)(intptr_t)i);
    for (int i = 0; i < 6; i++)
        CHECK(attune_join(parents[i], NULL) == 0);
}

/* Waits until all threads but the program have ended. */
static void settle(void)
{
    struct attune_statistics numbers;
    for (int i = 0; i < 10000; i++) {
        CHECK(attune_stats(&numbers, sizeof numbers) == 0);
        if (numbers.living == 1 && numbers.waiting == 0)
            return;
        attune_sleep_for(MS);
    }
    CHECK(!"all threads end");
}

/* ---- places */

static void *says_where(void *place)
{
    attune_sleep_for(MS);
    CHECK(attune_worker() == *(int *)place || *(int *)place == ATTUNE_LEAST_LOADED);
    return (void *)(intptr_t)attune_worker();
}

static void *system_thread(void *system)
{
    *(pthread_t *)system = pthread_self();
    return NULL;
}

static void where(void)
{
    pthread_t systems[64];
    int on[65] = {0}, least = ATTUNE_LEAST_LOADED;
    attune_t threads[128];
    CHECK(attune_worker() == 1 && attune_self() == 1);
    for (int i = 0; i < workers; i++)
        CHECK(attune_join(start_on(i + 1, system_thread, &systems[i]), NULL) == 0);
    for (int i = 0; i < workers; i++)
        for (int j = 0; j < i; j++)
            CHECK(!pthread_equal(systems[i], systems[j]));
    struct attune_attributes nowhere = {.worker = workers + 1};
    FAILS(EINVAL, attune_create(NULL, &nowhere, ends, NULL));
    nowhere.worker = -7;
    FAILS(EINVAL, attune_create(NULL, &nowhere, ends, NULL));
    /* Nobody ends before all are there, so each worker gets as many; the first has main, too. */
    settle();
    CHECK(attune_mutex_lock(&door) == 0);
    for (int i = 0; i < 2 * workers - 1; i++)
        threads[i] = start_on(least, consumes, NULL);
    for (int i = 0; i < 2 * workers - 1; i++)
        on[(threads[i] - 1) % workers + 1]++;
    finished = 1;
    CHECK(attune_mutex_unlock(&door) == 0);
    for (int i = 0; i < 2 * workers - 1; i++)
        CHECK(attune_join(threads[i], NULL) == 0);
    if ((workers & (workers - 1)) == 0)
        for (int i = 1; i <= workers; i++)
            CHECK(on[i] == (i == 1 ? 1 : 2));
    int two = workers;
    attune_t far = start_on(two, says_where, &two);
    CHECK(!strcmp(attune_name(far), "worker's"));
    CHECK(attune_set_userdata(far, &two) == 0 && attune_userdata(far) == &two);
    void *result;
    CHECK(attune_join(far, &result) == 0 && (intptr_t)result == two);
    FAILS(ESRCH, attune_resume(far));
    FAILS(EDEADLK, attune_join(ATTUNE_SELF, NULL));
}

/* ---- descriptors: an echo between workers, and a descriptor closed under a waiting thread */

static int ends_of[2], closed[2];

static void *echoes(void *none)
{
    char c;
    while (attune_read(ends_of[1], &c, 1) == 1)
        CHECK(attune_write(ends_of[1], &c, 1) == 1);
    return none;
}

static void *reads_closed(void *none)
{
    char c;
    FAILS(EBADF, attune_read(closed[0], &c, 1));
    return none;
}

static void descriptors(void)
{
    char c;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_of) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, closed) == 0);
    attune_t echo = start_on(workers, echoes, NULL);
    attune_t reader = start_on(workers, reads_closed, NULL);
    for (int i = 0; i < 200; i++) {
        char sent = (char)i;
        CHECK(attune_write(ends_of[0], &sent, 1) == 1);
        CHECK(attune_read(ends_of[0], &c, 1) == 1 && c == sent);
    }
    CHECK(attune_close(closed[0]) == 0 && attune_close(closed[1]) == 0);
    CHECK(attune_join(reader, NULL) == 0);
    CHECK(attune_close(ends_of[0]) == 0);
    CHECK(attune_join(echo, NULL) == 0);
    CHECK(attune_close(ends_of[1]) == 0);
}

/* ---- ends */

static attune_mutex held = ATTUNE_MUTEX_INIT;

static void *waits(void *none)
{
    attune_mutex_lock(&held);
    return none;
}

static void *deep(void *none)
{
    volatile char frame[4096];
    frame[0] = 1;
    deep((void *)frame);
    return frame[0] ? none : NULL;
}

static void *says_last(void *none)
{
    attune_sleep_for(20 * MS);
    puts("last");
    fflush(stdout);
    return none;
}

int main(int count, char **arguments)
{
    if (count > 1 && !strcmp(arguments[1], "preempted")) {
        struct attune_options options = {.size = sizeof options, .preempt = 1};
        CHECK(attune_init(&options) == 0);
    }
    workers = attune_workers();
    if (count > 1 && !strcmp(arguments[1], "deadlock")) {
        CHECK(attune_mutex_lock(&held) == 0);
        attune_join(start_on(workers, waits, NULL), NULL);
    } else if (count > 1 && !strcmp(arguments[1], "overflow")) {
        attune_join(start_on(workers, deep, NULL), NULL);
    } else if (count > 1 && !strcmp(arguments[1], "tight")) {
        tight();
        puts("ok");
        return 0;
    } else if (count > 1 && !strcmp(arguments[1], "main exits")) {
        start_on(workers, says_last, NULL);
        attune_exit(NULL);
    }
    struct attune_statistics numbers;
    for (int i = 0; i < 5; i++) {
        ring();
        contention();
        buffer();
        ending();
    }
    where();
    descriptors();
    settle();
    CHECK(attune_stats(&numbers, sizeof numbers) == 0);
    CHECK(numbers.created > 1900 && numbers.switches > 2000);
    puts("ok");
}
