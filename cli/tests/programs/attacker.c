/* A hostile client of the values' socket and page: does whatever the interface lets it, to a victim
 * of another user.
 *
 *     attacker SOCKET VICTIM
 *
 * Says a line for each thing that it was granted and should not have been, and in the end
 * "attacker: done". Ends by itself.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE_BYTES (16384 * 128)
#define HELLO      "{\"hello\":{\"version\":2}}"

static const char *path;
static int victim;
static volatile int64_t *page;
static volatile int over;

static uint64_t chance(void)
{
    static __thread uint64_t state;
    if (!state)
        state = (uint64_t)syscall(SYS_gettid) * 0x9e3779b97f4a7c15u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* An answer that is not waited for would be taken for the next one. */
static int reach(void)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 20};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends bytes, with a descriptor or somebody's credentials if they are given. */
static int send_with(int fd, const char *bytes, size_t length, int passed, int pid)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } control = {0};
    struct iovec part = {(void *)bytes, length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct ucred credentials = {.pid = pid, .uid = 0, .gid = 0};
    if (passed >= 0 || pid > 0) {
        size_t size = pid > 0 ? sizeof credentials : sizeof passed;
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(size);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = pid > 0 ? SCM_CREDENTIALS : SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(&control.header), pid > 0 ? (void *)&credentials : (void *)&passed, size);
    }
    return (int)sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* The answer, and the descriptor that came along. */
static int receive(int fd, char *answer, size_t size, int *passed)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {answer, size - 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    int length = (int)recvmsg(fd, &message, 0);
    answer[length < 0 ? 0 : length] = 0;
    if (passed)
        *passed = -1;
    if (passed && length > 0 && CMSG_FIRSTHDR(&message))
        memcpy(passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *passed);
    return length;
}

/* Whether a request was granted. */
static int granted(int fd, const char *request)
{
    char answer[8192];
    if (send_with(fd, request, strlen(request), -1, 0) < 0)
        return 0;
    return receive(fd, answer, sizeof answer, NULL) > 0 && !strcmp(answer, "\"done\"");
}

static void must_not(int got, const char *what)
{
    if (got)
        printf("BROKE IN: %s\n", what);
}

/* A page of one's own, and its descriptor. */
static int enter(int *memory)
{
    char answer[8192];
    int fd = reach();
    if (fd < 0)
        return -1;
    send_with(fd, HELLO, strlen(HELLO), -1, 0);
    receive(fd, answer, sizeof answer, memory);
    return fd;
}

/* Any number, anywhere in the page, at any time. */
static void *scribble(void *unused)
{
    while (!over) {
        for (int i = 0; i < 2000; i++)
            page[chance() % (PAGE_BYTES / 8)] = (int64_t)chance();
        usleep(500);
    }
    return unused;
}

/* The engine reads a thread's values when it wakes and when it stops. */
static void *wake_and_stop(void *unused)
{
    while (!over) {
        usleep(200);
        sched_yield();
    }
    return unused;
}

static void claim_what_is_not_mine(int fd)
{
    char request[256];
    int threads[] = {victim, 1, 2, 0, -1, INT32_MIN, INT32_MAX, getppid()};
    for (unsigned row = 0; row < 513; row += 37) {
        for (unsigned i = 0; i < sizeof threads / sizeof *threads; i++) {
            snprintf(request, sizeof request, "{\"bind\":{\"row\":%u,\"thread\":%d}}", row,
                     threads[i]);
            must_not(granted(fd, request), request);
        }
    }
    for (unsigned i = 0; i < sizeof threads / sizeof *threads; i++) {
        snprintf(request, sizeof request,
                 "{\"hint\":{\"process\":%d,\"thread\":null,\"values\":[[\"urgent\",666]]}}",
                 threads[i]);
        must_not(granted(fd, request), request);
        snprintf(request, sizeof request,
                 "{\"hint\":{\"process\":%d,\"thread\":%d,\"values\":[[\"urgent\",666]]}}",
                 getpid(), threads[i]);
        must_not(granted(fd, request), request);
    }
    must_not(granted(fd, "{\"declare\":{\"word\":0,\"name\":\"urgent\"}}"), "word 0");
    must_not(granted(fd, "{\"declare\":{\"word\":16,\"name\":\"urgent\"}}"), "word 16");
    must_not(granted(fd, "{\"declare\":{\"word\":1,\"name\":\"nothing\"}}"), "an unknown import");
    must_not(granted(fd, "{\"bind\":{\"row\":1,\"thread\":1,\"process\":1}}"),
             "a pid of its own choice");
    must_not(granted(fd, HELLO), "a second hello");
}

/* Rows and words, over and over: each is its own to waste. It waits for each answer, and its user
 * has a small part of the time of the thread that answers. */
static void waste_what_is_mine(int fd)
{
    char request[128];
    for (int i = 0; i < 120; i++) {
        snprintf(request, sizeof request, "{\"bind\":{\"row\":%d,\"thread\":%d}}", 1 + 37 * i % 511,
                 getpid());
        granted(fd, request);
        snprintf(request, sizeof request, "{\"declare\":{\"word\":%d,\"name\":\"%s\"}}", 1 + i % 15,
                 i % 2 ? "urgent" : "seen");
        granted(fd, request);
    }
}

