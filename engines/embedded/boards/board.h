/* What a firmware asks of its board. Implemented for QEMU's mps2-an385 and for a program on this
 * machine.
 *
 * Units: the counter counts 40 ns of virtual time on the mps2-an385, where the emulator spends 2^n
 * ns an instruction (-icount shift=n); in a program, ticks only.
 */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/* Calls attune_tick every so many counts, from an interrupt handler or from attune_idle. */
void board_start_ticks(uint32_t counts);

/* Called from the same place behind attune_tick. Weak: does nothing. */
void board_interrupt(void);

/* An up-counter that wraps around. */
uint32_t board_counter(void);

/* Between two looks of a thread at a device that had nothing: lets the others run. In a program a
 * tick passes meanwhile, as time stands still there while a thread is ready. */
void board_pause(void);

void board_print(const char *text);
void board_print_number(const char *before, int64_t number, const char *after);

/* The board's serial line; line.c has it. What has come, `room` bytes at most, and how much. */
size_t board_line_read(void *bytes, size_t room);

/* Returns when all is on its way; other threads run meanwhile. */
void board_line_write(const void *bytes, size_t count);

/* Ends the program. */
_Noreturn void board_exit(int status);

int main(void);

#endif
