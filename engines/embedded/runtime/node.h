/* A node of a cluster: what handlers and the cluster share is exchanged with a gateway, which is
 * the node as its manager sees it (cluster/device/). All numbers are exchanged together, between
 * two handlers:
 *
 *      what others share       in: as the manager has it     out: what handlers did to it since
 *      the node's own          in: what others did to it     out: what it is
 *
 * The gateway asks, and repeats a question until it is answered; the node answers, and repeats the
 * answer when it is asked again. Frames, their ends marked by a 0 that occurs nowhere else (COBS):
 *
 *      kind, session (4), number (4), 64-bit numbers or a text, CRC-32 (4)     little-endian
 *
 * Invariants: a handler's copy of a shared number is the gateway's with attune_written applied; a
 * question is followed once; what an answer told is put back when another session begins before
 * the gateway went on.
 */

enum attune_frame_kind {
    ATTUNE_FRAME_WHO = 'Q',    /* to the node: which text does it run? */
    ATTUNE_FRAME_ASK = 'R',    /* to the node: age, values, changes of its own numbers */
    ATTUNE_FRAME_HELLO = 'H',  /* the texts' identity, and the family */
    ATTUNE_FRAME_ANSWER = 'A', /* changes of shared numbers, its own numbers */
    ATTUNE_FRAME_NEWS = 'W',   /* it has something to tell: ask */
};

/* Bytes in front of the numbers, and of the checksum. */
#define ATTUNE_FRAME_HEAD  9u
#define ATTUNE_FRAME_CHECK 4u

static struct {
    /* The question that was followed last; session 0: none. */
    uint32_t session, number;
    uint8_t says_hello, says_answer, says_news;
    /* What the last answer told. */
    struct attune_change told[ATTUNE_NODE_SHARED + 1];
    int64_t own[ATTUNE_NODE_OWN + 1];
    /* What has come of a frame; more than fits is no frame. */
    uint32_t filled;
    uint8_t in[ATTUNE_NODE_ROOM];
} attune_link = {.says_hello = 1};

static void attune_has_written(void)
{
    attune_link.says_news = 1;
}

static uint32_t attune_checksum(const uint8_t *bytes, uint32_t count)
{
    uint32_t sum = 0xffffffffu;
    while (count--) {
        sum ^= *bytes++;
        for (int bit = 0; bit < 8; bit++)
            sum = (sum >> 1) ^ (0xedb88320u & (0u - (sum & 1u)));
    }
    return ~sum;
}

static uint64_t attune_take_bytes(const uint8_t *from, uint32_t count)
{
    uint64_t number = 0;
    while (count--)
        number = number << 8 | from[count];
    return number;
}

static uint8_t *attune_put_bytes(uint8_t *to, uint64_t number, uint32_t count)
{
    for (; count; count--, number >>= 8)
        *to++ = (uint8_t)number;
    return to;
}

/* ---- What comes ---- */

/* In place; the length, 0 if it is no frame. */
static uint32_t attune_unstuffed(uint8_t *bytes, uint32_t count)
{
    uint32_t length = 0, at = 0;
    while (at < count) {
        uint32_t code = bytes[at++];
        if (at + code - 1 > count)
            return 0;
        for (uint32_t i = 1; i < code; i++)
            bytes[length++] = bytes[at++];
        if (code < 255 && at < count)
            bytes[length++] = 0;
    }
    return length;
}

static int64_t attune_node_applied(struct attune_change change, int64_t number)
{
    return attune_add(attune_mul(number, change.scale), change.shift);
}

/* What the last answer told is not known to have come. */
static void attune_put_back(void)
{
    for (int i = 0; i < ATTUNE_NODE_SHARED; i++) {
        struct attune_change *written = &attune_written[attune_node_globals[i]];
        struct attune_change later = *written;
        *written = attune_link.told[i];
        attune_compose(written, later.scale, later.shift);
    }
}

static void attune_follow(const uint8_t *numbers)
{
    uint64_t age = attune_take_bytes(numbers, 8);
    attune_read_clock();
    attune_heard_at = 0;
    if (age != INT64_MAX) {
        int64_t now = (int64_t)(attune_clock * ATTUNE_TICK_NS);
        attune_heard_at = attune_sub(now, (int64_t)age);
        attune_heard_at += !attune_heard_at;
    }
    for (int i = 0; i < ATTUNE_NODE_SHARED; i++) {
        struct attune_change *written = &attune_written[attune_node_globals[i]];
        int64_t number = (int64_t)attune_take_bytes(numbers += 8, 8);
        attune_node_set(i, attune_node_applied(*written, number));
        attune_link.told[i] = *written;
        *written = ATTUNE_UNCHANGED;
    }
    for (int i = 0; i < ATTUNE_NODE_OWN; i++) {
        struct attune_change change;
        change.scale = (int64_t)attune_take_bytes(numbers += 8, 8);
        change.shift = (int64_t)attune_take_bytes(numbers += 8, 8);
        attune_node_obey(i, change);
    }
    attune_link.says_news = 0;
}

