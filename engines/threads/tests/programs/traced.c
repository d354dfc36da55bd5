/* Threads for a trace.
 *
 *     traced works | crosses | moves | yields | bursts | forks | begins FILE | hangs
 */
#include <attune.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5, BURST = 100000 };

static attune_semaphore filled, empty = ATTUNE_SEMAPHORE_INIT(1);
static attune_mutex mutex = ATTUNE_MUTEX_INIT;
static int ends[2];
static volatile long rounds;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static attune_t start(const char *name, void *(*body)(void *), void *argument, int worker)
{
    attune_t thread;
    struct attune_attributes attributes = {.name = name, .worker = worker};
    if (attune_create(&thread, &attributes, body, argument))
        fail("attune_create");
    return thread;
}

static void join(attune_t thread)
{
    if (attune_join(thread, NULL))
        fail("attune_join");
}

static void *fills(void *none)
{
    for (int i = 0; i < ROUNDS; i++) {
        attune_semaphore_wait(&empty);
        attune_semaphore_post(&filled);
    }
    return none;
}

static void *drains(void *none)
{
    for (int i = 0; i < ROUNDS; i++) {
        attune_semaphore_wait(&filled);
        attune_semaphore_post(&empty);
    }
    return none;
}

/* Until some thread but the caller waits. */
static void until_one_waits(void)
{
    struct attune_statistics statistics;
    do {
        attune_yield();
        if (attune_stats(&statistics, sizeof statistics))
            fail("attune_stats");
    } while (statistics.waiting == 0);
}

static void *takes(void *none)
{
    attune_semaphore_wait(&filled);
    /* Its creator waits for its end. */
    until_one_waits();
    return none;
}

static void *locks(void *none)
{
    attune_mutex_lock(&mutex);
    attune_mutex_unlock(&mutex);
    return none;
}

static void *reads(void *none)
{
    char byte;
    if (attune_read(ends[0], &byte, 1) != 1)
        fail("attune_read");
    return none;
}

static void *yields(void *count)
{
    for (long i = 0; i < (long)count; i++)
        attune_yield();
    return NULL;
}

static void *turns(void *none)
{
    while (1) {
        rounds++;
        attune_yield();
    }
    return none;
}

/* One of each kind of wait. */
static void work(void)
{
    attune_mutex_lock(&mutex);
    attune_t locker = start("locker", locks, NULL, 0);
    if (pipe(ends))
        fail("pipe");
    attune_t reader = start("reader", reads, NULL, 0);
    attune_t filler = start("filler", fills, NULL, 0), drainer = start("drainer", drains, NULL, 0);
    attune_sleep_for(2000000);
    attune_suspend(locker);
    attune_resume(locker);
    attune_mutex_unlock(&mutex);
    attune_write(ends[1], "x", 1);
    join(locker);
    join(reader);
    join(filler);
    join(drainer);
}

static void *tells_and_reads(void *none)
{
    attune_semaphore_post(&filled);
    return reads(none);
}

static volatile int gone;

static void *keeps(void *none)
{
    while (!__atomic_load_n(&gone, __ATOMIC_RELAXED))
        attune_yield();
    return none;
}

static void *goes(void *none)
{
    while (attune_worker() == 1)
        attune_yield();
    for (int i = 0; i < ROUNDS; i++)
        attune_sleep_for(100000);
    __atomic_store_n(&gone, 1, __ATOMIC_RELAXED);
    return none;
}

/* Worker 1 has two threads to run, and worker 2 none. */
static void move(void)
{
    attune_t keeper;
    struct attune_attributes stays = {.name = "keeper", .pinned = 1};
    if (attune_create(&keeper, &stays, keeps, NULL))
        fail("attune_create");
    attune_t goer = start("goer", goes, NULL, 0);
    join(goer);
    join(keeper);
}

static void burst(void)
{
    attune_t first = start("first", yields, (void *)BURST, 0);
    attune_t second = start("second", yields, (void *)BURST, 0);
    join(first);
    join(second);
    puts("lost");
    fflush(stdout);
    /* The trace goes on at a switch, once there is room for all again. */
    char byte;
    while (attune_read_timed(0, &byte, 1, 10000000) != 1)
        continue;
    first = start("third", yields, (void *)3, 0);
    second = start("fourth", yields, (void *)3, 0);
    join(first);
    join(second);
}

static void fork_one(void)
{
    attune_t before = start("before", yields, (void *)3, 0);
    join(before);
    pid_t child = fork();
    if (!child) {
        int refused = attune_yield() == -1 && attune_trace("child.pftrace") == -1;
        exit(refused && errno == EPERM ? 7 : 8);
    }
    int status;
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7)
        fail("the child");
    join(start("after", yields, (void *)3, 0));
}

static void expect(int result, int error, const char *what)
{
    if (result != -1 || errno != error)
        fail(what);
}

static void begin(const char *file)
{
    if (pipe(ends))
        fail("pipe");
    attune_t early = start("early", tells_and_reads, NULL, attune_workers());
    attune_semaphore_wait(&filled);
    expect(attune_trace(NULL), EALREADY, "no trace to end");
    expect(attune_trace("/none/such"), ENOENT, "no such folder");
    for (int i = 0; i < 2; i++) {
        if (attune_trace(file))
            fail("attune_trace");
        expect(attune_trace(file), EALREADY, "a second trace");
        join(start("within", yields, (void *)3, 0));
        if (attune_trace(NULL))
            fail("attune_trace(NULL)");
        puts("complete");
        fflush(stdout);
        join(start("outside", yields, (void *)3, 0));
    }
    attune_write(ends[1], "x", 1);
    join(early);
    if (attune_trace("/dev/full"))
        fail("attune_trace");
    expect(attune_trace(NULL), ENOSPC, "a full disk");
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "works";
    struct attune_options options = {.size = sizeof options, .moves = !strcmp(what, "moves")};
    struct attune_statistics statistics;
    if (attune_init(&options))
        fail("attune_init");
    if (!strcmp(what, "works")) {
        work();
    } else if (!strcmp(what, "crosses")) {
        attune_t taker = start("taker", takes, NULL, 2);
        until_one_waits();
        attune_semaphore_post(&filled);
        join(taker);
    } else if (!strcmp(what, "moves")) {
        move();
    } else if (!strcmp(what, "yields")) {
        start("first", turns, NULL, 0);
        turns(NULL);
    } else if (!strcmp(what, "bursts")) {
        burst();
    } else if (!strcmp(what, "forks")) {
        fork_one();
    } else if (!strcmp(what, "begins")) {
        begin(arguments[2]);
    } else {
        attune_mutex_lock(&mutex);
        start("stuck", locks, NULL, 0);
        attune_yield();
        attune_semaphore_wait(&filled);
    }
    if (attune_stats(&statistics, sizeof statistics))
        fail("attune_stats");
    printf("%d switches\n", (int)statistics.switches);
    return 0;
}
