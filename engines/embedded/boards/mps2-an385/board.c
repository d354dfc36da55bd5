/* QEMU's mps2-an385: start-up, output and exit by semihosting, ticks by a CMSDK timer.
 *
 * The timer is armed anew in its handler (RELOAD 0): QEMU 7.2 sleeps twice as long on a timer that
 * re-arms itself (-icount with sleep=off). The next tick is reckoned from the counter, so that
 * ticks do not drift.
 */
#include <stddef.h>

#include "attune.h"
#include "board.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define TIMER_CTRL        REGISTER(0x40000000u)
#define TIMER_VALUE       REGISTER(0x40000004u)
#define TIMER_RELOAD      REGISTER(0x40000008u)
#define TIMER_CLEAR       REGISTER(0x4000000cu)
#define COUNTER           REGISTER(0x40028018u)
#define NVIC_ENABLE       REGISTER(0xe000e100u)
#define TIMER_INTERRUPT   8
#define LINE_INTERRUPT    0

extern uint32_t board_data_image[], board_data[], board_data_end[], board_bss[], board_bss_end[];
extern uint32_t board_stack[];

static uint32_t board_tick_counts, board_next_tick;

static int board_semihost(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_pause(void)
{
    attune_yield();
}

void board_print(const char *text)
{
    board_semihost(0x04, text); /* SYS_WRITE0 */
}

_Noreturn void board_exit(int status)
{
    uint32_t block[2] = {0x20026, (uint32_t)status}; /* ADP_Stopped_ApplicationExit */
    board_semihost(0x20, block);                     /* SYS_EXIT_EXTENDED */
    for (;;) {
    }
}

uint32_t board_counter(void)
{
    return COUNTER;
}

static void board_arm(void)
{
    int32_t left = (int32_t)(board_next_tick - COUNTER);
    TIMER_VALUE = left > 1 ? (uint32_t)left : 1;
}

void board_start_ticks(uint32_t counts)
{
    board_tick_counts = counts;
    board_next_tick = COUNTER + counts;
    TIMER_RELOAD = 0;
    board_arm();
    NVIC_ENABLE = 1u << TIMER_INTERRUPT;
    TIMER_CTRL = 9; /* enabled, with its interrupt */
}

static void board_timer(void)
{
    TIMER_CLEAR = 1;
    attune_tick();
    board_interrupt();
    board_next_tick += board_tick_counts;
    board_arm();
}

static void board_fault(void)
{
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    board_print_number("fault ", number, "\n");
    board_exit(99);
}

/* Attune needs none of them; line.c, or another kernel on this board, may define them. */
__attribute__((weak, alias("board_fault"))) void board_line_interrupt(void);
__attribute__((weak, alias("board_fault"))) void board_service(void);
__attribute__((weak, alias("board_fault"))) void board_pending(void);
__attribute__((weak, alias("board_fault"))) void board_system_tick(void);

void *memcpy(void *to, const void *from, size_t size)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    while (size--)
        *t++ = *f++;
    return to;
}

void *memset(void *at, int value, size_t size)
{
    unsigned char *t = at;
    while (size--)
        *t++ = (unsigned char)value;
    return at;
}

void board_reset(void);
void board_reset(void)
{
    uint32_t *from = board_data_image;
    for (uint32_t *to = board_data; to < board_data_end;)
        *to++ = *from++;
    for (uint32_t *to = board_bss; to < board_bss_end;)
        *to++ = 0;
    board_exit(main());
}

__attribute__((section(".vectors"), used)) static void *const board_vectors[16 + 9] = {
    [0] = board_stack,
    [1] = board_reset,
    [2] = board_fault,
    [3] = board_fault,
    [4] = board_fault,
    [5] = board_fault,
    [6] = board_fault,
    [11] = board_service,
    [14] = board_pending,
    [15] = board_system_tick,
    [16 + LINE_INTERRUPT] = board_line_interrupt,
    [16 + TIMER_INTERRUPT] = board_timer,
};
