/* Every function of the header; says ok. */
#include <attune_coop.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define CHECK(condition)                                                       \
    do                                                                         \
        if (!(condition)) {                                                    \
            printf("line %d: %s; errno %d, %s\n", __LINE__, #condition, errno, \
                   attune_coop_error());                                       \
            exit(1);                                                           \
        }                                                                      \
    while (0)

static int order, pipes[2];
static attune_coop_event never;

static void timer(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    CHECK(order++ == 0 && strcmp(data, "data") == 0);
    attune_coop_cancel(loop, never);
    attune_coop_remove(loop, event);
    CHECK(attune_coop_submit_timer(loop, event, 0) == -1 && errno == ENOENT);
}

static void work(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)event, (void)data;
    CHECK(order++ == 1 && attune_coop_until(loop) > 0);
    CHECK(write(pipes[1], "x", 1) == 1);
}

static void readable(attune_coop_loop *loop, attune_coop_event event, short revents, void *data)
{
    (void)data;
    char byte;
    CHECK(order++ == 2 && revents == POLLIN && read(pipes[0], &byte, 1) == 1);
    attune_coop_remove(loop, event);
    attune_coop_stop(loop);
}

static void not_called(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    (void)loop, (void)event, (void)data;
    CHECK(!"called");
}

static void loop(void)
{
    attune_coop_loop *loop = attune_coop_new(NULL, 3);
    CHECK(loop != NULL && pipe(pipes) == 0);
    attune_coop_event first = attune_coop_event_new(loop, "timer", timer, "data");
    attune_coop_event second = attune_coop_event_new(loop, "work", work, NULL);
    attune_coop_event proxy = attune_coop_proxy_new(loop, "proxy");
    never = attune_coop_event_new(loop, "never", not_called, NULL);
    CHECK(first && second && never && proxy && first != second);
    CHECK(attune_coop_descriptor_new(loop, pipes[0], POLLIN, 5, "pipe", readable, NULL) != 0);
    CHECK(attune_coop_descriptor_new(loop, pipes[0], POLLIN, 5, "pipe", readable, NULL) == 0 &&
          errno == EEXIST);
    CHECK(attune_coop_event_new(loop, "\xff", not_called, NULL) == 0 && errno == EINVAL);
    CHECK(attune_coop_submit_timer(loop, first, attune_coop_now()) == 0);
    CHECK(attune_coop_submit_timer(loop, never, attune_coop_now() + 1000000000) == 0);
    CHECK(attune_coop_submit_best_effort(loop, second, 9, ATTUNE_COOP_NEVER) == 0);
    CHECK(attune_coop_submit_best_effort(loop, proxy, 1, ATTUNE_COOP_NEVER) == 0);
    CHECK(attune_coop_run(loop) == 0 && order == 3);
    struct attune_coop_executions executions;
    CHECK(attune_coop_trace(loop, "work", &executions) == 0 && executions.count == 1);
    CHECK(executions.worst == executions.total && executions.worst_at != 0);
    CHECK(attune_coop_trace(loop, "nothing", &executions) == -1 && errno == ENOENT);
    CHECK(attune_coop_print_trace(loop, 2) == 0);
    attune_coop_free(loop);
}

static void poller(void)
{
    CHECK(attune_coop_join("morse") == NULL && errno == EINVAL &&
          strstr(attune_coop_error(), "no transport `morse`"));
    attune_coop_poller *poller = attune_coop_join(NULL);
    CHECK(poller != NULL);
    struct attune_coop_answer answer;
    struct attune_coop_offer offer = {.best_effort = 4, .timer = ATTUNE_COOP_NEVER};
    CHECK(attune_coop_poll(poller, &offer, NULL, 0, &answer) == 0 && answer.turn &&
          answer.others == ATTUNE_COOP_NOTHING);
    CHECK(attune_coop_poll_until(poller) <= answer.until);
    offer = (struct attune_coop_offer){.best_effort = ATTUNE_COOP_NOTHING,
                                       .timer = attune_coop_now() + 2000000};
    CHECK(attune_coop_poll(poller, &offer, NULL, 0, &answer) == 0 &&
          attune_coop_now() >= offer.timer);
    struct pollfd ready = {.fd = pipes[0], .events = POLLIN};
    CHECK(write(pipes[1], "y", 1) == 1);
    offer.timer = ATTUNE_COOP_NEVER;
    CHECK(attune_coop_poll(poller, &offer, &ready, 1, &answer) == 0 && ready.revents == POLLIN);
    struct attune_coop_statistics statistics;
    attune_coop_poll_statistics(poller, &statistics);
    CHECK(statistics.polls == 3 && statistics.sleeps >= 1);
    attune_coop_leave(poller);

    CHECK(attune_coop_poll_descriptors(&ready, 1, -1) == 1 && ready.revents == POLLIN);
    char byte;
    CHECK(read(pipes[0], &byte, 1) == 1);
    CHECK(attune_coop_poll_descriptors(&ready, 1, 0) == 0 && ready.revents == 0);
    uint64_t before = attune_coop_now();
    CHECK(attune_coop_poll_descriptors(NULL, 0, 3) == 0 && attune_coop_now() >= before + 3000000);
}

static void signalled(int signal)
{
    (void)signal;
}

static void signals_end_a_poll(void)
{
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = signalled}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 5000}, NULL);
    CHECK(attune_coop_poll_descriptors(NULL, 0, -1) == -1 && errno == EINTR);
}

int main(void)
{
    loop();
    poller();
    signals_end_a_poll();
    puts("ok");
}
