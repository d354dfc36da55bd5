/* Every function of attune.h, from C, under a first-come-first-served scheduler; with the argument
 * `imports` under tests/schedulers/test_fifo.sched. Prints `ok` and exits with 0, or says what went
 * wrong. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attune.h"
#include "check.h"

static char trace[64];
static int is_full; /* the scheduler has set_next_thread and the imports tested here */

static void note(char c)
{
    trace[strlen(trace)] = c;
}
static void expect(const char *wanted)
{
    if (strcmp(trace, wanted)) {
        fprintf(stderr, "order is %s, not %s\n", trace, wanted);
        exit(1);
    }
    memset(trace, 0, sizeof trace);
}

static attune_t start(void *(*body)(void *), void *argument)
{
    attune_t thread;
    CHECK(attune_create(&thread, NULL, body, argument) == 0);
    return thread;
}

/* ---- threads */

static void *twice(void *c)
{
    note(*(char *)c);
    CHECK(attune_yield() == 0);
    note(*(char *)c);
    return c;
}

static void *exits(void *value)
{
    attune_exit(value);
}

static void *sleeps(void *ms)
{
    attune_sleep_for((intptr_t)ms * MS);
    note('0' + (char)((intptr_t)ms / 100));
    return NULL;
}

static void *suspends_itself(void *none)
{
    note('s');
    CHECK(attune_suspend(ATTUNE_SELF) == 0);
    note('r');
    return none;
}

static void *named(void *none)
{
    CHECK(!strcmp(attune_name(ATTUNE_SELF), "worker"));
    CHECK(attune_userdata(ATTUNE_SELF) == trace);
    return none;
}

static void *joins(void *other)
{
    CHECK(attune_join(*(attune_t *)other, NULL) == 0);
    return NULL;
}

static void *joins_back(void *other)
{
    FAILS(EDEADLK, attune_join(*(attune_t *)other, NULL));
    return NULL;
}

static void *foreign(void *none)
{
    FAILS(EPERM, attune_yield());
    CHECK(attune_self() == 0);
    return none;
}

static void threads(void)
{
    void *result;
    char a = 'a', b = 'b';
    CHECK(attune_self() == 1 && !strcmp(attune_name(1), "main"));
    attune_t x = start(twice, &a), y = start(twice, &b);
    errno = 77;
    CHECK(attune_yield() == 0 && errno == 77);
    expect("ab");
    CHECK(attune_join(x, &result) == 0 && result == &a);
    CHECK(attune_join(y, NULL) == 0);
    expect("ab");
    FAILS(ESRCH, attune_join(x, NULL));
    FAILS(EDEADLK, attune_join(attune_self(), NULL));

    x = start(exits, &b);
    CHECK(attune_join(x, &result) == 0 && result == &b);

    x = start(twice, &a), y = start(twice, &b);
    CHECK(attune_yield_to(y) == 0);
    expect(is_full ? "ba" : "ab");
    CHECK(!attune_join(x, NULL) && !attune_join(y, NULL));
    expect(is_full ? "ba" : "ab");
    FAILS(ESRCH, attune_yield_to(y));

    x = start(sleeps, (void *)300), y = start(sleeps, (void *)100);
    FAILS(EAGAIN, (attune_yield(), attune_yield_to(x)));
    CHECK(!attune_join(x, NULL) && !attune_join(y, NULL));
    expect("13");
    int64_t before = attune_now();
    CHECK(attune_sleep_until(before + 5 * MS) == 0 && attune_now() >= before + 5 * MS);
    CHECK(attune_sleep_until(before) == 0);

    x = start(suspends_itself, NULL);
    attune_yield();
    expect("s");
    attune_yield();
    FAILS(EALREADY, attune_suspend(x));
    FAILS(EAGAIN, attune_yield_to(x));
    CHECK(attune_resume(x) == 0);
    FAILS(EINVAL, attune_resume(x));
    CHECK(!attune_join(x, NULL));
    expect("r");

    x = start(twice, &a); /* suspended while ready */
    CHECK(attune_suspend(x) == 0);
    attune_yield();
    expect("");
    CHECK(attune_resume(x) == 0 && !attune_join(x, NULL));
    expect("aa");

    /* suspended while it sleeps, beyond its time */
    x = start(sleeps, (void *)100);
    attune_yield();
    CHECK(attune_suspend(x) == 0);
    attune_sleep_for(150 * MS);
    expect("");
    CHECK(attune_resume(x) == 0 && !attune_join(x, NULL));
    expect("1");

    struct attune_attributes attributes = {
        .name = "worker", .stack_size = 20000, .userdata = trace};
    CHECK(attune_create(&x, &attributes, named, NULL) == 0 && !attune_join(x, NULL));
    attributes.stack_size = SIZE_MAX;
    FAILS(EINVAL, attune_create(&x, &attributes, named, NULL));
    attributes.stack_size = 0;
    attributes.detached = 1;
    CHECK(attune_create(&x, &attributes, named, NULL) == 0);
    FAILS(EINVAL, attune_join(x, NULL));
    attune_yield();
    FAILS(ESRCH, attune_detach(x));
    x = start(exits, NULL);
    CHECK(attune_detach(x) == 0);
    attune_yield();
    CHECK(attune_name(x) == NULL && errno == ESRCH);

    /* two threads that wait for each other's end */
    x = start(joins, &y);
    y = start(joins_back, &x);
    attune_yield();
    CHECK(!attune_join(x, NULL));
}

