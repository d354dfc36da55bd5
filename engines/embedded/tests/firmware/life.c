/* Threads yield, sleep, wait, pass messages, are suspended and end. Every board prints the same
 * lines. */
#include "attune.h"
#include "board.h"

static unsigned char stacks[6][1024] __attribute__((aligned(8)));
static struct attune_semaphore ready, never;
static struct attune_queue queue;
static uint32_t room[2];

void attune_failed(const struct attune_failure *failure)
{
    board_print(failure->what);
    board_exit(1);
}

static void alternating(void *name)
{
    for (int i = 0; i < 3; i++) {
        board_print_number(name, i, "\n");
        attune_yield();
    }
}

static void sleeping(void *unused)
{
    (void)unused;
    attune_sleep(5);
    board_print_number("slept until tick ", (int64_t)attune_now(), "\n");
    attune_sleep_until(12);
    board_print_number("slept until tick ", (int64_t)attune_now(), "\n");
    attune_sleep_until(3);
    board_print_number("a past tick does not block: ", (int64_t)attune_now(), "\n");
    attune_give(&ready);
}

static void waiting(void *unused)
{
    (void)unused;
    board_print_number("taken at once: ", attune_take(&never, 0), "\n");
    board_print_number("taken in 4 ticks: ", attune_take(&never, 4), "");
    board_print_number(", at tick ", (int64_t)attune_now(), "\n");
    board_print_number("given: ", attune_take(&ready, ATTUNE_FOREVER), "");
    board_print_number(" at tick ", (int64_t)attune_now(), "\n");
}

static void sending(void *unused)
{
    (void)unused;
    for (uint32_t i = 1; i <= 5; i++)
        attune_send(&queue, &i, ATTUNE_FOREVER);
    board_print("all sent\n");
}

static void receiving(void *unused)
{
    uint32_t sum = 0, message;
    (void)unused;
    while (sum < 15 && attune_receive(&queue, &message, 100))
        sum += message;
    board_print_number("received ", sum, "\n");
    board_print_number("and then nothing: ", attune_receive(&queue, &message, 2), "\n");
}

static void ending(void *unused)
{
    (void)unused;
    board_print("one of many\n");
}

static void controlling(void *unused)
{
    attune_thread *other;
    (void)unused;
    other = attune_create(alternating, "controlled ", stacks[0], sizeof stacks[0], NULL);
    board_print_number("suspended: ", attune_suspend(other), "");
    board_print_number(", twice: ", attune_suspend(other), "\n");
    attune_sleep(3);
    board_print("nothing has run until now\n");
    board_print_number("resumed: ", attune_resume(other), "");
    board_print_number(", twice: ", attune_resume(other), "\n");
    attune_sleep(3);
    board_print_number("suspended after its end: ", attune_suspend(other), "\n");
    for (int i = 0; i < 20; i++) {
        if (!attune_create(ending, NULL, stacks[1], sizeof stacks[1], NULL))
            board_print("no room\n");
        attune_sleep(1);
    }
    board_print_number("this thread is number ", attune_number(attune_self()), "\n");
    board_print(attune_stack_used(attune_self()) > 64 ? "its stack was used\n" : "?\n");
    board_print(attune_stack_used(attune_self()) < 1024 ? "not all of it\n" : "?\n");
}

int main(void)
{
    attune_init();
    attune_semaphore_init(&ready, 0);
    attune_semaphore_init(&never, 0);
    attune_queue_init(&queue, room, sizeof room[0], 2);
    board_start_ticks(25000);
    attune_create(alternating, "a ", stacks[0], sizeof stacks[0], NULL);
    attune_create(alternating, "b ", stacks[1], sizeof stacks[1], NULL);
    attune_create(sleeping, NULL, stacks[2], sizeof stacks[2], NULL);
    attune_create(waiting, NULL, stacks[3], sizeof stacks[3], NULL);
    attune_create(sending, NULL, stacks[4], sizeof stacks[4], NULL);
    attune_create(receiving, NULL, stacks[5], sizeof stacks[5], NULL);
    board_print(attune_create(ending, NULL, stacks[5], 16, NULL) ? "?\n" : "too small a stack\n");
    attune_run();
    board_print("all have ended\n");
    attune_create(controlling, NULL, stacks[2], sizeof stacks[2], NULL);
    attune_run();
    return 7;
}
