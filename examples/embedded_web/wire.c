/* A wire that is a piece of memory, with the server's card at one end and the clients' at the
 * other. A frame comes out `wire_latency` microseconds after it went in, in order; none is lost
 * while there is room for FRAMES in each direction.
 *
 * Both ends are interfaces of the same stack, and each connection is bound to one of them. Clients
 * compute when the server looks at its card, and the server's clock stands still meanwhile. Theirs
 * says when the frame that they take came out: as on machines of their own, they answer no later
 * because the server looks later.
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

/* Counts in which clients computed; their clock while they do. */
static uint32_t clients_took, clients_clock;
static int clients_run;

static uint32_t server_now(void)
{
    return board_counter() - clients_took;
}

uint32_t wire_now(void)
{
    return clients_run ? clients_clock : server_now();
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

/* The frame that comes out next. NULL: none has come by then. */
static struct frame *arrived(struct direction *direction, uint32_t now)
{
    struct frame *next = &direction->frames[direction->out % FRAMES];
    int here =
        direction->out != direction->in && (!wire_latency || (int32_t)(now - next->due) >= 0);
    return here ? next : NULL;
}

/* 0: there is no buffer, and the frame stays where it is, as in a card. */
static int take(struct direction *direction, struct frame *from, struct netif *netif)
{
    struct pbuf *frame = card_buffer(from->length);
    if (!frame)
        return 0;
    pbuf_take(frame, from->bytes, (u16_t)from->length);
    direction->out++;
    card_received(netif, frame);
    return 1;
}

static void let_clients_run(void)
{
    uint32_t began = board_counter(), now = server_now();
    struct frame *frame;
    clients_run = 1;
    while ((frame = arrived(&to_clients, now))) {
        clients_clock = frame->due;
        if (!take(&to_clients, frame, &clients_end))
            break;
        clients_turn();
    }
    clients_run = 0;
    clients_took += board_counter() - began;
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
    struct frame *frame;
    if (arrived(&to_clients, server_now()))
        let_clients_run();
    for (uint32_t i = 0; i < FRAMES_A_TURN; i++) {
        frame = arrived(&to_server, server_now());
        if (!frame || !take(&to_server, frame, netif))
            break;
    }
    return arrived(&to_server, server_now()) != NULL;
}
#endif
