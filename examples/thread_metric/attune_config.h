/* As many threads as the cooperative test has. */
#define ATTUNE_THREADS 5
#define ATTUNE_TICK_NS 10000000
/* FreeRTOSConfig.h leaves the like out, too. */
#ifndef ATTUNE_CHECK_STACKS
#define ATTUNE_CHECK_STACKS 0
#endif
