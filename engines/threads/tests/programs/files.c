/* Regular files, calls that block, and descriptors that are closed, under any poller and any number
 * of workers. Prints `ok`, or says what went wrong.
 *
 *     files plain | blocking | closing | half | slow | stuck
 *
 * `slow` ends with status 77 where the machine cannot have a slow file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "attune.h"
#include "check.h"
#include "fuse.h"
#include "start.h"

static int new_file(void)
{
    char name[] = "/tmp/attune-files-XXXXXX";
    int fd = mkostemp(name, O_CLOEXEC);
    CHECK(fd >= 0 && unlink(name) == 0);
    return fd;
}

/* ---- plain files */

#define WRITERS 6
#define LINES   40
#define LINE    32

static int together;

static void *writes_lines(void *number)
{
    char line[LINE];
    memset(line, 'a' + (int)(intptr_t)number, LINE - 1);
    line[LINE - 1] = '\n';
    for (int i = 0; i < LINES; i++)
        CHECK(attune_write(together, line, LINE) == LINE);
    return NULL;
}

/* Threads of all workers write at one position: no line covers another. */
static void position(void)
{
    attune_t threads[WRITERS];
    char line[LINE];
    int lines[WRITERS] = {0};
    together = new_file();
    for (int i = 0; i < WRITERS; i++)
        threads[i] = start_on(i % attune_workers() + 1, writes_lines, (void *)(intptr_t)i);
    for (int i = 0; i < WRITERS; i++)
        CHECK(attune_join(threads[i], NULL) == 0);
    CHECK(lseek(together, 0, SEEK_SET) == 0);
    while (attune_read(together, line, LINE) == LINE) {
        for (int i = 1; i < LINE - 1; i++)
            CHECK(line[i] == line[0]);
        lines[line[0] - 'a']++;
    }
    for (int i = 0; i < WRITERS; i++)
        CHECK(lines[i] == LINES);
    CHECK(attune_close(together) == 0);
}

static void plain(void)
{
    char text[16] = "";
    int pipes[2], fd = new_file();
    errno = 77;
    CHECK(attune_pwrite(fd, "hello", 5, 3) == 5 && errno == 77);
    CHECK(attune_pread(fd, text, sizeof text, 0) == 8 && !memcmp(text, "\0\0\0hello", 8));
    CHECK(attune_pread(fd, text, 2, 6) == 2 && !memcmp(text, "lo", 2));
    CHECK(attune_pread(fd, text, sizeof text, 8) == 0 && errno == 77);
    CHECK(lseek(fd, 0, SEEK_CUR) == 0);
    CHECK(attune_write(fd, "HE", 2) == 2 && attune_read(fd, text, 2) == 2);
    CHECK(text[0] == 0 && text[1] == 'h' && lseek(fd, 0, SEEK_CUR) == 4);
    struct iovec parts[2] = {{"wor", 3}, {"ld", 2}};
    CHECK(attune_writev(fd, parts, 2) == 5 && lseek(fd, 4, SEEK_SET) == 4);
    struct iovec places[2] = {{text, 2}, {text + 2, 8}};
    CHECK(attune_readv(fd, places, 2) == 5 && !memcmp(text, "world", 5));
    /* a file has no time limit; what counts or ticks is no file */
    CHECK(attune_read_timed(fd, text, 1, 0) == 0);
    int counter = eventfd(0, EFD_CLOEXEC);
    FAILS(ETIMEDOUT, attune_read_timed(counter, text, 8, MS));
    CHECK(attune_close(counter) == 0);

    FAILS(EINVAL, attune_pread(fd, text, 1, -1));
    FAILS(EFAULT, attune_pread(fd, (void *)1, 4, 0));
    FAILS(EBADF, attune_pread(-1, text, 1, 0));
    CHECK(pipe(pipes) == 0);
    FAILS(ESPIPE, attune_pread(pipes[0], text, 1, 0));
    FAILS(ESPIPE, attune_pwrite(pipes[1], text, 1, 0));
    int reader = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    FAILS(EBADF, attune_pwrite(reader, text, 1, 0));
    FAILS(EBADF, attune_write(reader, text, 1));
    CHECK(attune_close(reader) == 0 && attune_close(fd) == 0);
    FAILS(EBADF, attune_pread(fd, text, 1, 0));

    /* more than is in a page, of a file that says "again" if it likes */
    size_t size = 3 << 20;
    unsigned char *out = malloc(size), *in = malloc(size);
    for (size_t i = 0; i < size; i++)
        out[i] = (unsigned char)(i * 2654435761u >> 24);
    fd = new_file();
    CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    CHECK(attune_pwrite(fd, out, size, 0) == (ssize_t)size);
    CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
    CHECK(attune_pread(fd, in, size, 0) == (ssize_t)size && !memcmp(in, out, size));
    CHECK(attune_close(fd) == 0);
    free(out);
    free(in);
    position();
}

