#include "card.h"

#include <string.h>

#include "lwip/etharp.h"
#include "lwip/tcp.h"
#include "netif/ethernet.h"
#include "settings.h"

static err_t card_init(struct netif *netif)
{
    netif->name[0] = 'e';
    netif->name[1] = 'n';
    netif->output = etharp_output;
    netif->mtu = FRAME_BYTES - SIZEOF_ETH_HDR;
    netif->hwaddr_len = 6;
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET;
    return ERR_OK;
}

void card_add(struct netif *netif, uint32_t address, uint32_t gateway, const uint8_t hardware[6],
              netif_linkoutput_fn send)
{
    ip4_addr_t ip = {lwip_htonl(address)}, mask = {PP_HTONL(0xffffff00u)},
               next = {lwip_htonl(gateway)};
    netif_add(netif, &ip, &mask, &next, NULL, card_init, ethernet_input);
    memcpy(netif->hwaddr, hardware, 6);
    netif->linkoutput = send;
    netif_set_link_up(netif);
    netif_set_up(netif);
}

struct pbuf *card_buffer(uint32_t length)
{
    return length <= FRAME_BYTES ? pbuf_alloc(PBUF_RAW, (u16_t)length, PBUF_POOL) : NULL;
}

void card_received(struct netif *netif, struct pbuf *frame)
{
    if (netif->input(frame, netif) != ERR_OK)
        pbuf_free(frame);
}
