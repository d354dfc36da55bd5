/* Threads for programs that are watched: by AddressSanitizer, ThreadSanitizer or Valgrind.
 *
 *     watched clean | overflow | after-return | locked | race | files | moved
 */
#include <attune.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition) ((condition) ? (void)0 : fail(#condition, __LINE__))

static void fail(const char *condition, int line)
{
    fprintf(stderr, "watched.c:%d: %s does not hold\n", line, condition);
    exit(1);
}

/* Leaves frames behind that a watcher has marked, at any depth. */
static int deep(int depth, jmp_buf *back)
{
    char frame[200];
    memset(frame, depth, sizeof frame);
    attune_yield();
    if (depth == 0) {
        if (back)
            longjmp(*back, 1);
        attune_exit(NULL);
    }
    return deep(depth - 1, back) + frame[depth];
}

static void *jumps(void *nothing)
{
    jmp_buf back;
    if (!setjmp(back))
        deep(10, &back);
    return nothing;
}

static void *exits(void *nothing)
{
    deep(20, NULL);
    return nothing;
}

static void *fills(void *nothing)
{
    char large[20000];
    memset(large, 1, sizeof large);
    attune_yield();
    CHECK(large[19999] == 1);
    return nothing;
}

static void *overflows(void *place)
{
    char small[16] = "";
    attune_yield();
    small[*(volatile int *)place] = 1;
    attune_yield();
    return small[0] ? place : NULL;
}

static char *volatile kept;

static void keeps(void)
{
    char local[16] = "gone";
    kept = local;
    attune_yield();
}

static void *reads_after_return(void *nothing)
{
    keeps();
    attune_yield();
    CHECK(kept[0] != 'x');
    return nothing;
}

static long shared;
static attune_mutex mutex = ATTUNE_MUTEX_INIT;

static void *adds(void *nothing)
{
    for (int i = 0; i < 1000; i++) {
        attune_mutex_lock(&mutex);
        shared++;
        attune_mutex_unlock(&mutex);
        if (i % 10 == 0)
            attune_yield();
    }
    return nothing;
}

/* Two threads that go from step to step together, by what orders nothing. Each call of the library
 * would order them, and a watcher may miss a race between workers that never ran at once. */
static void *races(void *nothing)
{
    static int steps;
    for (int i = 1; i <= 100; i++) {
        shared++;
        __atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED);
        while (__atomic_load_n(&steps, __ATOMIC_RELAXED) < 2 * i)
            sched_yield();
    }
    return nothing;
}

static void *formats(void *text)
{
    snprintf(text, 64, "made by a helper");
    return text;
}

static void *uses_files(void *nothing)
{
    char name[] = "/tmp/attune-watched-XXXXXX", text[64], read[64];
    int fd = mkstemp(name);
    CHECK(fd >= 0 && unlink(name) == 0);
    void *result;
    CHECK(attune_blocking(formats, text, &result) == 0 && result == text);
    ssize_t size = (ssize_t)strlen(text) + 1;
    CHECK(attune_pwrite(fd, text, (size_t)size, 0) == size);
    CHECK(attune_pread(fd, read, sizeof read, 0) == size && !strcmp(read, text));
    memset(read, 0, sizeof read);
    CHECK(attune_read(fd, read, sizeof read) == size && !strcmp(read, text));
    CHECK(attune_write(fd, read, 1) == 1 && attune_close(fd) == 0);
    return nothing;
}

static int moved;

/* What it fills and adds to it has used on another OS thread, too. */
static void *moves(void *nothing)
{
    char frame[300];
    for (int i = 0; i < 3000 && (i < 300 || !__atomic_load_n(&moved, __ATOMIC_RELAXED)); i++) {
        int worker = attune_worker();
        memset(frame, i, sizeof frame);
        attune_mutex_lock(&mutex);
        shared++;
        attune_mutex_unlock(&mutex);
        attune_yield();
        if (i % 50 == 0)
            attune_sleep_for(1000);
        CHECK(frame[299] == (char)i);
        if (attune_worker() != worker)
            __atomic_store_n(&moved, 1, __ATOMIC_RELAXED);
    }
    return jumps(nothing);
}

static attune_t start(void *(*body)(void *), void *argument, int worker)
{
    attune_t thread;
    struct attune_attributes attributes = {.worker = worker};
    CHECK(attune_create(&thread, &attributes, body, argument) == 0);
    return thread;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    int place = 16;
    attune_t threads[6];
    int count = 1, rounds = 1;
    struct attune_options options = {.size = sizeof options, .moves = !strcmp(argv[1], "moved")};
    CHECK(attune_init(&options) == 0);
    if (!strcmp(argv[1], "clean"))
        rounds = 30, count = 3;
    else if (!strcmp(argv[1], "files"))
        rounds = 10, count = 2;
    else if (!strcmp(argv[1], "moved"))
        rounds = 3, count = 6;
    else if (!strcmp(argv[1], "locked") || !strcmp(argv[1], "race"))
        count = 2;
    for (int round = 0; round < rounds; round++) {
        if (!strcmp(argv[1], "clean")) {
            threads[0] = start(jumps, NULL, 0);
            threads[1] = start(exits, NULL, 0);
            threads[2] = start(fills, NULL, 0);
        } else if (!strcmp(argv[1], "files")) {
            for (int i = 0; i < count; i++)
                threads[i] = start(uses_files, NULL, i % attune_workers() + 1);
        } else if (!strcmp(argv[1], "moved")) {
            for (int i = 0; i < count; i++)
                threads[i] = start(moves, NULL, 0);
        } else if (!strcmp(argv[1], "overflow")) {
            threads[0] = start(overflows, &place, 0);
        } else if (!strcmp(argv[1], "after-return")) {
            threads[0] = start(reads_after_return, NULL, 0);
        } else {
            void *(*body)(void *) = strcmp(argv[1], "locked") ? races : adds;
            threads[0] = start(body, NULL, 1);
            threads[1] = start(body, NULL, 2);
        }
        for (int i = 0; i < count; i++)
            CHECK(attune_join(threads[i], NULL) == 0);
    }
    CHECK(moved == options.moves);
    puts("ok");
    return 0;
}
