#include "clients.h"

#include "board.h"
#include "lwip/tcp.h"
#include "page.h"
#include "settings.h"
#include "wire.h"

#if CLIENTS

enum state { IDLE, CONNECTING, CONNECTED, ASKED };

struct client {
    struct tcp_pcb *pcb;
    enum state state;
    uint32_t since;    /* its SYN */
    uint32_t received; /* bytes of the reply */
    uint8_t good;      /* as expected so far */
};

static const char REQUEST[] = "GET / HTTP/1.0\r\nHost: boiler\r\n\r\n";
static const char EXPECTED[] = PAGE;

static const uint32_t latencies[] = {LATENCIES};

static struct client clients[CLIENTS];
static struct netif *network;
static ip_addr_t server_address;

/* The part that runs: so many clients, at that latency, since that count. */
static uint32_t active, latency, began;
/* What this part has counted so far. */
static uint32_t asked, answered, wrong, broken;
static uint64_t response_counts;
static int failed;

static void begin(void)
{
    asked = answered = wrong = broken = 0;
    response_counts = 0;
    wire_latency = latencies[latency];
    began = wire_now();
}

static void report(void)
{
    board_print_number("latency ", wire_latency, "");
    board_print_number(" clients ", active, "");
    board_print_number(" answered ", answered, "");
    board_print_number(" wrong ", wrong, "");
    board_print_number(" broken ", broken, "");
    board_print_number(" counts ", (int64_t)(wire_now() - began), "");
    board_print_number(" responses ", (int64_t)response_counts, "\n");
    failed |= wrong || broken;
}

static void next_part(void)
{
    if (active++ == CLIENTS) {
        active = 1;
        if (++latency == sizeof latencies / sizeof *latencies)
            board_exit(failed);
    }
    begin();
}

/* `result` is one of the sums above. */
static void finish(struct client *client, uint32_t *result)
{
    client->state = IDLE;
    client->pcb = NULL;
    response_counts += wire_now() - client->since;
    ++*result;
    if (answered + wrong + broken == REQUESTS) {
        report();
        next_part();
    }
}

/* ---- What lwIP calls ---- */

static err_t on_connected(void *argument, struct tcp_pcb *pcb, err_t error)
{
    struct client *client = argument;
    (void)pcb;
    (void)error;
    client->state = CONNECTED;
    return ERR_OK;
}

static err_t on_received(void *argument, struct tcp_pcb *pcb, struct pbuf *bytes, err_t error)
{
    struct client *client = argument;
    (void)error;
    if (!bytes) {
        tcp_arg(pcb, NULL);
        tcp_err(pcb, NULL);
        tcp_recv(pcb, NULL);
        tcp_close(pcb);
        finish(client,
               client->good && client->received == sizeof EXPECTED - 1 ? &answered : &wrong);
        return ERR_OK;
    }
    if (client->received + bytes->tot_len >= sizeof EXPECTED ||
        pbuf_memcmp(bytes, 0, EXPECTED + client->received, bytes->tot_len) != 0)
        client->good = 0;
    client->received += bytes->tot_len;
    tcp_recved(pcb, bytes->tot_len);
    pbuf_free(bytes);
    return ERR_OK;
}

/* lwIP has freed the control block. */
static void on_error(void *argument, err_t error)
{
    (void)error;
    finish(argument, &broken);
}

/* ---- What the wire calls ---- */

static void connect(struct client *client)
{
    asked++;
    *client = (struct client){.state = CONNECTING, .since = wire_now(), .good = 1};
    client->pcb = tcp_new();
    if (!client->pcb) {
        finish(client, &broken);
        return;
    }
    tcp_bind_netif(client->pcb, network);
    tcp_arg(client->pcb, client);
    tcp_err(client->pcb, on_error);
    tcp_recv(client->pcb, on_received);
    if (tcp_connect(client->pcb, &server_address, 80, on_connected) != ERR_OK) {
        tcp_abort(client->pcb);
        client->state = IDLE;
    }
}

/* In a frame of its own, behind the one that ends the handshake, as from a program that connects
 * and then writes. */
static void ask(struct client *client)
{
    client->state = ASKED;
    tcp_write(client->pcb, REQUEST, sizeof REQUEST - 1, 0);
    tcp_output(client->pcb);
}

void clients_turn(void)
{
    for (struct client *client = clients; client < clients + active; client++) {
        if (client->state == IDLE && asked < REQUESTS)
            connect(client);
        else if (client->state == CONNECTED)
            ask(client);
    }
}

void clients_start(struct netif *netif, uint32_t server)
{
    network = netif;
    ip_addr_set_ip4_u32(&server_address, lwip_htonl(server));
    active = 1;
    begin();
    clients_turn();
}
#endif
