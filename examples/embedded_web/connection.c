#include "connection.h"

#include "attune.h"
#include "lwip/tcp.h"
#include "settings.h"

struct connection {
    struct tcp_pcb *pcb;   /* NULL: it is broken */
    struct pbuf *received; /* not read yet */
    uint8_t taken, ended;  /* not free; the other side sends no more */
    /* Given when bytes, room or an end have come. */
    struct attune_semaphore changed;
};

static struct connection connections[CONNECTIONS];

/* Connections that no handler has taken: a ring, and how many have come and been taken so far. */
static struct connection *fresh[CONNECTIONS];
static uint32_t came, taken;
static struct attune_semaphore arrived;

/* With POLLING the thread stays ready and asks again in its next turn. */
static int await(struct attune_semaphore *semaphore, uint32_t ticks)
{
#if POLLING
    uint64_t end = attune_now() + ticks;
    while (!attune_take(semaphore, 0)) {
        if (ticks != ATTUNE_FOREVER && attune_now() >= end)
            return 0;
        attune_yield();
    }
    return 1;
#else
    return attune_take(semaphore, ticks);
#endif
}

/* ---- What lwIP calls, in the driver ---- */

static err_t on_received(void *argument, struct tcp_pcb *pcb, struct pbuf *bytes, err_t error)
{
    struct connection *connection = argument;
    (void)pcb;
    (void)error;
    if (!bytes)
        connection->ended = 1;
    else if (connection->received)
        pbuf_cat(connection->received, bytes);
    else
        connection->received = bytes;
    attune_give(&connection->changed);
    return ERR_OK;
}

static err_t on_sent(void *argument, struct tcp_pcb *pcb, u16_t length)
{
    struct connection *connection = argument;
    (void)pcb;
    (void)length;
    attune_give(&connection->changed);
    return ERR_OK;
}

/* lwIP has freed the control block. */
static void on_error(void *argument, err_t error)
{
    struct connection *connection = argument;
    (void)error;
    connection->pcb = NULL;
    connection->ended = 1;
    attune_give(&connection->changed);
}

static err_t on_accept(void *argument, struct tcp_pcb *pcb, err_t error)
{
    struct connection *connection = connections;
    (void)argument;
    if (error != ERR_OK || !pcb)
        return ERR_VAL;
    while (connection < connections + CONNECTIONS && connection->taken)
        connection++;
    if (connection == connections + CONNECTIONS)
        return ERR_MEM; /* lwIP aborts it; the backlog keeps this from happening */
    connection->taken = 1;
    connection->pcb = pcb;
    tcp_arg(pcb, connection);
    tcp_recv(pcb, on_received);
    tcp_err(pcb, on_error);
    tcp_backlog_delayed(pcb);
    fresh[came++ % CONNECTIONS] = connection;
    attune_give(&arrived);
    return ERR_OK;
}

/* ---- What handlers call ---- */

void connection_listen(struct netif *netif, uint16_t port)
{
    struct tcp_pcb *pcb = tcp_new();
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        attune_semaphore_init(&connections[i].changed, 0);
    attune_semaphore_init(&arrived, 0);
    /* Clients in the firmware share the stack: only frames of this interface are the server's. */
    tcp_bind_netif(pcb, netif);
    tcp_bind(pcb, IP4_ADDR_ANY, port);
    tcp_accept(tcp_listen_with_backlog(pcb, BACKLOG), on_accept);
}

struct connection *connection_accept(void)
{
    struct connection *connection;
    await(&arrived, ATTUNE_FOREVER);
    connection = fresh[taken++ % CONNECTIONS];
    if (connection->pcb)
        tcp_backlog_accepted(connection->pcb);
    return connection;
}

size_t connection_read(struct connection *connection, void *to, size_t size)
{
    struct pbuf *first;
    uint16_t length;
    while (!connection->received) {
        if (connection->ended || !await(&connection->changed, PATIENCE_TICKS))
            return 0;
    }
    first = connection->received;
    length = pbuf_copy_partial(first, to, (u16_t)LWIP_MIN(size, UINT16_MAX), 0);
    connection->received = pbuf_free_header(first, length);
    if (connection->pcb)
        tcp_recved(connection->pcb, length);
    return length;
}

int connection_write(struct connection *connection, const void *from, size_t size)
{
    const unsigned char *bytes = from;
    while (size && connection->pcb) {
        uint16_t room = tcp_sndbuf(connection->pcb);
        uint16_t length = (u16_t)LWIP_MIN(size, room);
        if (length && tcp_write(connection->pcb, bytes, length, 0) == ERR_OK) {
            bytes += length;
            size -= length;
        } else {
            tcp_sent(connection->pcb, on_sent);
            tcp_output(connection->pcb);
            if (!await(&connection->changed, PATIENCE_TICKS))
                return 0;
        }
    }
    return !size;
}

void connection_close(struct connection *connection)
{
    struct tcp_pcb *pcb = connection->pcb;
    if (pcb) {
        tcp_arg(pcb, NULL);
        tcp_recv(pcb, NULL);
        tcp_sent(pcb, NULL);
        tcp_err(pcb, NULL);
        if (tcp_close(pcb) != ERR_OK)
            tcp_abort(pcb);
    }
    if (connection->received)
        pbuf_free(connection->received);
    while (attune_take(&connection->changed, 0)) {
    }
    connection->pcb = NULL;
    connection->received = NULL;
    connection->ended = connection->taken = 0;
}
