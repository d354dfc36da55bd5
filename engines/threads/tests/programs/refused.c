/* A program under a filter of system calls. Prints what polls, and why it is not io_uring; then
 * that waiting, files and calls that block work.
 *
 *     refused nothing | setup ERRNO | enter ERRNO | late ERRNO
 *
 * `late` installs the filter only after the library has started.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "attune.h"
#include "check.h"

static void refuse(uint32_t call, int error)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

static int pipes[2];

static void *writes(void *none)
{
    CHECK(attune_write(pipes[1], "p", 1) == 1);
    return none;
}

static void *sleeps(void *none)
{
    usleep(1000);
    return none;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "nothing", *why;
    int error = count > 2 ? atoi(arguments[2]) : 0;
    if (!strcmp(what, "setup"))
        refuse(SYS_io_uring_setup, error);
    else if (!strcmp(what, "enter"))
        refuse(SYS_io_uring_enter, error);
    const char *name = attune_io(&why);
    CHECK(name != NULL && attune_io(NULL) == name);
    printf("%s: %s\n", name, why ? why : "as it should be");
    fflush(stdout);
    if (!strcmp(what, "late"))
        refuse(SYS_io_uring_enter, error);
    char text[4];
    attune_t thread;
    CHECK(pipe(pipes) == 0 && attune_create(&thread, NULL, writes, NULL) == 0);
    CHECK(attune_read(pipes[0], text, 1) == 1 && attune_join(thread, NULL) == 0);
    CHECK(attune_read_timed(pipes[0], text, 1, MS) == -1 && errno == ETIMEDOUT);
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    CHECK(attune_pread(fd, text, 4, 0) == 4 && !memcmp(text, "\177ELF", 4));
    CHECK(attune_blocking(sleeps, NULL, NULL) == 0);
    puts("ok");
    return 0;
}
