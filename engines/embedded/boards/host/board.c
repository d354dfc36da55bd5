/* A program on this machine. Time passes only while nothing runs: each wait is one tick, so runs
 * repeat. */
#include <string.h>
#include <unistd.h>

#include "attune.h"
#include "board.h"

static uint32_t board_tick_counts, board_count;

void board_start_ticks(uint32_t counts)
{
    board_tick_counts = counts;
}

uint32_t board_counter(void)
{
    return board_count;
}

void attune_idle(void)
{
    board_count += board_tick_counts;
    attune_tick();
    board_interrupt();
}

void board_pause(void)
{
    attune_sleep(1);
}

void board_print(const char *text)
{
    /* Not stdio, whose functions need more stack than a thread of firmware has. */
    size_t length = strlen(text);
    while (length) {
        ssize_t written = write(STDOUT_FILENO, text, length);
        if (written < 0)
            _exit(98);
        text += written;
        length -= (size_t)written;
    }
}

_Noreturn void board_exit(int status)
{
    _exit(status);
}