/* ---- calls that block */

#define CALLS 80
#define FEW   10

static int gates[CALLS][2];
static pthread_t workers_own;

static void *reads_plainly(void *gate)
{
    char c;
    CHECK(!pthread_equal(pthread_self(), workers_own));
    FAILS(EPERM, attune_yield());
    return read(*(int *)gate, &c, 1) == 1 ? gate : NULL;
}

static void *calls(void *gate)
{
    void *result = NULL;
    errno = 77;
    CHECK(attune_blocking(reads_plainly, gate, &result) == 0 && errno == 77);
    return result;
}

static void *nothing(void *none)
{
    return none;
}

/* Leaves no room for an OS thread's stack. Nothing has been called yet, so there is no helper. */
static void without_helpers(void)
{
    struct rlimit limit, before;
    long pages = 0;
    FILE *memory = fopen("/proc/self/statm", "r");
    CHECK(memory && fscanf(memory, "%ld", &pages) == 1 && fclose(memory) == 0);
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    limit = before;
    limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (4 << 20);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    FAILS(ENOMEM, attune_blocking(nothing, NULL, NULL));
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    CHECK(attune_blocking(nothing, NULL, NULL) == 0);
}

static void blocking(void)
{
    attune_t threads[CALLS];
    void *result;
    attune_yield();
    workers_own = pthread_self();
    FAILS(EINVAL, attune_blocking(NULL, NULL, NULL));
    without_helpers();
    /* no call waits for another one: the last ends first */
    for (int i = 0; i < FEW; i++) {
        CHECK(pipe(gates[i]) == 0);
        threads[i] = start_on(i % attune_workers() + 1, calls, gates[i]);
    }
    for (int i = FEW - 1; i >= 0; i--) {
        CHECK(attune_write(gates[i][1], "", 1) == 1);
        CHECK(attune_join(threads[i], &result) == 0 && result == gates[i]);
        CHECK(attune_close(gates[i][0]) == 0 && attune_close(gates[i][1]) == 0);
    }
    /* more than there are helpers, so some wait for others */
    for (int i = 0; i < CALLS; i++) {
        CHECK(pipe(gates[i]) == 0);
        threads[i] = start_on(i % attune_workers() + 1, calls, gates[i]);
    }
    attune_sleep_for(5 * MS);
    for (int i = CALLS - 1; i >= 0; i--)
        CHECK(attune_write(gates[i][1], "", 1) == 1);
    for (int i = 0; i < CALLS; i++)
        CHECK(attune_join(threads[i], &result) == 0 && result == gates[i]);
}

/* ---- closing */

static int pair[2];

static void *is_cut_off(void *fd)
{
    char c;
    FAILS(EBADF, attune_read(*(int *)fd, &c, 1));
    return NULL;
}

static void *reads_b(void *fd)
{
    char c = 0;
    CHECK(attune_read(*(int *)fd, &c, 1) == 1 && c == 'b');
    return NULL;
}

/* Whether the peer of pair[0] sees the end now. */
static int is_at_end(void)
{
    char c;
    return recv(pair[1], &c, 1, MSG_DONTWAIT) == 0;
}

static void closing(void)
{
    char c;
    int a[2], b[2];
    /* a wait that timed out keeps nothing open, neither does one for several */
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    FAILS(ETIMEDOUT, attune_read_timed(pair[0], &c, 1, MS));
    CHECK(!is_at_end() && close(pair[0]) == 0 && is_at_end());
    close(pair[1]);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(a) == 0);
    struct pollfd wishes[2] = {{pair[0], POLLIN, 0}, {a[0], POLLIN, 0}};
    CHECK(attune_poll(wishes, 2, MS) == 0);
    CHECK(close(pair[0]) == 0 && is_at_end());
    close(pair[1]);

    /* attune_close ends a wait and the connection, while others wait for something else */
    attune_t x = start(is_cut_off, &a[0]);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    attune_t y = start(is_cut_off, &pair[0]);
    attune_sleep_for(MS);
    CHECK(!is_at_end() && attune_close(pair[0]) == 0 && is_at_end());
    CHECK(attune_join(y, NULL) == 0 && attune_close(pair[1]) == 0);

    /* The number stands for another file when the next thread waits. */
    CHECK(pipe(b) == 0 && dup2(b[0], a[0]) == a[0]);
    y = start(reads_b, &a[0]);
    CHECK(attune_join(x, NULL) == 0);
    CHECK(attune_write(b[1], "b", 1) == 1 && attune_join(y, NULL) == 0);
}

