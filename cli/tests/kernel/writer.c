/* A program that supplies a table by process (values/src/table.rs), with nothing of Attune's in it.
 *
 *     writer [-v BYTES] COLUMN...      a column is an import's name, or - for a word of its own;
 *                                      0 bytes: hands over what is no table
 *
 * Prints the engine's reply. Each line of its input is a row: PROCESS START WORD...; it prints
 * `row` when that is in the table. At the input's end it waits to be killed.
 */
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define PID_BITS 22
#define WORDS    8

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int make_table(unsigned value_bytes)
{
    union bpf_attr attr = {0};
    int map;
    if (!value_bytes)
        return STDIN_FILENO;
    attr.map_type = BPF_MAP_TYPE_HASH;
    attr.key_size = 8;
    attr.value_size = value_bytes;
    attr.max_entries = 64;
    map = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
    if (map < 0)
        fail("the table");
    return map;
}

/* The engine's reply stands in `reply`. */
static int hand_over(int map, const char *columns, char *reply, size_t size)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX, .sun_path = "/run/attune/values"};
    char text[512], room[CMSG_SPACE(sizeof map)] = {0};
    struct iovec part = {.iov_base = text};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *along = CMSG_FIRSTHDR(&message);
    int engine = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ssize_t length;
    if (engine < 0 || connect(engine, (void *)&place, sizeof place))
        fail("the engine");
    part.iov_len = (size_t)snprintf(text, sizeof text,
                                    "{\"table\":{\"version\":2,\"columns\":[%s]}}", columns);
    along->cmsg_level = SOL_SOCKET;
    along->cmsg_type = SCM_RIGHTS;
    along->cmsg_len = CMSG_LEN(sizeof map);
    memcpy(CMSG_DATA(along), &map, sizeof map);
    if (sendmsg(engine, &message, 0) < 0)
        fail("sending");
    length = recv(engine, reply, size - 1, 0);
    if (length <= 0)
        fail("the reply");
    reply[length] = 0;
    return engine;
}

static void put_row(int map, char *line)
{
    unsigned long long process = strtoull(line, &line, 10), start = strtoull(line, &line, 10);
    unsigned long long key = start << PID_BITS | process;
    long long words[WORDS] = {0};
    union bpf_attr attr = {0};
    for (int word = 0; word < WORDS; word++)
        words[word] = strtoll(line, &line, 10);
    attr.map_fd = (unsigned)map;
    attr.key = (unsigned long)&key;
    attr.value = (unsigned long)words;
    if (syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof attr))
        fail("a row");
}

int main(int count, char **arguments)
{
    char columns[256] = "", reply[512], line[256];
    unsigned value_bytes = 8 * WORDS;
    int map, from = 1;
    if (count > 2 && !strcmp(arguments[1], "-v")) {
        value_bytes = (unsigned)atoi(arguments[2]);
        from = 3;
    }
    for (int i = from; i < count; i++) {
        size_t used = strlen(columns);
        const char *own = strcmp(arguments[i], "-") ? "\"" : "";
        snprintf(columns + used, sizeof columns - used, "%s%s%s%s", used ? "," : "", own,
                 *own ? arguments[i] : "null", own);
    }
    map = make_table(value_bytes);
    hand_over(map, columns, reply, sizeof reply);
    puts(reply);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        put_row(map, line);
        puts("row");
        fflush(stdout);
    }
    pause();
    return 0;
}
