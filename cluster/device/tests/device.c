/* A device: its link is standard input and output. It makes threads one after the other, each of
 * which the policy counts. */
#include <fcntl.h>
#include <unistd.h>

#include "attune.h"
#include "board.h"

static unsigned char link_stack[65536] __attribute__((aligned(16)));
static unsigned char worker_stack[65536] __attribute__((aligned(16)));
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
        ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
        if (count == 0)
            board_exit(0);
        if (count > 0)
            attune_node_hear(bytes, (size_t)count);
        count = (ssize_t)attune_node_say(bytes, sizeof bytes);
        if (count && write(STDOUT_FILENO, bytes, (size_t)count) < 0)
            board_exit(1);
        if (made < 50) {
            attune_create(work, "worker", worker_stack, sizeof worker_stack, NULL);
            attune_take(&done, ATTUNE_FOREVER);
        }
        usleep(500);
        attune_sleep(1);
    }
}

int main(void)
{
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    attune_init();
    attune_semaphore_init(&done, 0);
    attune_create(talk, "link", link_stack, sizeof link_stack, NULL);
    attune_run();
}
