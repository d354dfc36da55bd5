/* The first program of the virtual machine: prepares it, runs one command, passes its output and
 * exit status to the host.
 *
 * It takes its orders from /command in the initramfs, records that each end with a NUL; the first
 * byte says what one is:
 *     c PATH      the channel to the host: "port" (a virtio port, both ways) or a serial line such
 * as /dev/ttyS1 (to the host only) v TAG       the root is the host's, over virtiofs; without it
 * the initramfs is the root m PATH      the kernel's overlay module: with it what is written
 * anywhere stays in memory, without it only /tmp and /var/tmp can be written, and begin empty w
 * NANOS     wait this long first, so that the kernel's own work after booting is over t let the
 * clock chip tick: an emulator that runs one processor after the other then changes from one to the
 * next as often o           standard output and standard error are one stream d PATH      working
 * directory e NAME=VAL  environment, may be repeated a WORD      the command, word by word
 *
 * On the channel each message is a frame: a byte that says what it is, the length as 4 bytes
 * (little endian), the payload.
 *     to the host:    O output   E error output   W room for standard input   X exit status (wait's
 * status, 4 bytes) F it could not be run: errno (4 bytes) and what was being done from the host:  I
 * standard input, only after a W; empty: its end        K a signal (1 byte) for the command's
 * process group
 *
 * Invariant: whatever happens, the host gets an X or an F, or sees the machine end. This program
 * runs at real-time priority, so that a scheduler under test, which has the others, cannot keep the
 * output back.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 5, CHUNK = 1 << 16, MOST_WORDS = 4096 };

static int channel = -1, two_way;
static char *words[MOST_WORDS + 1], *environment[MOST_WORDS + 1];
static int word_count, environment_count, one_stream, ticking;
static const char *channel_name, *root_tag, *overlay_module, *folder = "/";
static long long settle;

static void end(void)
{
    if (channel >= 0 && !two_way)
        tcdrain(channel);
    /* The machine was told to end instead of starting again. */
    reboot(RB_AUTOBOOT);
    for (;;)
        pause();
}

static void write_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t n = write(fd, bytes, length);
        if (n > 0)
            bytes += n, length -= n;
        else if (n < 0 && errno == EAGAIN)
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (n == 0 || errno != EINTR)
            end(); /* The host is gone. */
    }
}

static void send_frame(char kind, const void *payload, uint32_t length)
{
    static char frame[HEADER + CHUNK];
    frame[0] = kind;
    memcpy(frame + 1, &length, 4);
    memcpy(frame + HEADER, payload, length);
    write_all(channel, frame, HEADER + length);
}

/* Tells the host why the command is not run, and ends. */
static void fail(int error, const char *doing, const char *what)
{
    char text[4 + 1024];
    int32_t number = error;
    memcpy(text, &number, 4);
    int n = snprintf(text + 4, sizeof text - 4, "%s%s%s", doing, *what ? " " : "", what);
    if (channel < 0)
        dprintf(2, "attune: %s: %s\n", text + 4, strerror(error));
    else
        send_frame('F', text, 4 + (n < (int)sizeof text - 4 ? n : (int)sizeof text - 5));
    end();
}

static void read_orders(void)
{
    int fd = open("/command", O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status))
        fail(errno, "open", "/command");
    char *text = calloc(1, status.st_size + 1), *stop = text + status.st_size;
    for (ssize_t got = 0, n; got < status.st_size; got += n)
        if ((n = read(fd, text + got, status.st_size - got)) <= 0)
            fail(errno, "read", "/command");
    close(fd);
    for (char *next; text < stop; text = next) {
        char *value = text + 1;
        next = text + strlen(text) + 1;
        switch (*text) {
        case 'c':
            channel_name = value;
            break;
        case 'v':
            root_tag = value;
            break;
        case 'm':
            overlay_module = value;
            break;
        case 'w':
            settle = atoll(value);
            break;
        case 't':
            ticking = 1;
            break;
        case 'o':
            one_stream = 1;
            break;
        case 'd':
            folder = value;
            break;
        case 'e':
            if (environment_count < MOST_WORDS)
                environment[environment_count++] = value;
            break;
        case 'a':
            if (word_count < MOST_WORDS)
                words[word_count++] = value;
            break;
        }
    }
}

