/* The configuration of the web server. */
#include "settings.h"

/* The driver and the handlers. */
#define ATTUNE_THREADS (HANDLERS + 1)
