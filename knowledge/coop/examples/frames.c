/* A program that cooperates: a frame every 40 ms, and work of descending importance between them.
 * Five frames, for the tests. */

#include <attune_coop.h>
#include <stdio.h>

static uint64_t next, shown, ahead;

static void show(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)data;
    printf("frame %d\n", (int)++shown);
    if (shown == 5)
        attune_coop_stop(loop);
    else
        attune_coop_submit_timer(loop, event, next += 40000000);
}

static void decode(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)data;
    for (volatile int work = 0; work < 100000; work++) /* half a millisecond, or less */
        ;
    attune_coop_submit_best_effort(loop, event, (int64_t)++ahead, ATTUNE_COOP_NEVER);
}

int main(void)
{
    attune_coop_loop *loop = attune_coop_new(NULL, 0);
    if (loop == NULL)
        return fprintf(stderr, "%s\n", attune_coop_error()), 1;
    attune_coop_submit_timer(loop, attune_coop_event_new(loop, "show", show, NULL),
                             next = attune_coop_now());
    attune_coop_submit_best_effort(loop, attune_coop_event_new(loop, "decode", decode, NULL), 0,
                                   ATTUNE_COOP_NEVER);
    int status = attune_coop_run(loop);
    attune_coop_free(loop);
    return status != 0;
}