static void foreign_os_thread(void)
{
    pthread_t other;
    CHECK(pthread_create(&other, NULL, foreign, NULL) == 0 && pthread_join(other, NULL) == 0);
}

/* ---- mutex, condition, semaphore */

static attune_mutex mutex = ATTUNE_MUTEX_INIT;
static attune_condition condition = ATTUNE_CONDITION_INIT;
static attune_semaphore semaphore = ATTUNE_SEMAPHORE_INIT(1);

static void *locks(void *c)
{
    CHECK(attune_mutex_lock(&mutex) == 0);
    note(*(char *)c);
    attune_yield();
    note(*(char *)c);
    CHECK(attune_mutex_unlock(&mutex) == 0);
    return NULL;
}

static void *waits(void *c)
{
    CHECK(attune_mutex_lock(&mutex) == 0);
    CHECK(attune_condition_wait(&condition, &mutex) == 0);
    note(*(char *)c);
    CHECK(attune_mutex_unlock(&mutex) == 0);
    return NULL;
}

static void *takes(void *c)
{
    CHECK(attune_semaphore_wait(&semaphore) == 0);
    note(*(char *)c);
    return NULL;
}

static void synchronisation(void)
{
    char a = 'a', b = 'b';
    attune_t x = start(locks, &a), y = start(locks, &b);
    attune_yield();
    FAILS(EBUSY, attune_mutex_trylock(&mutex));
    FAILS(EPERM, attune_mutex_unlock(&mutex));
    FAILS(EBUSY, attune_mutex_destroy(&mutex));
    FAILS(ETIMEDOUT, attune_mutex_lock_timed(&mutex, 0));
    CHECK(!attune_join(x, NULL) && !attune_join(y, NULL));
    expect("aabb");
    CHECK(attune_mutex_trylock(&mutex) == 0);
    FAILS(EDEADLK, attune_mutex_lock(&mutex));
    x = start(locks, &a);
    attune_yield();
    FAILS(EPERM, attune_condition_wait(&condition, (attune_mutex[]){ATTUNE_MUTEX_INIT}));
    FAILS(ETIMEDOUT, attune_condition_wait_timed(&condition, &mutex, 5 * MS));
    CHECK(mutex.owner == attune_self());
    CHECK(attune_mutex_unlock(&mutex) == 0 && !attune_join(x, NULL));
    expect("aa");

    x = start(waits, &a), y = start(waits, &b);
    attune_yield();
    FAILS(EBUSY, attune_condition_destroy(&condition));
    CHECK(attune_condition_signal(&condition) == 0);
    attune_yield();
    attune_yield();
    expect("a");
    CHECK(attune_condition_broadcast(&condition) == 0);
    CHECK(!attune_join(x, NULL) && !attune_join(y, NULL));
    expect("b");
    CHECK(attune_condition_signal(&condition) == 0 && attune_condition_destroy(&condition) == 0);
    CHECK(attune_mutex_destroy(&mutex) == 0);

    x = start(takes, &a), y = start(takes, &b);
    attune_yield();
    expect("a");
    FAILS(EAGAIN, attune_semaphore_trywait(&semaphore));
    FAILS(EBUSY, attune_semaphore_destroy(&semaphore));
    CHECK(attune_semaphore_post(&semaphore) == 0);
    FAILS(EAGAIN, attune_semaphore_trywait(&semaphore)); /* y has it already */
    CHECK(!attune_join(x, NULL) && !attune_join(y, NULL));
    expect("b");
    FAILS(ETIMEDOUT, attune_semaphore_wait_timed(&semaphore, 5 * MS));
    CHECK(attune_semaphore_post(&semaphore) == 0 && attune_semaphore_trywait(&semaphore) == 0);
    CHECK(attune_semaphore_destroy(&semaphore) == 0);
}

/* ---- descriptors */

static int listener, port;
static int pair[2];

static void *serves(void *none)
{
    char text[64];
    int fd = attune_accept(listener, NULL, NULL);
    CHECK(fd >= 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK));
    ssize_t n = attune_read(fd, text, sizeof text);
    CHECK(n == 5 && !memcmp(text, "hello", 5));
    struct iovec parts[2] = {{"wor", 3}, {"ld", 2}};
    CHECK(attune_writev(fd, parts, 2) == 5);
    CHECK(attune_close(fd) == 0);
    return none;
}