/* A kernel without one of these still serves most commands: no failure here. */
static void mount_kernel_views(void)
{
    static const struct {
        const char *type, *at;
    } views[] = {
        {"proc", "/proc"},
        {"sysfs", "/sys"},
        {"devtmpfs", "/dev"},
        {"bpf", "/sys/fs/bpf"},
        {"cgroup2", "/sys/fs/cgroup"},
        {"debugfs", "/sys/kernel/debug"},
        {"tracefs", "/sys/kernel/tracing"},
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        mkdir(views[i].at, 0755);
        mount(views[i].type, views[i].at, views[i].type, 0, NULL);
    }
    mkdir("/dev/pts", 0755);
    mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666");
    mkdir("/dev/shm", 01777);
    mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
    symlink("/proc/self/fd", "/dev/fd");
    symlink("fd/0", "/dev/stdin");
    symlink("fd/1", "/dev/stdout");
    symlink("fd/2", "/dev/stderr");
}

static void loopback_up(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        ioctl(fd, SIOCSIFFLAGS, &request);
        close(fd);
    }
}

static void open_port(void)
{
    char path[300], name[32];
    /* The port's name reaches the guest a moment after the port. */
    for (int tries = 0; tries < 500; tries++, usleep(2000)) {
        DIR *ports = opendir("/sys/class/virtio-ports");
        for (struct dirent *entry; ports && (entry = readdir(ports));) {
            snprintf(path, sizeof path, "/sys/class/virtio-ports/%s/name", entry->d_name);
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
            close(fd);
            if (n < 6 || memcmp(name, "attune", 6))
                continue;
            snprintf(path, sizeof path, "/dev/%s", entry->d_name);
            channel = open(path, O_RDWR | O_CLOEXEC);
        }
        if (ports)
            closedir(ports);
        if (channel >= 0)
            return;
    }
    fail(ENODEV, "find the port to the host", "");
}

static void open_channel(void)
{
    two_way = channel_name && !strcmp(channel_name, "port");
    if (two_way) {
        open_port();
        return;
    }
    channel = open(channel_name ? channel_name : "/dev/ttyS1", O_WRONLY | O_NOCTTY | O_CLOEXEC);
    struct termios line;
    if (channel < 0 || tcgetattr(channel, &line))
        fail(errno, "open", channel_name ? channel_name : "/dev/ttyS1");
    cfmakeraw(&line);
    cfsetspeed(&line, B115200);
    tcsetattr(channel, TCSANOW, &line);
}

/* The host's files at /new, and a layer in memory over them that takes what is written. Returns
 * whether there is one. */