static void talk_nonsense(void)
{
    static char noise[70000];
    const char *halves[] = {"{",    "{\"hello\":", "{\"bind\":{\"row\":1",           "\"done\"",
                            "null", "[[[[",        "{\"hello\":{\"version\":\"1\"}}"};
    int fd = reach(), other = open("/dev/null", O_RDWR), memory = memfd_create("mine", 0);
    for (int i = 0; i < 120; i++) {
        size_t length = 1 + chance() % (i % 10 ? 300 : sizeof noise);
        for (size_t at = 0; at < length; at++)
            noise[at] = (char)chance();
        send_with(fd, noise, length, -1, 0);
        const char *half = halves[i % 7];
        send_with(fd, half, strlen(half), i % 3 == 0 ? other : i % 3 == 1 ? memory : fd, 0);
        if (i % 5 == 0) {
            close(fd); /* in the middle of it */
            fd = reach();
        }
    }
    /* The kernel does not let it be somebody else. */
    must_not(send_with(fd, HELLO, strlen(HELLO), -1, victim) > 0, "credentials of another process");
    close(fd);
    close(other);
    close(memory);
}

/* Connections that say much and read nothing. */
static void flood(void)
{
    static int held[400];
    int count = 0;
    for (int i = 0; i < 400; i++) {
        int fd = reach();
        if (fd < 0)
            continue;
        held[count++] = fd;
        for (int said = 0; said < 50; said++)
            if (send(fd, HELLO, strlen(HELLO), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                break;
    }
    usleep(500000);
    while (count)
        close(held[--count]);
}

/* Children that share the connection and the page, greet for themselves, and die anywhere. */
static void fork_and_die(int fd)
{
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0) {
            char request[128];
            int memory = -1;
            snprintf(request, sizeof request, "{\"bind\":{\"row\":5,\"thread\":%d}}", getpid());
            if (i % 3 == 0)
                must_not(granted(fd, request), "a child's thread, on its parent's connection");
            else if (i % 3 == 1)
                enter(&memory);
            for (int word = 0; word < 100000; word++)
                page[chance() % (PAGE_BYTES / 8)] = (int64_t)chance();
            if (i % 2)
                raise(SIGKILL);
            fflush(stdout);
            _exit(0);
        }
        usleep(3000);
        if (i % 4 == 0)
            kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}

/* Whether a byte of the memory can be read. */
static int reads(int memory, off_t at)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        volatile char *byte = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memory, at);
        if (byte != MAP_FAILED)
            (void)*byte;
        _exit(byte == MAP_FAILED);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The engine keeps maps in the kernel, and the victim has a page: no way leads to them. */
static void reach_for_maps(int memory)
{
    union {
        struct {
            uint32_t id, next, flags;
        };
        struct {
            uint32_t fd, pad;
            uint64_t key, value, flags2;
        };
        char all[128];
    } order;
    uint32_t key = 0;
    int64_t row[16] = {0};
    for (uint32_t id = 1; id < 400; id++) {
        memset(&order, 0, sizeof order);
        order.id = id;
        must_not(syscall(SYS_bpf, 14 /* BPF_MAP_GET_FD_BY_ID */, &order, sizeof order) >= 0,
                 "a map by its number");
    }
    memset(&order, 0, sizeof order);
    order.fd = (uint32_t)memory;
    order.key = (uint64_t)&key;
    order.value = (uint64_t)row;
    syscall(SYS_bpf, 2 /* BPF_MAP_UPDATE_ELEM: its own row, at most */, &order, sizeof order);
    must_not(ftruncate(memory, 0) == 0, "its page made shorter");
    must_not(ftruncate(memory, 2 * PAGE_BYTES) == 0, "its page made longer");
    must_not(!reads(memory, 0), "nothing: it cannot even read its own");
    must_not(reads(memory, PAGE_BYTES), "what lies behind its page");
    /* The engine holds what it reads of the page, which is not in the file any more then. */
    fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE_BYTES);
    int process = (int)syscall(SYS_pidfd_open, victim, 0);
    for (int fd = 3; fd < 20; fd++)
        must_not(syscall(SYS_pidfd_getfd, process, fd, 0) >= 0, "a descriptor of the victim's");
    close(process);
}

int main(int count, char **words)
{
    pthread_t threads[3];
    int memory = -1, fd;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count != 3)
        return 2;
    path = words[1];
    victim = atoi(words[2]);
    alarm(300);
    fd = enter(&memory);
    page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (fd < 0 || page == MAP_FAILED) {
        perror("attacker: no page");
        return 1;
    }
    must_not(!granted(fd, "{\"declare\":{\"word\":1,\"name\":\"urgent\"}}"),
             "nothing: it cannot even supply its own");
    pthread_create(&threads[0], NULL, scribble, NULL);
    pthread_create(&threads[1], NULL, wake_and_stop, NULL);
    pthread_create(&threads[2], NULL, wake_and_stop, NULL);
    claim_what_is_not_mine(fd);
    waste_what_is_mine(fd);
    reach_for_maps(memory);
    talk_nonsense();
    fork_and_die(fd);
    flood();
    over = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("attacker: done\n");
    return 0;
}
