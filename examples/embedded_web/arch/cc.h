/* What lwIP asks of the compiler and the platform. */
#ifndef ARCH_CC_H
#define ARCH_CC_H

#include "board.h"

#define LWIP_NO_CTYPE_H 1

/* A failed assertion of lwIP's ends the firmware, which cannot go on. */
#define LWIP_PLATFORM_ASSERT(message) \
    do {                              \
        board_print(message);         \
        board_print("\n");            \
        board_exit(3);                \
    } while (0)
#define LWIP_PLATFORM_DIAG(message)

#endif