static int overlay(void)
{
    enum { COMPRESSED = 4 }; /* MODULE_INIT_COMPRESSED_FILE: the kernel unpacks it. */
    int fd = overlay_module ? open(overlay_module, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    int failed = syscall(SYS_finit_module, fd, "", COMPRESSED);
    close(fd);
    if (failed)
        fail(errno, "load", overlay_module);
    mkdir("/layer", 0755);
    mount("tmpfs", "/layer", "tmpfs", 0, "mode=0755,size=75%");
    mkdir("/layer/upper", 0755);
    mkdir("/layer/work", 0755);
    if (mount("overlay", "/new", "overlay", 0,
              "lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work"))
        fail(errno, "mount", "a layer over the host's files");
    return 1;
}

static void enter_host_root(void)
{
    mkdir("/host", 0755);
    mkdir("/new", 0755);
    if (mount(root_tag, "/host", "virtiofs", MS_RDONLY, NULL))
        fail(errno, "mount the host's files", root_tag);
    if (!overlay()) {
        if (mount("/host", "/new", NULL, MS_BIND, NULL))
            fail(errno, "bind", "/host");
        mount("tmpfs", "/new/tmp", "tmpfs", 0, "mode=1777");
        mount("tmpfs", "/new/var/tmp", "tmpfs", 0, "mode=1777");
    }
    mount("tmpfs", "/new/run", "tmpfs", 0, "mode=0755");
    /* The kernel's settings, which loaders of BPF programs look for there. */
    mount("/boot", "/new/boot", NULL, MS_BIND, NULL);
    static const char *const views[][2] = {
        {"/proc", "/new/proc"}, {"/sys", "/new/sys"}, {"/dev", "/new/dev"}};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (mount(views[i][0], views[i][1], NULL, MS_BIND | MS_REC, NULL))
            fail(errno, "bind", views[i][0]);
    if (chroot("/new") || chdir("/"))
        fail(errno, "enter", "the host's files");
}

/* The command runs with ordinary priority, no blocked signal and the host's idea of folder and
 * environment. */
static void become_command(int in, int out, int err, int report)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
    setsid();
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    environ = environment;
    int32_t failed[2] = {0, 0};
    if (chdir(folder))
        failed[0] = errno, failed[1] = 'd';
    else
        execvp(words[0], words), failed[0] = errno, failed[1] = 'a';
    write(report, failed, sizeof failed);
    _exit(127);
}

static pid_t start_command(int *in, int *out, int *err)
{
    int inputs[2], outputs[2], errors[2], report[2];
    if (pipe2(inputs, O_CLOEXEC) || pipe2(outputs, O_CLOEXEC) || pipe2(errors, O_CLOEXEC) ||
        pipe2(report, O_CLOEXEC))
        fail(errno, "make pipes", "");
    pid_t child = fork();
    if (child < 0)
        fail(errno, "fork", "");
    if (child == 0) {
        int nothing = two_way ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
        become_command(two_way ? inputs[0] : nothing, outputs[1],
                       one_stream ? outputs[1] : errors[1], report[1]);
    }
    close(inputs[0]), close(outputs[1]), close(errors[1]), close(report[1]);
    int32_t failed[2];
    if (read(report[0], failed, sizeof failed) == sizeof failed)
        fail(failed[0], failed[1] == 'd' ? "enter" : "run", failed[1] == 'd' ? folder : words[0]);
    close(report[0]);
    *in = inputs[1], *out = outputs[0], *err = errors[0];
    fcntl(*in, F_SETFL, O_NONBLOCK);
    fcntl(*out, F_SETFL, O_NONBLOCK);
    fcntl(*err, F_SETFL, O_NONBLOCK);
    return child;
}

