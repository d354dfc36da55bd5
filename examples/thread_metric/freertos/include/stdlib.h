/* FreeRTOS includes it; its static objects need nothing of it. */
#include <stddef.h>
