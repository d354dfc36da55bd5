/* Shared variables, as the header says they are. The second word is the cluster to join.
 *
 *      alone   the process is no node
 *      early   there is no manager yet
 *      all     with a manager whose variables have their first values
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "attune.h"

#define CHECK(what)                                                    \
    do {                                                               \
        if (!(what)) {                                                 \
            printf("line %d: %s, errno %d\n", __LINE__, #what, errno); \
            exit(1);                                                   \
        }                                                              \
    } while (0)

static const int64_t ms = 1000000;

static void alone(void)
{
    int64_t value;
    CHECK(attune_shared("jobs") == -1 && errno == ENOTCONN);
    CHECK(attune_shared_int(0) == NULL && errno == ENOTCONN);
    CHECK(attune_shared_read_int(0, &value, 0) == -1 && errno == ENOTCONN);
    CHECK(attune_shared_flush(0) == -1 && errno == ENOTCONN);
    CHECK(attune_shared_age() == -1 && errno == ENOTCONN);
}

static void early(void)
{
    int64_t value = 7;
    int tickets = attune_shared("tickets"), left = attune_shared("left");
    CHECK(attune_shared_age() == INT64_MAX);
    /* The copy works, and does not wait. */
    CHECK(attune_shared_change_int(left, ATTUNE_SHARED_ADD, 5, &value, 0) == 0 && value == 5);
    CHECK(*attune_shared_int(left) == 5);
    CHECK(attune_shared_flush(20 * ms) == -1 && errno == ETIMEDOUT);
    /* The owner is not there. */
    CHECK(attune_shared_read_int(tickets, &value, 20 * ms) == -1 && errno == ETIMEDOUT);
    CHECK(attune_shared_change_int(tickets, ATTUNE_SHARED_ADD, 1, NULL, 20 * ms) == -1);
    CHECK(errno == ETIMEDOUT && value == 5);
}

static int drawn[101];

static void *draws(void *argument)
{
    int tickets = attune_shared("tickets");
    for (int i = 0; i < 25; i++) {
        int64_t ticket;
        CHECK(attune_shared_change_int(tickets, ATTUNE_SHARED_ADD, 1, &ticket, ATTUNE_FOREVER) ==
              0);
        CHECK(ticket >= 1 && ticket <= 100 && !drawn[ticket]);
        drawn[ticket] = 1;
        /* What was answered is in the copy. */
        CHECK(*attune_shared_int(tickets) >= ticket);
    }
    return argument;
}

static void all(void)
{
    int tickets = attune_shared("tickets"), left = attune_shared("left");
    int right = attune_shared("right"), share = attune_shared("share");
    const int64_t *l = attune_shared_int(left), *r = attune_shared_int(right);
    const double *s = attune_shared_float(share);
    int64_t value;
    double real;
    CHECK(attune_shared("nothing") == -1 && errno == ENOENT);
    CHECK(attune_shared(NULL) == -1 && errno == EINVAL);
    CHECK(attune_shared_int(share) == NULL && errno == EINVAL);
    CHECK(attune_shared_float(left) == NULL && errno == EINVAL);
    CHECK(attune_shared_read_int(-1, &value, 0) == -1 && errno == EINVAL);
    CHECK(attune_shared_read_int(999, &value, 0) == -1 && errno == EINVAL);
    CHECK(attune_shared_change_int(left, 9, 1, NULL, 0) == -1 && errno == EINVAL);

    attune_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(attune_create(&threads[i], NULL, draws, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(attune_join(threads[i], NULL) == 0);
    CHECK(attune_shared_read_int(tickets, &value, ATTUNE_FOREVER) == 0 && value == 100);
    CHECK(attune_shared_age() < INT64_MAX);

    /* Both, at once and together. */
    struct attune_write both[] = {
        {.variable = left, .change = ATTUNE_SHARED_ADD, .integer = 1},
        {.variable = right, .change = ATTUNE_SHARED_ADD, .integer = 1},
    };
    for (int i = 0; i < 1000; i++) {
        CHECK(attune_shared_write(both, 2, 0) == 0);
        CHECK(*l == i + 1 && *r == *l);
    }
    CHECK(attune_shared_flush(ATTUNE_FOREVER) == 0);
    /* With one that is the owner's, the owner does both. */
    struct attune_write asked[] = {
        {.variable = left, .change = ATTUNE_SHARED_ADD, .integer = 1},
        {.variable = right, .change = ATTUNE_SHARED_ADD, .integer = 1},
        {.variable = tickets, .change = ATTUNE_SHARED_MULTIPLY, .integer = 1},
    };
    CHECK(attune_shared_write(asked, 3, ATTUNE_FOREVER) == 0);
    CHECK(*l == 1001 && *r == 1001 && *attune_shared_int(tickets) == 100);
    CHECK(attune_shared_write(asked, 0, 0) == -1 && errno == EINVAL);

    CHECK(*s == 0.5);
    CHECK(attune_shared_change_float(share, ATTUNE_SHARED_MULTIPLY, 3, &real, 0) == 0);
    CHECK(real == 1.5);
    CHECK(attune_shared_read_float(share, &real, 0) == 0 && real == *s);
    CHECK(attune_shared_flush(ATTUNE_FOREVER) == 0);
}

int main(int count, char **words)
{
    struct attune_options options = {.size = sizeof(options)};
    if (count > 2)
        options.cluster = words[2];
    CHECK(attune_init(&options) == 0);
    if (!strcmp(words[1], "alone"))
        alone();
    else if (!strcmp(words[1], "early"))
        early();
    else
        all();
    return 0;
}
