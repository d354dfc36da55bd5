/* The line is the first CMSDK UART, at 115200 baud. Its interrupt handler keeps what comes until a
 * thread reads it; what finds no room is lost, as on any serial line. */
#include "board.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define UART_DATA         REGISTER(0x40004000u)
#define UART_STATE        REGISTER(0x40004004u)
#define UART_CTRL         REGISTER(0x40004008u)
#define UART_CLEAR        REGISTER(0x4000400cu)
#define UART_DIVIDER      REGISTER(0x40004010u)
#define NVIC_ENABLE       REGISTER(0xe000e100u)

#define STATE_SENDS    1u /* the byte before has not gone */
#define STATE_HAS_COME 2u
#define CTRL_ON        0xbu /* sends, receives, interrupts for what comes */
#define CLEAR_HAS_COME 2u
#define CLOCK_HZ       25000000u

/* A power of two. */
#define LINE_ROOM 1024u

/* Counts of bytes that have come and that were read. The handler writes the one, a thread the
 * other. */
static volatile uint32_t line_came, line_read;
static volatile uint8_t line_bytes[LINE_ROOM];

void board_line_interrupt(void);
void board_line_interrupt(void)
{
    UART_CLEAR = CLEAR_HAS_COME;
    while (UART_STATE & STATE_HAS_COME) {
        uint8_t byte = (uint8_t)UART_DATA;
        if (line_came - line_read == LINE_ROOM)
            continue;
        line_bytes[line_came % LINE_ROOM] = byte;
        line_came++;
    }
}

static void line_start(void)
{
    if (UART_CTRL)
        return;
    UART_DIVIDER = CLOCK_HZ / 115200;
    UART_CTRL = CTRL_ON;
    NVIC_ENABLE = 1u;
}

size_t board_line_read(void *bytes, size_t room)
{
    size_t count = 0;
    line_start();
    while (count < room && line_read != line_came) {
        ((uint8_t *)bytes)[count++] = line_bytes[line_read % LINE_ROOM];
        line_read++;
    }
    return count;
}

void board_line_write(const void *bytes, size_t count)
{
    const uint8_t *from = bytes;
    line_start();
    while (count--) {
        while (UART_STATE & STATE_SENDS)
            board_pause();
        UART_DATA = *from++;
    }
}