static void attune_node_asked(const uint8_t *frame)
{
    uint32_t session = (uint32_t)attune_take_bytes(frame + 1, 4);
    uint32_t number = (uint32_t)attune_take_bytes(frame + 5, 4);
    int goes_on = session == attune_link.session && number == attune_link.number + 1;
    if (session != attune_link.session || number != attune_link.number) {
        if (!goes_on && number != 1) {
            /* It was another life of this node that the gateway spoke to. */
            attune_link.says_hello = 1;
            return;
        }
        if (!goes_on && attune_link.session)
            attune_put_back();
        attune_link.session = session;
        attune_link.number = number;
        attune_follow(frame + ATTUNE_FRAME_HEAD);
    }
    attune_link.says_answer = 1;
}

static void attune_node_frame(uint32_t stuffed)
{
    const uint32_t ask = ATTUNE_FRAME_HEAD + 8 * (1 + ATTUNE_NODE_SHARED + 2 * ATTUNE_NODE_OWN);
    uint8_t *frame = attune_link.in;
    uint32_t length = attune_unstuffed(frame, stuffed);
    if (length < ATTUNE_FRAME_HEAD + ATTUNE_FRAME_CHECK)
        return;
    length -= ATTUNE_FRAME_CHECK;
    if (attune_checksum(frame, length) != attune_take_bytes(frame + length, 4))
        return;
    if (frame[0] == ATTUNE_FRAME_WHO)
        attune_link.says_hello = 1;
    else if (frame[0] == ATTUNE_FRAME_ASK && length == ask)
        attune_node_asked(frame);
}

void attune_node_hear(const void *bytes, size_t count)
{
    for (const uint8_t *next = bytes; count--; next++) {
        if (*next) {
            if (attune_link.filled < ATTUNE_NODE_ROOM)
                attune_link.in[attune_link.filled] = *next;
            attune_link.filled += attune_link.filled <= ATTUNE_NODE_ROOM;
            continue;
        }
        if (attune_link.filled <= ATTUNE_NODE_ROOM)
            attune_node_frame(attune_link.filled);
        attune_link.filled = 0;
    }
}

/* ---- What is said ---- */

/* A frame of so many bytes in `raw`, with a 0 in front of it, which ends what was lost, and one
 * behind it. */
static size_t attune_stuffed(uint8_t *to, const uint8_t *raw, uint32_t count)
{
    uint8_t *start = to, *code;
    *to++ = 0;
    code = to++;
    *code = 1;
    for (uint32_t i = 0; i < count; i++) {
        if (raw[i]) {
            *to++ = raw[i];
            ++*code;
        }
        if (!raw[i] || *code == 255) {
            code = to++;
            *code = 1;
        }
    }
    *to++ = 0;
    return (size_t)(to - start);
}

static int attune_own_has_changed(void)
{
    for (int i = 0; i < ATTUNE_NODE_OWN; i++)
        if (attune_node_own(i) != attune_link.own[i])
            return 1;
    return 0;
}

size_t attune_node_say(void *bytes, size_t room)
{
    static uint8_t raw[ATTUNE_NODE_ROOM];
    uint8_t *to = raw;
    uint8_t kind;
    if (room < ATTUNE_NODE_ROOM)
        return 0;
    attune_link.says_news |= attune_link.session && attune_own_has_changed();
    if (attune_link.says_hello)
        kind = ATTUNE_FRAME_HELLO;
    else if (attune_link.says_answer)
        kind = ATTUNE_FRAME_ANSWER;
    else if (attune_link.says_news == 1)
        kind = ATTUNE_FRAME_NEWS;
    else
        return 0;
    *to++ = kind;
    to = attune_put_bytes(to, attune_link.session, 4);
    to = attune_put_bytes(to, attune_link.number, 4);
    if (kind == ATTUNE_FRAME_HELLO) {
        attune_link.says_hello = 0;
        for (const char *text = ATTUNE_NODE_TEXT; *text; text++)
            *to++ = (uint8_t)*text;
    } else if (kind == ATTUNE_FRAME_ANSWER) {
        attune_link.says_answer = 0;
        for (int i = 0; i < ATTUNE_NODE_SHARED; i++) {
            to = attune_put_bytes(to, (uint64_t)attune_link.told[i].scale, 8);
            to = attune_put_bytes(to, (uint64_t)attune_link.told[i].shift, 8);
        }
        for (int i = 0; i < ATTUNE_NODE_OWN; i++) {
            attune_link.own[i] = attune_node_own(i);
            to = attune_put_bytes(to, (uint64_t)attune_link.own[i], 8);
        }
    } else {
        attune_link.says_news = 2; /* until it is asked */
    }
    to = attune_put_bytes(to, attune_checksum(raw, (uint32_t)(to - raw)), 4);
    return attune_stuffed(bytes, raw, (uint32_t)(to - raw));
}