/* Passes on what is there. Returns whether there may be more, now or later. */
static int pass_output(int fd, char kind)
{
    static char bytes[CHUNK];
    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n > 0)
        send_frame(kind, bytes, n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Standard input on its way to the command. The host sends a part only when it was told that there
 * is room, so one is enough. */
static struct {
    char bytes[CHUNK];
    uint32_t length, done;
    int fd;
} input;

static void ask_for_input(void)
{
    input.length = input.done = 0;
    send_frame('W', "", 0);
}

static void close_input(void)
{
    close(input.fd);
    input.fd = -1;
}

static void pass_input(void)
{
    ssize_t n = write(input.fd, input.bytes + input.done, input.length - input.done);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        close_input(); /* The command reads no more. */
    else if (n > 0 && (input.done += n) == input.length)
        ask_for_input();
}

static void read_exactly(char *bytes, uint32_t length)
{
    for (ssize_t n; length; bytes += n, length -= n)
        if ((n = read(channel, bytes, length)) <= 0) {
            if (n == 0 || errno != EINTR)
                end(); /* The host is gone. */
            n = 0;
        }
}

static void take_from_host(pid_t command)
{
    char header[HEADER], payload[CHUNK];
    uint32_t length;
    read_exactly(header, HEADER);
    memcpy(&length, header + 1, 4);
    if (length > sizeof payload)
        end();
    read_exactly(payload, length);
    if (header[0] == 'K' && length == 1)
        kill(-command, payload[0]);
    if (header[0] != 'I' || input.fd < 0)
        return;
    if (length == 0)
        close_input();
    else
        memcpy(input.bytes, payload, length), input.length = length;
}

/* Reaps whatever ended; says whether the command was among it. */
static int reap(pid_t command, int *status)
{
    int its, found = 0;
    for (pid_t pid; (pid = waitpid(-1, &its, WNOHANG)) > 0;)
        if (pid == command)
            *status = its, found = 1;
    return found;
}

static int relay(pid_t command, int out, int err, int children)
{
    enum { OUT, ERR, CHILDREN, HOST, INPUT, FDS };
    int status = 0, done = 0;
    if (two_way)
        ask_for_input();
    while (!done) {
        struct pollfd fds[FDS] = {
            [OUT] = {out, POLLIN, 0},
            [ERR] = {err, POLLIN, 0},
            [CHILDREN] = {children, POLLIN, 0},
            [HOST] = {two_way ? channel : -1, POLLIN, 0},
            [INPUT] = {input.length ? input.fd : -1, POLLOUT, 0},
        };
        if (poll(fds, FDS, -1) < 0)
            continue;
        if (fds[OUT].revents && !pass_output(out, 'O'))
            close(out), out = -1;
        if (fds[ERR].revents && !pass_output(err, 'E'))
            close(err), err = -1;
        if (fds[HOST].revents)
            take_from_host(command);
        if (fds[INPUT].revents)
            pass_input();
        if (fds[CHILDREN].revents) {
            struct signalfd_siginfo which;
            read(children, &which, sizeof which);
            done = reap(command, &status);
        }
    }
    /* What the command wrote is in the pipes; what its children may write later is not waited for.
     */
    static char bytes[CHUNK];
    for (ssize_t n; out >= 0 && (n = read(out, bytes, sizeof bytes)) > 0;)
        send_frame('O', bytes, n);
    for (ssize_t n; err >= 0 && (n = read(err, bytes, sizeof bytes)) > 0;)
        send_frame('E', bytes, n);
    return status;
}

/* 8192 times a second, the most that the chip (MC146818) knows. It asks for an interrupt once;
 * nobody answers, so it never asks again, and the guest spends nothing on it. */
static void tick(void)
{
    enum {
        ADDRESS = 0x70,
        VALUE = 0x71,
        RATE = 0x8a,
        ENABLED = 0x8b,
        FASTEST = 3,
        RATES = 15,
        PERIODIC = 0x40
    };
    if (ioperm(ADDRESS, 2, 1))
        fail(errno, "reach the clock chip", "");
    outb(RATE, ADDRESS);
    int rate = inb(VALUE);
    outb(RATE, ADDRESS);
    outb((rate & ~RATES) | FASTEST, VALUE);
    outb(ENABLED, ADDRESS);
    int enabled = inb(VALUE);
    outb(ENABLED, ADDRESS);
    outb(enabled | PERIODIC, VALUE);
    ioperm(ADDRESS, 2, 0);
}

int main(void)
{
    if (getpid() != 1)
        return 1;
    umask(022);
    signal(SIGPIPE, SIG_IGN);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    mount_kernel_views();
    read_orders();
    open_channel();
    /* The archive ends with it: the kernel unpacks what there is room for, and goes on. */
    if (access("/complete", F_OK))
        fail(ENOSPC, "unpack all files; more --memory may be enough", "");
    loopback_up();
    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    if (root_tag)
        enter_host_root();
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 90});
    if (ticking)
        tick();
    if (settle > 0)
        nanosleep(&(struct timespec){settle / 1000000000, settle % 1000000000}, NULL);

    int out, err, status, children = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    pid_t command = start_command(&input.fd, &out, &err);
    status = relay(command, out, err, children);
    send_frame('X', &status, sizeof status);
    end();
}
