/* The tests: TEST is 0 cooperative, 1 synchronisation, 2 message. Each prints the board's counts
 * for ROUNDS rounds and ends the firmware.
 */
#include "thread_metric.h"

#include "board.h"

static void end(uint32_t began, uint32_t turns)
{
    board_print_number("counts ", (int64_t)(uint32_t)(board_counter() - began), "\n");
    board_print_number("turns ", turns, "\n");
    board_exit(0);
}

#if TEST == 0
/* Five threads give the processor to each other; each counts its turns. */
static volatile uint32_t counts[5];

static void thread(void *number)
{
    volatile uint32_t *count = &counts[(uintptr_t)number];
    for (;;) {
        metric_relinquish();
        (*count)++;
    }
}

static void judge(void *number)
{
    uint32_t began, turns = 0;
    volatile uint32_t *count = &counts[(uintptr_t)number];
    metric_relinquish();
    began = board_counter();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        metric_relinquish();
        (*count)++;
    }
    for (uint32_t i = 0; i < 5; i++) {
        /* All have had their turns. */
        if (counts[i] < ROUNDS - 1 || counts[i] > ROUNDS + 1)
            board_exit(1);
        turns += counts[i];
    }
    end(began, turns);
}

static void start(void)
{
    metric_create(judge, 0);
    for (uint32_t i = 1; i < 5; i++)
        metric_create(thread, i);
}
#elif TEST == 1
/* One thread takes a semaphore and gives it back. */
static void thread(void *unused)
{
    uint32_t began = board_counter();
    (void)unused;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        metric_take();
        metric_give();
    }
    end(began, ROUNDS);
}

static void start(void)
{
    metric_create(thread, 0);
}
#else
/* One thread sends itself messages of 16 bytes. */
static void thread(void *unused)
{
    uint32_t began = board_counter();
    uint32_t sent[MESSAGE_WORDS] = {0}, received[MESSAGE_WORDS];
    (void)unused;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        sent[MESSAGE_WORDS - 1]++;
        metric_send(sent);
        metric_receive(received);
        if (received[MESSAGE_WORDS - 1] != sent[MESSAGE_WORDS - 1])
            board_exit(1);
    }
    end(began, ROUNDS);
}

static void start(void)
{
    metric_create(thread, 0);
}
#endif

int main(void)
{
    start();
    metric_run();
    return 1;
}
