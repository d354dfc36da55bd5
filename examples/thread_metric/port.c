/* Thread-Metric on Attune. */
#include "attune.h"
#include "board.h"
#include "thread_metric.h"

static unsigned char stacks[ATTUNE_THREADS][512] __attribute__((aligned(8)));
static uint32_t room[10 * MESSAGE_WORDS];
static struct attune_semaphore semaphore;
static struct attune_queue queue;

void metric_create(void (*entry)(void *), uint32_t number)
{
    static int begun;
    if (!begun) {
        begun = 1;
        attune_init();
        attune_semaphore_init(&semaphore, 1);
        attune_queue_init(&queue, room, MESSAGE_WORDS * sizeof(uint32_t), 10);
    }
    attune_create(entry, (void *)(uintptr_t)number, stacks[number], sizeof stacks[number], NULL);
}

void metric_relinquish(void)
{
    attune_yield();
}

void metric_take(void)
{
    attune_take(&semaphore, ATTUNE_FOREVER);
}

void metric_give(void)
{
    attune_give(&semaphore);
}

void metric_send(const uint32_t message[MESSAGE_WORDS])
{
    attune_send(&queue, message, ATTUNE_FOREVER);
}

void metric_receive(uint32_t message[MESSAGE_WORDS])
{
    attune_receive(&queue, message, ATTUNE_FOREVER);
}

void metric_run(void)
{
    board_start_ticks(250000); /* 100 a second, as FreeRTOSConfig.h says */
    attune_run();
}

void attune_failed(const struct attune_failure *failure)
{
    board_print(failure->what);
    board_exit(2);
}
