/* What is the same on every board. */
#include "board.h"

__attribute__((weak)) void board_interrupt(void)
{
}

void board_print_number(const char *before, int64_t number, const char *after)
{
    char digits[21];
    uint32_t at = sizeof digits - 1;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    digits[at] = 0;
    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    board_print(before);
    if (number < 0)
        board_print("-");
    board_print(digits + at);
    board_print(after);
}
