/* A device on its board's serial line. It makes threads one after the other, each of which the
 * policy counts. */
#include "attune.h"
#include "board.h"

static unsigned char link_stack[STACK] __attribute__((aligned(16)));
static unsigned char worker_stack[STACK] __attribute__((aligned(16)));
static struct attune_semaphore done;

static void work(void *nothing)
{
    (void)nothing;
    attune_give(&done);
}

static void talk(void *nothing)
{
    static uint8_t bytes[ATTUNE_NODE_ROOM];
    (void)nothing;
    for (int made = 0;; made++) {
        attune_node_hear(bytes, board_line_read(bytes, sizeof bytes));
        board_line_write(bytes, attune_node_say(bytes, sizeof bytes));
        if (made < 50) {
            attune_create(work, "worker", worker_stack, sizeof worker_stack, NULL);
            attune_take(&done, ATTUNE_FOREVER);
        }
        attune_sleep(1);
    }
}

int main(void)
{
    attune_init();
    board_start_ticks(25000);
    attune_semaphore_init(&done, 0);
    attune_create(talk, "link", link_stack, sizeof link_stack, NULL);
    attune_run();
    return 0;
}
