/* A file whose reads and writes block, and questions about it, until the program lets them end: a
 * file system of one file, served on /dev/fuse by a child of the program's. (A process that serves
 * itself cannot end: the kernel asks it about the files that it closes.)
 */
#ifndef FUSE_H
#define FUSE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOW_TEXT     "what was waited for"
/* how long the server waits until it believes that the program has stopped, in milliseconds */
#define SLOW_PATIENCE 10000

static int slow_device, slow_gate[2];

/* What the server tells the program. */
static struct slow {
    /* requests that are being held, and whether the server has lost patience */
    atomic_int held, gave_up;
    char written[64];
} *slow_state;

static void slow_answer(const struct fuse_in_header *request, int error, const void *body,
                        size_t size)
{
    char answer[4096];
    struct fuse_out_header head = {
        .len = (uint32_t)(sizeof head + size), .error = -error, .unique = request->unique};
    memcpy(answer, &head, sizeof head);
    if (size)
        memcpy(answer + sizeof head, body, size);
    /* a request that was given up meanwhile has nobody who wants the answer */
    (void)!write(slow_device, answer, head.len);
}

static struct fuse_attr slow_attributes(uint64_t node)
{
    struct fuse_attr attributes = {.ino = node, .nlink = 1, .size = sizeof SLOW_TEXT};
    attributes.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0666;
    return attributes;
}

/* Holds a request until slow_release(). */
static void slow_hold(void)
{
    char c;
    struct pollfd gate = {slow_gate[0], POLLIN, 0};
    slow_state->held++;
    if (poll(&gate, 1, SLOW_PATIENCE) == 1)
        (void)!read(slow_gate[0], &c, 1);
    else
        slow_state->gave_up = 1;
    slow_state->held--;
}

static inline void slow_release(void)
{
    (void)!write(slow_gate[1], "", 1);
}

static void slow_serve_one(const struct fuse_in_header *request)
{
    const char *body = (const char *)(request + 1);
    switch (request->opcode) {
    case FUSE_INIT: {
        struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
        slow_answer(request, 0, &init, sizeof init);
        break;
    }
    case FUSE_LOOKUP: {
        struct fuse_entry_out entry = {.nodeid = 2, .attr = slow_attributes(2)};
        slow_answer(request, strcmp(body, "file") ? ENOENT : 0, &entry, sizeof entry);
        break;
    }
    case FUSE_GETATTR: {
        struct fuse_attr_out out = {.attr = slow_attributes(request->nodeid)};
        if (request->nodeid != FUSE_ROOT_ID)
            slow_hold();
        slow_answer(request, 0, &out, sizeof out);
        break;
    }
    case FUSE_OPEN: {
        struct fuse_open_out open = {.fh = 1, .open_flags = FOPEN_DIRECT_IO};
        slow_answer(request, 0, &open, sizeof open);
        break;
    }
    case FUSE_READ: {
        struct fuse_read_in in;
        memcpy(&in, body, sizeof in);
        size_t left = in.offset < sizeof SLOW_TEXT ? sizeof SLOW_TEXT - in.offset : 0;
        slow_hold();
        slow_answer(request, 0, SLOW_TEXT + (sizeof SLOW_TEXT - left),
                    in.size < left ? in.size : left);
        break;
    }
    case FUSE_WRITE: {
        struct fuse_write_in in;
        memcpy(&in, body, sizeof in);
        struct fuse_write_out out = {.size = in.size};
        slow_hold();
        size_t room = sizeof slow_state->written;
        memcpy(slow_state->written, body + sizeof in, in.size < room ? in.size : room);
        slow_answer(request, 0, &out, sizeof out);
        break;
    }
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
        slow_answer(request, 0, NULL, 0);
        break;
    default:
        slow_answer(request, ENOSYS, NULL, 0);
    }
}

static void slow_serve(void)
{
    static _Alignas(8) char request[FUSE_MIN_READ_BUFFER + 4096];
    for (;;) {
        ssize_t size = read(slow_device, request, sizeof request);
        if (size >= (ssize_t)sizeof(struct fuse_in_header))
            slow_serve_one((struct fuse_in_header *)request);
        else if (size >= 0 || (errno != EINTR && errno != ENOENT))
            return;
    }
}

/* Makes the file and writes its path, in a mount namespace of the program's own. Returns what this
 * machine lacks, or NULL. To be called before the library's first call. */
static const char *slow_make(char *path, size_t room)
{
    char options[100], directory[] = "/tmp/attune-slow-XXXXXX";
    slow_device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (slow_device < 0)
        return "/dev/fuse";
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return "the right to mount";
    if (pipe(slow_gate) || !mkdtemp(directory))
        return "a pipe or a directory";
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u", slow_device,
             getuid(), getgid());
    if (mount("attune-slow", directory, "fuse", MS_NOSUID | MS_NODEV, options)) {
        rmdir(directory);
        return "the right to mount a FUSE file system";
    }
    slow_state =
        mmap(NULL, sizeof *slow_state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t server = slow_state == MAP_FAILED ? -1 : fork();
    if (server < 0)
        return "another process";
    if (server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        slow_serve();
        _exit(0);
    }
    close(slow_device);
    snprintf(path, room, "%s/file", directory);
    return NULL;
}

/* Takes the file system away again. */
static void slow_remove(char *path)
{
    *strrchr(path, '/') = 0;
    umount2(path, MNT_DETACH);
    rmdir(path);
}

#endif
