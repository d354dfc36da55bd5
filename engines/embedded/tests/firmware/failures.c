/* Firmware that goes wrong in the way that CASE says, and tells what it is told. */
#include "attune.h"
#include "board.h"

/* The first is room for what overruns the second. */
static unsigned char stacks[3][1024] __attribute__((aligned(8)));

void attune_failed(const struct attune_failure *failure)
{
    board_print(failure->file);
    board_print_number(":", failure->line, "");
    board_print_number(":", failure->column, ": ");
    board_print(failure->what);
    board_print_number(" (thread ", failure->thread, ")\n");
    board_exit(3);
}

/* A frame of 64 bytes a call. */
static int deep(volatile int levels)
{
    volatile unsigned char frame[64];
    for (unsigned i = 0; i < sizeof frame; i++)
        frame[i] = (unsigned char)levels;
    return levels ? deep(levels - 1) + frame[0] : 0;
}

static void thread(void *levels)
{
    board_print_number("", deep(*(int *)levels) > 0, "\n");
    attune_yield();
    attune_sleep(2);
    board_print("nothing is wrong\n");
}

int main(void)
{
    static int little = 2, much = 13;
    attune_init();
    board_start_ticks(25000);
    attune_create(thread, &little, stacks[2], sizeof stacks[2], NULL);
    attune_create(thread, CASE == 1 ? &much : &little, stacks[1], sizeof stacks[1], NULL);
    attune_run();
    return 0;
}
