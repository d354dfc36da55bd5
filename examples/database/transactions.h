/* The five transactions of the mix, as batches of SQL that the server works off in one go. */
#ifndef TRANSACTIONS_H
#define TRANSACTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind { NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL, KINDS };

/* A generator of random numbers (splitmix64): equal seeds, equal numbers. */
struct random {
    uint64_t state;
};

/* From 0 to below - 1. */
unsigned random_below(struct random *random, unsigned below);
/* Above 0, at most 1. */
double random_part(struct random *random);

/* Of 100 transactions, 45 are new orders, 43 payments, and 4 of each other kind. */
enum kind random_kind(struct random *random);

enum { BATCH_SIZE = 16384 };

/* Writes one transaction into batch. With counts_locks it tells thread imports `read_locks` and
 * `write_locks` after each statement how many rows the transaction has locked. */
void write_transaction(char batch[static BATCH_SIZE], enum kind kind, struct random *random,
                       bool counts_locks);

#endif