static void *reads_byte(void *where)
{
    CHECK(attune_read(pair[0], where, 1) == 1);
    return NULL;
}

/* Room for a message that hands a descriptor over. */
union handing {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

/* Waits for a message with a descriptor and writes to that. */
static void *takes_descriptor(void *none)
{
    char text[8];
    union handing control;
    struct iovec part = {text, sizeof text};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    FAILS(ETIMEDOUT, attune_recvmsg_timed(pair[0], &message, 0, MS));
    message.msg_control = control.bytes, message.msg_controllen = sizeof control.bytes;
    CHECK(attune_recvmsg(pair[0], &message, 0) == 4 && !memcmp(text, "take", 4));
    struct cmsghdr *handed = CMSG_FIRSTHDR(&message);
    CHECK(handed != NULL && handed->cmsg_type == SCM_RIGHTS);
    int fd;
    memcpy(&fd, CMSG_DATA(handed), sizeof fd);
    CHECK(attune_write(fd, "taken", 5) == 5 && attune_close(fd) == 0);
    return none;
}

static void hands_descriptor_over(int fd)
{
    union handing control = {{0}};
    struct iovec parts[2] = {{"ta", 2}, {"ke", 2}};
    struct msghdr message = {.msg_iov = parts,
                             .msg_iovlen = 2,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    control.align = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.align), &fd, sizeof fd);
    CHECK(attune_sendmsg(pair[1], &message, MSG_NOSIGNAL) == 4);
}

static void *is_cut_off(void *fd)
{
    char c;
    FAILS(EBADF, attune_read(*(int *)fd, &c, 1));
    return NULL;
}

static void *fills(void *size)
{
    char *block = calloc(1, (size_t)(intptr_t)size);
    size_t done = 0;
    while (done < (size_t)(intptr_t)size) {
        ssize_t n = attune_send(pair[0], block + done, (size_t)(intptr_t)size - done, 0);
        CHECK(n > 0);
        done += (size_t)n;
    }
    free(block);
    return NULL;
}

static void descriptors(void)
{
    char text[64], one = 0, two = 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (void *)&address, length) == 0 && listen(listener, 8) == 0);
    CHECK(getsockname(listener, (void *)&address, &length) == 0);
    port = ntohs(address.sin_port);
    FAILS(ETIMEDOUT, attune_accept_timed(listener, NULL, NULL, 5 * MS));
    attune_t server = start(serves, NULL);
    attune_yield();
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(attune_connect(fd, (void *)&address, sizeof address) == 0);
    CHECK(attune_write(fd, "hello", 5) == 5);
    struct iovec parts[2] = {{text, 3}, {text + 3, 2}};
    ssize_t n = attune_readv(fd, parts, 2);
    CHECK(n == 5 && !memcmp(text, "world", 5));
    CHECK(attune_recv(fd, text, sizeof text, 0) == 0); /* closed by the server */
    CHECK(!attune_join(server, NULL) && attune_close(fd) == 0);
    CHECK(close(listener) == 0);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    FAILS(ECONNREFUSED, attune_connect(fd, (void *)&address, sizeof address));
    attune_close(fd);

    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    FAILS(ETIMEDOUT, attune_read_timed(pair[0], text, 1, 5 * MS));
    FAILS(ETIMEDOUT, attune_recv_timed(pair[0], text, 1, 0, 0));
    /* two readers of one descriptor */
    attune_t x = start(reads_byte, &one), y = start(reads_byte, &two);
    attune_yield();
    CHECK(attune_send(pair[1], "1", 1, MSG_NOSIGNAL) == 1);
    attune_sleep_for(5 * MS);
    CHECK(one == '1' && two == 0);
    CHECK(attune_write(pair[1], "2", 1) == 1);
    CHECK(!attune_join(x, NULL) && !attune_join(y, NULL) && two == '2');

    /* a reader and a writer of one descriptor */
    intptr_t size = 1 << 20;
    x = start(fills, (void *)size), y = start(reads_byte, &one);
    attune_yield();
    for (intptr_t left = size; left > 0;) {
        static char block[10000];
        n = attune_read(pair[1], block, sizeof block);
        CHECK(n > 0);
        left -= n;
    }
    CHECK(attune_write(pair[1], "3", 1) == 1 && !attune_join(x, NULL) && !attune_join(y, NULL) &&
          one == '3');

    int pipes[2];
    CHECK(pipe(pipes) == 0);
    struct pollfd wishes[3] = {{pair[0], POLLIN, 0}, {pipes[0], POLLIN, 0}, {-1, POLLIN, 0}};
    CHECK(attune_poll(wishes, 3, 5 * MS) == 0);
    CHECK(attune_write(pipes[1], "p", 1) == 1);
    CHECK(attune_poll(wishes, 3, ATTUNE_FOREVER) == 1 && wishes[1].revents == POLLIN &&
          wishes[0].revents == 0);
    CHECK(attune_read(pipes[0], text, 9) == 1);
    FAILS(ETIMEDOUT, attune_read_timed(pipes[0], text, 9, MS));

    x = start(takes_descriptor, NULL);
    attune_sleep_for(5 * MS);
    hands_descriptor_over(pipes[1]);
    CHECK(!attune_join(x, NULL));
    CHECK(attune_read(pipes[0], text, 9) == 5 && !memcmp(text, "taken", 5));
    int no_socket = pipes[1];
    FAILS(ENOTSOCK, attune_sendmsg(no_socket, &(struct msghdr){0}, 0));

    x = start(is_cut_off, &pipes[0]); /* closed with attune_close: at once */
    attune_yield();
    CHECK(attune_close(pipes[0]) == 0 && !attune_join(x, NULL));
    close(pipes[1]);

    /* closed with close: noticed when idle */
    x = start(is_cut_off, &pair[0]);
    attune_yield();
    CHECK(close(pair[0]) == 0 && !attune_join(x, NULL));
    attune_close(pair[1]);
    FAILS(EBADF, attune_read(pair[1], text, 1));
    FAILS(EBADF, attune_close(pair[1]));

    int file = open("/proc/self/exe", O_RDONLY); /* a sort that epoll does not know */
    CHECK(attune_read(file, text, 4) == 4 && !memcmp(text, "\177ELF", 4));
    CHECK(attune_read(file, text, 0) == 0);
    attune_close(file);
}

