/* lwIP for the web server: IPv4 and TCP by call-backs, without an operating system beneath. */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#include "settings.h"

/* All calls come from cooperative threads, which switch between calls only: no locks. */
#define NO_SYS               1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_SOCKET          0
#define LWIP_NETCONN         0
#define LWIP_UDP             0
#define LWIP_STATS           0
#define LWIP_NETIF_API       0
#define IP_REASSEMBLY        0
#define IP_FRAG              0
#define TCP_LISTEN_BACKLOG   1
#define TCP_QUEUE_OOSEQ      0
/* Several clients may ask before the first address is known. */
#define ARP_QUEUEING         1
#define ARP_QUEUE_LEN        BACKLOG

#define MEM_ALIGNMENT     8
#define MEM_SIZE          16384
#define PBUF_POOL_SIZE    16
#define PBUF_POOL_BUFSIZE FRAME_BYTES
#define TCP_MSS           536
#define TCP_WND           (4 * TCP_MSS)
#define TCP_SND_BUF       (4 * TCP_MSS)
#define TCP_SND_QUEUELEN  8
/* Both ends of each connection are here while clients run inside, and some that wait for their
 * last segments to die out. */
#define MEMP_NUM_TCP_PCB  (2 * (CONNECTIONS + CLIENTS) + 8)
#define MEMP_NUM_TCP_SEG  (8 * CONNECTIONS)
#define MEMP_NUM_PBUF     (8 * CONNECTIONS)

#endif
