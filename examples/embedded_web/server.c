/* A web server on a microcontroller: a driver thread that asks the network card for frames, and
 * handler threads that serve one connection each.
 *
 * The same under every policy: one without the import `role` ignores it.
 */
#include <string.h>

#include "attune.h"
#include "board.h"
#include "card.h"
#include "clients.h"
#include "connection.h"
#include "lwip/init.h"
#include "lwip/timeouts.h"
#include "page.h"
#include "settings.h"

/* 25 MHz counts: a millisecond. */
#define COUNTS_A_TICK 25000

enum role { DRIVER, HANDLER };

/* A program on a desk pushes larger words, and its libraries are deeper. */
#define STACK_BYTES (2048 * sizeof(void *) * sizeof(void *) / 16)
static unsigned char stacks[ATTUNE_THREADS][STACK_BYTES] __attribute__((aligned(16)));

static struct netif network;

/* lwIP's clock: milliseconds. */
u32_t sys_now(void)
{
    return (u32_t)attune_now();
}

static void drive(void *unused)
{
    uint64_t looked = 0;
    (void)unused;
    for (;;) {
        int more = card_poll(&network);
        if (attune_now() != looked) {
            looked = attune_now();
            sys_check_timeouts();
        }
        if (more)
            attune_yield();
        else
            board_pause();
    }
}

/* The reply to a request, which ends with an empty line. */
static const char *reply_to(const char *request)
{
    if (strncmp(request, "GET ", 4) != 0)
        return PAGE_NOT_ALLOWED;
    if (strncmp(request + 4, "/ ", 2) != 0)
        return PAGE_NOT_FOUND;
    return PAGE;
}

static void serve(struct connection *connection)
{
    char request[512];
    size_t length = 0;
    do {
        size_t more = connection_read(connection, request + length, sizeof request - 1 - length);
        if (!more)
            return;
        length += more;
        request[length] = 0;
    } while (!strstr(request, "\r\n\r\n"));
    const char *reply = reply_to(request);
    connection_write(connection, reply, strlen(reply));
}

static void handle(void *unused)
{
    (void)unused;
    for (;;) {
        struct connection *connection = connection_accept();
        serve(connection);
        connection_close(connection);
    }
}

static void start(void (*entry)(void *), uint32_t number, enum role role)
{
    struct attune_imports imports = ATTUNE_IMPORTS;
#if ATTUNE_HAS_IMPORTS
    imports.role = role;
#else
    (void)role;
#endif
    attune_create(entry, NULL, stacks[number], STACK_BYTES, &imports);
}

void attune_failed(const struct attune_failure *failure)
{
    board_print(failure->file);
    board_print_number(":", failure->line, ": ");
    board_print(failure->what);
    board_print("\n");
    board_exit(1);
}

int main(void)
{
    attune_init();
    lwip_init();
    card_start(&network);
    connection_listen(&network, 80);
    board_start_ticks(COUNTS_A_TICK);
    start(drive, 0, DRIVER);
    for (uint32_t i = 1; i <= HANDLERS; i++)
        start(handle, i, HANDLER);
    board_print("serving\n");
    attune_run();
    return 1;
}
