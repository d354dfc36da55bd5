/* A wire that is a piece of memory, with the server's card at one end and the clients' at the
 * other. A frame comes out `wire_latency` microseconds after it went in, in order; none is lost
 * while there is room for FRAMES in each direction.
 *
 * Both ends are interfaces of the same stack, and each connection is bound to one of them. The
 * wire's clock stands still while the clients compute.
 */
#include "wire.h"

#include <string.h>

#include "board.h"
#include "card.h"
#include "clients.h"
#include "lwip/pbuf.h"
#include "settings.h"

#if CLIENTS

#define FRAMES         32
#define COUNTS_A_USEC  25
#define SERVER_ADDRESS 0x0a000001u
#define CLIENT_ADDRESS 0x0a000002u

struct frame {
    uint32_t due; /* count */
    uint32_t length;
    uint8_t bytes[FRAME_BYTES];
};

/* A ring; how many went in and came out so far. */
struct direction {
    struct frame frames[FRAMES];
    uint32_t in, out;
};

static struct direction to_server, to_clients;
static struct netif clients_end;

uint32_t wire_latency;

/* Counts in which clients computed, and since when they do so now. */
static uint32_t clients_took, clients_began;
static int clients_run;

uint32_t wire_now(void)
{
    return (clients_run ? clients_began : board_counter()) - clients_took;
}

static err_t put(struct direction *direction, struct pbuf *frame)
{
    struct frame *to = &direction->frames[direction->in % FRAMES];
    if (direction->in - direction->out == FRAMES || frame->tot_len > FRAME_BYTES)
        return ERR_BUF;
    to->length = pbuf_copy_partial(frame, to->bytes, frame->tot_len, 0);
    to->due = wire_now() + wire_latency * COUNTS_A_USEC;
    direction->in++;
    return ERR_OK;
}

static err_t server_sends(struct netif *netif, struct pbuf *frame)
{
    (void)netif;
    return put(&to_clients, frame);
}

static err_t clients_send(struct netif *netif, struct pbuf *frame)
{
    (void)netif;
    return put(&to_server, frame);
}

/* Whether a frame has come to the other end. */
static int has_come(const struct direction *direction)
{
    const struct frame *next = &direction->frames[direction->out % FRAMES];
    return direction->out != direction->in &&
           (!wire_latency || (int32_t)(wire_now() - next->due) >= 0);
}

static void take(struct direction *direction, struct netif *netif)
{
    struct frame *from = &direction->frames[direction->out % FRAMES];
    struct pbuf *frame = card_buffer(from->length);
    /* Without a buffer the frame stays where it is, as in a card. */
    if (!frame)
        return;
    pbuf_take(frame, from->bytes, (u16_t)from->length);
    direction->out++;
    card_received(netif, frame);
}

void card_start(struct netif *netif)
{
    static const uint8_t server[6] = {2, 0, 0, 0, 0, 1}, clients[6] = {2, 0, 0, 0, 0, 2};
    card_add(netif, SERVER_ADDRESS, 0, server, server_sends);
    card_add(&clients_end, CLIENT_ADDRESS, 0, clients, clients_send);
    clients_start(&clients_end, SERVER_ADDRESS);
}

int card_poll(struct netif *netif)
{
    if (has_come(&to_clients)) {
        clients_began = board_counter();
        clients_run = 1;
        while (has_come(&to_clients))
            take(&to_clients, &clients_end);
        clients_turn();
        clients_run = 0;
        clients_took += board_counter() - clients_began;
    }
    for (uint32_t i = 0; i < FRAMES_A_TURN && has_come(&to_server); i++)
        take(&to_server, netif);
    return has_come(&to_server);
}
#endif