/* ---- a peer that says no more, and reads slowly */

static void *fills(void *size)
{
    static char block[1 << 16];
    for (size_t left = (size_t)(intptr_t)size; left > 0;) {
        ssize_t n = attune_send(pair[0], block, left < sizeof block ? left : sizeof block, 0);
        CHECK(n > 0);
        left -= (size_t)n;
    }
    return NULL;
}

static void half(void)
{
    static char block[1 << 16];
    struct attune_statistics before, after;
    intptr_t size = 4 << 20;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && shutdown(pair[1], SHUT_WR) == 0);
    attune_t x = start(fills, (void *)size);
    attune_sleep_for(5 * MS);
    CHECK(attune_stats(&before, sizeof before) == 0);
    attune_sleep_for(50 * MS);
    CHECK(attune_stats(&after, sizeof after) == 0);
    /* one that is told again and again of the end polls thousands of times */
    CHECK(after.waiting == 1 && after.polls - before.polls < 100);
    while (size > 0) {
        ssize_t n = attune_read(pair[1], block, sizeof block);
        CHECK(n > 0);
        size -= n;
    }
    CHECK(attune_join(x, NULL) == 0);
}

/* ---- a file that blocks */

enum { PREADS, READS, PWRITES, WRITES, PREADS_NONBLOCK, WAYS };

static char slow_path[200];
static int slow_file, ended;

static void *uses_slow_file(void *way)
{
    char text[sizeof SLOW_TEXT] = "";
    const ssize_t size = sizeof text;
    switch ((int)(intptr_t)way) {
    case READS:
        CHECK(attune_read(slow_file, text, sizeof text) == size && !strcmp(text, SLOW_TEXT));
        break;
    case WRITES:
        CHECK(attune_write(slow_file, "written", 8) == 8 &&
              !strcmp(slow_state->written, "written"));
        break;
    case PWRITES:
        CHECK(attune_pwrite(slow_file, "at a place", 11, 0) == 11);
        CHECK(!strcmp(slow_state->written, "at a place"));
        break;
    default:
        CHECK(attune_pread(slow_file, text, sizeof text, 0) == size && !strcmp(text, SLOW_TEXT));
    }
    ended = 1;
    return NULL;
}

static void slow(void)
{
    for (int way = 0; way < WAYS; way++) {
        ended = 0;
        slow_file = open(slow_path, O_RDWR | (way == PREADS_NONBLOCK ? O_NONBLOCK : 0));
        CHECK(slow_file >= 0);
        attune_t x = start(uses_slow_file, (void *)(intptr_t)way);
        while (!slow_state->held && !slow_state->gave_up)
            attune_sleep_for(MS);
        for (int i = 0; i < 100; i++)
            attune_yield();
        CHECK(!ended && !slow_state->gave_up);
        slow_release();
        CHECK(attune_join(x, NULL) == 0 && ended && !slow_state->gave_up);
        CHECK(attune_close(slow_file) == 0);
    }
    slow_remove(slow_path);
}

/* ---- a deadlock after calls and transfers */

static void stuck(void)
{
    char c;
    int fd = new_file();
    attune_semaphore never = ATTUNE_SEMAPHORE_INIT(0);
    CHECK(attune_blocking(nothing, NULL, NULL) == 0);
    CHECK(attune_write(fd, "x", 1) == 1 && attune_pread(fd, &c, 1, 0) == 1);
    attune_semaphore_wait(&never);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "plain")) {
        plain();
    } else if (!strcmp(what, "blocking")) {
        blocking();
    } else if (!strcmp(what, "closing")) {
        closing();
    } else if (!strcmp(what, "half")) {
        half();
    } else if (!strcmp(what, "stuck")) {
        stuck();
    } else {
        const char *missing = slow_make(slow_path, sizeof slow_path);
        if (missing) {
            fprintf(stderr, "this test needs %s\n", missing);
            return 77;
        }
        slow();
    }
    puts("ok");
    return 0;
}
