/* Threads that call every function of the engine that may block, while ticks come often; then how
 * much of its stack each has used. */
#include "attune.h"
#include "board.h"

#define ROUNDS 200

static unsigned char stacks[3][2048] __attribute__((aligned(8)));
static unsigned char room[2 * sizeof(uint32_t)];
static attune_thread *threads[3];
static struct attune_semaphore turn;
static struct attune_queue queue;

static void worker(void *number)
{
    uint32_t message = (uint32_t)(uintptr_t)number;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        attune_yield();
        attune_take(&turn, 3);
        attune_give(&turn);
        attune_send(&queue, &message, 1);
        attune_receive(&queue, &message, 1);
        attune_sleep(round % 3);
        /* Early, so that the other lives. */
        if (message == 2 && round < ROUNDS / 4 && attune_suspend(threads[1])) {
            attune_yield();
            attune_resume(threads[1]);
        }
    }
}

void board_interrupt(void)
{
    attune_give_from_interrupt(&turn);
}

void attune_failed(const struct attune_failure *failure)
{
    board_print(failure->what);
    board_exit(1);
}

int main(void)
{
    attune_init();
    attune_semaphore_init(&turn, 1);
    attune_queue_init(&queue, room, sizeof(uint32_t), 2);
    for (uint32_t i = 0; i < 3; i++)
        threads[i] = attune_create(worker, (void *)(uintptr_t)i, stacks[i], sizeof stacks[i], NULL);
    board_start_ticks(60);
    attune_run();
    for (uint32_t i = 0; i < 3; i++)
        board_print_number("used ", (int64_t)attune_stack_used(threads[i]), "\n");
    return 0;
}
