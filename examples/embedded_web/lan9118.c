/* The network card of QEMU's mps2-an385: an SMSC LAN9118, asked for frames, without interrupts.
 *
 * Frames go through two FIFOs of 32-bit words. The address is that of a guest of QEMU's user
 * network.
 */
#include "card.h"

#include "board.h"
#include "lwip/pbuf.h"
#include "settings.h"

#if !CLIENTS

#define CARD             0x40200000u
#define REGISTER(offset) (*(volatile uint32_t *)(uintptr_t)(CARD + (offset)))
#define RX_DATA          REGISTER(0x00)
#define TX_DATA          REGISTER(0x20)
#define RX_STATUS        REGISTER(0x40)
#define BYTE_TEST        REGISTER(0x64)
#define RX_CONFIGURATION REGISTER(0x6c)
#define TX_CONFIGURATION REGISTER(0x70)
#define HARDWARE         REGISTER(0x74)
#define RX_FIFO          REGISTER(0x7c)
#define TX_FIFO          REGISTER(0x80)
#define MAC_COMMAND      REGISTER(0xa4)
#define MAC_DATA         REGISTER(0xa8)

#define BYTE_TEST_VALUE   0x87654321u
#define HARDWARE_RESET    1u
#define HARDWARE_TX_5_KIB (5u << 16)
#define TX_ON             2u
#define TX_FIRST_AND_LAST 0x3000u
#define RX_ERROR          0x8000u
#define MAC_BUSY          0x80000000u
#define MAC_READ          0x40000000u
#define MAC_CONTROL       1u
#define MAC_CONTROL_TX_RX 0x0cu
#define MAC_ADDRESS_HIGH  2u
#define MAC_ADDRESS_LOW   3u

#define CHECKSUM_BYTES 4u
#define ADDRESS        0x0a00020fu /* 10.0.2.15 */
#define GATEWAY        0x0a000202u

static uint32_t mac_read(uint32_t number)
{
    MAC_COMMAND = MAC_BUSY | MAC_READ | number;
    while (MAC_COMMAND & MAC_BUSY) {
    }
    return MAC_DATA;
}

static void mac_write(uint32_t number, uint32_t value)
{
    MAC_DATA = value;
    MAC_COMMAND = MAC_BUSY | number;
    while (MAC_COMMAND & MAC_BUSY) {
    }
}

static uint32_t words(uint32_t bytes)
{
    return (bytes + 3) / 4;
}

static err_t send(struct netif *netif, struct pbuf *frame)
{
    uint32_t buffer[FRAME_BYTES / 4], length = frame->tot_len;
    (void)netif;
    /* Behind the data there is room for the two words of the command. */
    if (length > FRAME_BYTES || (TX_FIFO & 0xffff) < length + 16)
        return ERR_BUF;
    pbuf_copy_partial(frame, buffer, (u16_t)length, 0);
    TX_DATA = TX_FIRST_AND_LAST | length;
    TX_DATA = length;
    for (uint32_t i = 0; i < words(length); i++)
        TX_DATA = buffer[i];
    return ERR_OK;
}

void card_start(struct netif *netif)
{
    uint32_t low, high;
    if (BYTE_TEST != BYTE_TEST_VALUE) {
        board_print("there is no LAN9118\n");
        board_exit(2);
    }
    HARDWARE = HARDWARE_RESET;
    while (HARDWARE & HARDWARE_RESET) {
    }
    HARDWARE = HARDWARE_TX_5_KIB;
    RX_CONFIGURATION = 0;
    low = mac_read(MAC_ADDRESS_LOW);
    high = mac_read(MAC_ADDRESS_HIGH);
    const uint8_t hardware[6] = {(uint8_t)low,         (uint8_t)(low >> 8), (uint8_t)(low >> 16),
                                 (uint8_t)(low >> 24), (uint8_t)high,       (uint8_t)(high >> 8)};
    card_add(netif, ADDRESS, GATEWAY, hardware, send);
    mac_write(MAC_CONTROL, mac_read(MAC_CONTROL) | MAC_CONTROL_TX_RX);
    TX_CONFIGURATION = TX_ON;
}

/* Frames whose status is in the FIFO. */
static uint32_t received(void)
{
    return RX_FIFO >> 16 & 0xff;
}

/* A frame that is broken, too long or finds no buffer is read and dropped; TCP sends it again. */
static void take(struct netif *netif)
{
    uint32_t status = RX_STATUS, length = status >> 16 & 0x3fff, buffer[FRAME_BYTES / 4 + 1];
    struct pbuf *frame = NULL;
    for (uint32_t i = 0; i < words(length); i++) {
        uint32_t word = RX_DATA;
        if (i < sizeof buffer / sizeof *buffer)
            buffer[i] = word;
    }
    if (!(status & RX_ERROR) && length > CHECKSUM_BYTES)
        frame = card_buffer(length - CHECKSUM_BYTES);
    if (!frame)
        return;
    pbuf_take(frame, buffer, (u16_t)(length - CHECKSUM_BYTES));
    card_received(netif, frame);
}

int card_poll(struct netif *netif)
{
    uint32_t waiting = received();
    for (uint32_t i = 0; i < FRAMES_A_TURN && waiting; i++, waiting--)
        take(netif);
    return waiting != 0;
}
#endif