/* ---- imports */

struct data {
    char before;
    int urgent;
};

static void imports(void)
{
    static int64_t pressure = 0;
    static struct data data;
    if (!is_full) {
        FAILS(ENOENT, attune_register("no_such_import", &pressure));
        return;
    }
    CHECK(attune_register("pressure", &pressure) == 0);
    attune_yield();
    CHECK(pressure > 0); /* the test scheduler counts in it */
    CHECK(attune_unregister("pressure") == 0);
    int64_t then = pressure;
    attune_yield();
    CHECK(pressure == then);
    FAILS(EINVAL, attune_unregister("pressure"));
    int64_t *owned = attune_import_int("pressure");
    /* the default, counted up while nothing was registered */
    CHECK(owned && *owned > 7);
    then = *owned;
    attune_yield();
    CHECK(*owned == then + 1);

    FAILS(ENOENT, attune_register("presure", &pressure));
    FAILS(ENOENT, attune_register("own", &pressure));
    FAILS(EINVAL, attune_register("urgent", &pressure));
    FAILS(EINVAL, attune_register_thread("pressure", 0));
    CHECK(attune_register_thread_field("urgent", struct data, urgent) == 0);
    char a = 'a', b = 'b';
    attune_t x = start(twice, &a), y = start(twice, &b);
    CHECK(attune_set_userdata(y, &data) == 0);
    data.urgent = 1;
    attune_yield();
    attune_yield();
    expect("bbaa"); /* y goes before all others */
    CHECK(!attune_join(x, NULL) && !attune_join(y, NULL));
    CHECK(attune_thread_import_int(ATTUNE_SELF, "urgent") == NULL && errno == EBUSY);
    CHECK(attune_unregister("urgent") == 0);
    int64_t *urgent = attune_thread_import_int(ATTUNE_SELF, "urgent");
    CHECK(urgent && *urgent == 5 && attune_thread_import_int(ATTUNE_SELF, "urgent") == urgent);
    CHECK(attune_thread_import_float(ATTUNE_SELF, "urgent") == NULL && errno == EBUSY);
    CHECK(attune_register_thread("urgent", offsetof(struct data, urgent)) == 0);
    CHECK(attune_unregister("urgent") == 0);
}

int main(int count, char **arguments)
{
    struct attune_options options = {.size = 1};
    FAILS(EINVAL, attune_init(&options));
    options.size = sizeof options;
    CHECK(attune_init(&options) == 0);
    FAILS(EALREADY, attune_init(&options));
    CHECK(attune_scheduler_name() != NULL);
    is_full = count > 1 && !strcmp(arguments[1], "imports");
    threads();
    foreign_os_thread();
    synchronisation();
    descriptors();
    imports();
    struct attune_statistics numbers;
    CHECK(attune_stats(&numbers, sizeof numbers) == 0);
    CHECK(numbers.created > 20 && numbers.living >= 1 && numbers.switches > 40 &&
          numbers.polls > 0);
    FAILS(EINVAL, attune_stats(&numbers, 3));
    puts("ok");
    return 0;
}
