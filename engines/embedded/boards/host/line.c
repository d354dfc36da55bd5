/* The line is standard input and output. Its end is the program's end. */
#include <poll.h>
#include <unistd.h>

#include "board.h"

size_t board_line_read(void *bytes, size_t room)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    /* The firmware's time passes while it waits for nothing: the line's time is the machine's. */
    if (poll(&input, 1, 1) <= 0)
        return 0;
    ssize_t count = read(STDIN_FILENO, bytes, room);
    if (count <= 0)
        board_exit(0);
    return (size_t)count;
}

void board_line_write(const void *bytes, size_t count)
{
    const char *from = bytes;
    while (count) {
        ssize_t written = write(STDOUT_FILENO, from, count);
        if (written < 0)
            board_exit(1);
        from += written;
        count -= (size_t)written;
    }
}
