/* Threads that wait in one way only, so that a test knows what the kernel knows of them.
 *
 *     knows reads FILE    waits for the file's pages, again and again
 *     knows sleeps        wakes from a timer
 *     knows answers       wakes when the parent, a thread that it prints, writes a byte
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    char byte;
    int ends[2];
    if (!strcmp(how, "reads") && count > 2) {
        int file = open(arguments[2], O_RDONLY);
        for (off_t at = 0; file >= 0; at += 4096) {
            posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
            posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
            if (pread(file, &byte, 1, at) != 1)
                at = -4096;
        }
    }
    while (!strcmp(how, "sleeps"))
        usleep(20000);
    if (strcmp(how, "answers") || pipe(ends))
        return 1;
    if (fork()) {
        for (;;) {
            usleep(20000);
            if (write(ends[1], "", 1) != 1)
                return 1;
        }
    }
    printf("answers %d\nwaker %d\n", getpid(), getppid());
    fflush(stdout);
    while (read(ends[0], &byte, 1) == 1)
        ;
    return 0;
}
