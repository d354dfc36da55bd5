/* Counters that draw tickets from one roll: shared variables of a cluster in a program.
 *
 *      tickets draw N              draws N tickets, and says each with the times of the request
 *      tickets sell RATE SECONDS   sells so many tickets a second, by counting in the own copy
 *      tickets see                 says what the cluster knows
 *      tickets measure ROUNDS [CPU]
 *                                  says what reading and changing costs, beside packets to and from
 *                                  a process on that CPU
 */
#include "tickets.h"

#include "attune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t second = 1000000000;

void must(int holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static int variable(const char *name)
{
    int number = attune_shared(name);
    must(number >= 0, name);
    return number;
}

/* Waits until the manager has said what the variables hold. */
static void hear(void)
{
    while (attune_shared_age() == INT64_MAX)
        must(attune_sleep_for(second / 1000) == 0, "sleep");
}

static void draw(int count)
{
    int last = variable("last"), sold = variable("sold");
    for (int i = 0; i < count; i++) {
        int64_t ticket, begins = attune_now();
        must(attune_shared_change_int(last, ATTUNE_SHARED_ADD, 1, &ticket, ATTUNE_FOREVER) == 0,
             "draw");
        printf("{\"begins\": %lld, \"ends\": %lld, \"ticket\": %lld}\n", (long long)begins,
               (long long)attune_now(), (long long)ticket);
        attune_shared_change_int(sold, ATTUNE_SHARED_ADD, 1, NULL, 0);
    }
    must(attune_shared_flush(ATTUNE_FOREVER) == 0, "flush");
}

/* What is late is made up for, so the number is the rate's whatever else runs here. */
static void sell(double rate, double seconds)
{
    int sold = variable("sold");
    hear();
    int64_t begin = attune_now(), end = begin + (int64_t)(seconds * second), now = begin;
    long count = 0;
    while (now < end) {
        attune_sleep_for(second / 1000);
        now = attune_now();
        long due = (long)((now < end ? now - begin : end - begin) * rate / second);
        for (; count < due; count++)
            attune_shared_change_int(sold, ATTUNE_SHARED_ADD, 1, NULL, 0);
    }
    must(attune_shared_flush(ATTUNE_FOREVER) == 0, "flush");
    printf("{\"sold\": %ld, \"counted_after\": %.6f}\n", count,
           (double)(attune_now() - end) / second);
}

static void see(void)
{
    hear();
    printf("{\"last\": %lld, \"sold\": %lld}\n", (long long)*attune_shared_int(variable("last")),
           (long long)*attune_shared_int(variable("sold")));
}

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "draw") && count == 3) {
        draw(atoi(words[2]));
    } else if (!strcmp(what, "sell") && count == 4) {
        sell(atof(words[2]), atof(words[3]));
    } else if (!strcmp(what, "see") && count == 2) {
        see();
    } else if (!strcmp(what, "measure") && (count == 3 || count == 4)) {
        measure_before(count == 4 ? atoi(words[3]) : -1);
        hear();
        measure(atoi(words[2]));
    } else {
        fputs("usage: tickets draw N | sell RATE SECONDS | see | measure ROUNDS [CPU]\n", stderr);
        return 2;
    }
    return 0;
}
