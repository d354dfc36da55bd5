/* What FreeRTOS calls of it; the board defines both. */
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *at, int value, size_t size);
