/* Writes the five transactions, after the description of TPC-C. Rows are locked in one order (by
 * table, then by key), so that transactions wait for each other and hardly ever deadlock. */
#include "transactions.h"

#include <stdarg.h>
#include <stdio.h>

enum { WAREHOUSES = 4, DISTRICTS = 10, CUSTOMERS = 30, ITEMS = 1000 }; /* as in tables.sql */
enum { FEWEST_LINES = 5, MOST_LINES = 15 };

static uint64_t random_word(struct random *random)
{
    uint64_t word = random->state += 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

unsigned random_below(struct random *random, unsigned below)
{
    return random_word(random) % below;
}

double random_part(struct random *random)
{
    return ((random_word(random) >> 11) + 1) * 0x1p-53;
}

enum kind random_kind(struct random *random)
{
    unsigned percent = random_below(random, 100);
    if (percent < 45)
        return NEW_ORDER;
    if (percent < 88)
        return PAYMENT;
    return ORDER_STATUS + (percent - 88) / 4;
}

/* A transaction while it is written. */
struct batch {
    char *text;
    size_t length;
    bool counts_locks;
    unsigned write_locks;
};

__attribute__((format(printf, 2, 3))) static void add(struct batch *batch, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    batch->length +=
        vsnprintf(batch->text + batch->length, BATCH_SIZE - batch->length, format, values);
    va_end(values);
}

/* The statements before have locked so many more rows. */
static void locked(struct batch *batch, unsigned rows)
{
    batch->write_locks += rows;
    if (batch->counts_locks)
        add(batch, "DO attune_hint('write_locks', %u);", batch->write_locks);
}

static void reads(struct batch *batch, unsigned rows)
{
    if (batch->counts_locks)
        add(batch, "DO attune_hint('read_locks', %u);", rows);
}

static void new_order(struct batch *batch, struct random *random)
{
    unsigned w = 1 + random_below(random, WAREHOUSES), d = 1 + random_below(random, DISTRICTS);
    unsigned lines = FEWEST_LINES + random_below(random, MOST_LINES - FEWEST_LINES + 1);
    add(batch,
        "SELECT tax INTO @tax FROM warehouse WHERE w = %u;"
        "UPDATE district SET next_order = LAST_INSERT_ID(next_order) + 1 WHERE w = %u AND d = %u;"
        "SET @o = LAST_INSERT_ID();",
        w, w, d);
    locked(batch, 1);
    add(batch,
        "INSERT INTO orders VALUES (%u, %u, @o, %u, NULL, %u);"
        "INSERT INTO new_order VALUES (%u, %u, @o);",
        w, d, 1 + random_below(random, CUSTOMERS), lines, w, d);
    locked(batch, 2);
    unsigned first = random_below(random, ITEMS / MOST_LINES);
    for (unsigned line = 0; line < lines; line++) {
        /* Each from a part of its own of the items: in ascending order. */
        unsigned i = 1 + line * (ITEMS / MOST_LINES) + first;
        unsigned quantity = 1 + random_below(random, 10);
        add(batch,
            "SELECT price INTO @price FROM item WHERE i = %u;"
            "UPDATE stock SET quantity = quantity - %u + IF(quantity < %u + 10, 91, 0)"
            " WHERE w = %u AND i = %u;"
            "INSERT INTO order_line VALUES (%u, %u, @o, %u, %u, %u, @price * %u);",
            i, quantity, quantity, w, i, w, d, line + 1, i, quantity, quantity);
        locked(batch, 2);
    }
}

static void payment(struct batch *batch, struct random *random)
{
    unsigned w = 1 + random_below(random, WAREHOUSES), d = 1 + random_below(random, DISTRICTS);
    unsigned c = 1 + random_below(random, CUSTOMERS), amount = 1 + random_below(random, 5000);
    add(batch, "UPDATE warehouse SET ytd = ytd + %u WHERE w = %u;", amount, w);
    locked(batch, 1);
    add(batch, "UPDATE district SET ytd = ytd + %u WHERE w = %u AND d = %u;", amount, w, d);
    locked(batch, 1);
    add(batch,
        "UPDATE customer SET balance = balance - %u WHERE w = %u AND d = %u AND c = %u;"
        "INSERT INTO history VALUES (NULL, %u, %u, %u, %u);",
        amount, w, d, c, w, d, c, amount);
    locked(batch, 2);
}

static void order_status(struct batch *batch, struct random *random)
{
    unsigned w = 1 + random_below(random, WAREHOUSES), d = 1 + random_below(random, DISTRICTS);
    unsigned c = 1 + random_below(random, CUSTOMERS);
    reads(batch, 1);
    add(batch,
        "SELECT name, balance FROM customer WHERE w = %u AND d = %u AND c = %u;"
        "SELECT MAX(o) INTO @o FROM orders WHERE w = %u AND d = %u AND c = %u;"
        "SELECT i, quantity, amount FROM order_line WHERE w = %u AND d = %u AND o = @o;",
        w, d, c, w, d, c, w, d);
}

static void delivery(struct batch *batch, struct random *random)
{
    unsigned w = 1 + random_below(random, WAREHOUSES);
    for (unsigned d = 1; d <= DISTRICTS; d++) {
        add(batch,
            "SET @o = NULL;"
            "SELECT MIN(o) INTO @o FROM new_order WHERE w = %u AND d = %u FOR UPDATE;"
            "DELETE FROM new_order WHERE w = %u AND d = %u AND o = @o;"
            "UPDATE orders SET carrier = 1 WHERE w = %u AND d = %u AND o = @o;"
            "SELECT SUM(amount) INTO @sum FROM order_line WHERE w = %u AND d = %u AND o = @o;"
            "UPDATE customer SET balance = balance + @sum WHERE w = %u AND d = %u"
            " AND c = (SELECT c FROM orders WHERE w = %u AND d = %u AND o = @o);",
            w, d, w, d, w, d, w, d, w, d, w, d);
        locked(batch, 3);
    }
}

static void stock_level(struct batch *batch, struct random *random)
{
    unsigned w = 1 + random_below(random, WAREHOUSES), d = 1 + random_below(random, DISTRICTS);
    reads(batch, 200);
    add(batch,
        "SELECT next_order INTO @o FROM district WHERE w = %u AND d = %u;"
        "SELECT COUNT(DISTINCT stock.i) FROM order_line JOIN stock"
        " ON stock.w = order_line.w AND stock.i = order_line.i WHERE order_line.w = %u"
        " AND d = %u AND o >= @o - 20 AND stock.quantity < %u;",
        w, d, w, d, 10 + random_below(random, 11));
}

void write_transaction(char text[static BATCH_SIZE], enum kind kind, struct random *random,
                       bool counts_locks)
{
    static void (*const writers[KINDS])(struct batch *, struct random *) = {
        [NEW_ORDER] = new_order, [PAYMENT] = payment,         [ORDER_STATUS] = order_status,
        [DELIVERY] = delivery,   [STOCK_LEVEL] = stock_level,
    };
    struct batch batch = {.text = text, .counts_locks = counts_locks};
    add(&batch, "START TRANSACTION;");
    writers[kind](&batch, random);
    add(&batch, "COMMIT;");
    reads(&batch, 0);
    if (batch.write_locks > 0) {
        batch.write_locks = 0;
        locked(&batch, 0);
    }
}
