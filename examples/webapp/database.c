/* The database: a thread for each connection. A query computes a little, waits for the disk, and
 * computes again.
 *
 *      thread import "disk"    1 while the thread is about to wait for the disk
 *
 * The disk is a pause, exponentially distributed: what matters to the policy is that a thread waits
 * and needs no CPU.
 */
#include "webapp.h"
#include "attune.h"

#include <math.h>

enum { QUERY_BYTES = 2000 }; /* as much computing as for so many bytes of a page */

static void *queries(void *argument)
{
    struct connection *self = argument;
    uint64_t random = options.seed ^ (uint64_t)self->fd << 32;
    char query;
    while (attune_read(self->fd, &query, 1) == 1) {
        compute((uint64_t)options.work * QUERY_BYTES);
        self->disk = 1;
        attune_sleep_for((int64_t)(-log(1 - chance(&random)) * options.disk * 1e9) + 1);
        self->disk = 0;
        char answer = (char)compute((uint64_t)options.work * QUERY_BYTES);
        if (attune_write(self->fd, &answer, 1) != 1)
            break;
    }
    attune_close(self->fd);
    return NULL;
}

_Noreturn void database(int listening)
{
    attune_register_thread_field("disk", struct connection, disk);
    serve(listening, "query", queries);
}
