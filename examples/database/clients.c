/* clients: the sessions of a wholesaler's database. Transactions arrive as they come from many
 * people who know nothing of each other (exponential gaps); some sessions take new orders, the
 * others all the rest. It ends with a line of JSON: how long transactions took from their arrival
 * to the answer.
 *
 * The same seed brings the same transactions at the same times, whatever the server makes of them.
 * Times are in nanoseconds.
 */
#include "transactions.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <mysql.h>
#include <mysqld_error.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECOND = 1000000000, MOST_RETRIES = 20, MOST_SESSIONS = 64, MOST_RATE = 5000 };

enum hints { NO_HINTS, IMPORTANCE, LOCKS };

static struct {
    const char *socket;
    double rate; /* transactions a second; 0: each session begins one when it has ended one */
    double seconds;
    uint64_t seed;
    unsigned sessions; /* of each class */
    enum hints hints;
    bool real_time;
} options = {.socket = "/run/mysqld/mysqld.sock", .seconds = 10, .seed = 1, .sessions = 16};

__attribute__((noreturn)) static void fail(const char *what, const char *why)
{
    fprintf(stderr, "clients: %s: %s\n", what, why);
    exit(1);
}

/* One transaction to come. */
struct arrival {
    int64_t at; /* since the start */
    uint64_t seed;
    enum kind kind;
    int64_t took; /* 0: not answered yet */
};

/* In the order of time. */
static struct arrival *arrivals;
static size_t arrival_count;

/* Sessions serve a class each. Without a rate all serve both, so that the mix stays what it is. */
enum { ORDERS, OTHERS, BOTH };

/* What sessions of a class have not looked at yet begins here. */
static size_t next_arrival[3];
static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;

static int64_t start;
static unsigned long retries; /* after deadlocks */

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

static void sleep_until(int64_t time)
{
    struct timespec until = {.tv_sec = time / SECOND, .tv_nsec = time % SECOND};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static bool is_of(size_t arrival, int class)
{
    return class == BOTH || (arrivals[arrival].kind == NEW_ORDER) == (class == ORDERS);
}

/* Decides what comes and when, before the run. Without a rate the times say nothing. */
static void plan(void)
{
    struct random random = {options.seed};
    double rate = options.rate > 0 ? options.rate : MOST_RATE, at = 0;
    /* More than twice as many as there will be. */
    size_t room = rate * options.seconds * 2 + 100;
    arrivals = calloc(room, sizeof *arrivals);
    if (!arrivals)
        fail("arrivals", strerror(ENOMEM));
    while (arrival_count < room) {
        at -= log(random_part(&random)) / rate * SECOND;
        if (at >= options.seconds * SECOND)
            return;
        uint64_t seed = options.seed << 32 | (arrival_count + 1);
        arrivals[arrival_count++] =
            (struct arrival){.at = at, .seed = seed, .kind = random_kind(&random)};
    }
}

/* The next one of a class, or NULL if there is none. */
static struct arrival *take(int class)
{
    pthread_mutex_lock(&taking);
    size_t next = next_arrival[class];
    while (next < arrival_count && !is_of(next, class))
        next++;
    next_arrival[class] = next + 1;
    pthread_mutex_unlock(&taking);
    return next < arrival_count ? &arrivals[next] : NULL;
}

static MYSQL *connected(void)
{
    MYSQL *session = mysql_init(NULL);
    if (!session)
        fail("session", strerror(ENOMEM));
    if (!mysql_real_connect(session, NULL, "root", NULL, "shop", 0, options.socket,
                            CLIENT_MULTI_STATEMENTS))
        fail("connecting", mysql_error(session));
    return session;
}

/* Sends statements and takes all their answers. 0, or the error of the first that failed. */
static unsigned run(MYSQL *session, const char *text)
{
    if (mysql_real_query(session, text, strlen(text)))
        return mysql_errno(session);
    int more;
    do {
        MYSQL_RES *answer = mysql_store_result(session);
        if (answer)
            mysql_free_result(answer);
        else if (mysql_errno(session))
            return mysql_errno(session);
        more = mysql_next_result(session);
    } while (more == 0);
    return more > 0 ? mysql_errno(session) : 0;
}

/* The server has rolled back the victim of a deadlock; its transaction begins again. */
static void transact(MYSQL *session, const struct arrival *arrival)
{
    char batch[BATCH_SIZE];
    struct random random = {arrival->seed};
    write_transaction(batch, arrival->kind, &random, options.hints == LOCKS);
    for (int attempt = 0; attempt < MOST_RETRIES; attempt++) {
        unsigned error = run(session, batch);
        if (error == 0)
            return;
        if (error != ER_LOCK_DEADLOCK)
            break;
        __atomic_add_fetch(&retries, 1, __ATOMIC_RELAXED);
    }
    fail("a transaction", mysql_error(session));
}

/* Serves a class until nothing more comes. */
static void *serve(void *argument)
{
    int class = (int)(intptr_t)argument;
    MYSQL *session = connected();
    const char *begins = "SET tx_isolation = 'READ-COMMITTED';";
    if (options.hints == IMPORTANCE && class == ORDERS)
        begins = "SET tx_isolation = 'READ-COMMITTED'; DO attune_hint('transaction', 5);";
    if (run(session, begins))
        fail("a session's beginning", mysql_error(session));
    int64_t end = start + options.seconds * SECOND;
    sleep_until(start);
    for (struct arrival *arrival; (arrival = take(class));) {
        if (class == BOTH) {
            if (now() >= end)
                break;
            arrival->at = now() - start;
        }
        sleep_until(start + arrival->at);
        transact(session, arrival);
        arrival->took = now() - start - arrival->at;
    }
    mysql_close(session);
    mysql_thread_end();
    return NULL;
}

static int compare(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static void print_class(const char *name, int class)
{
    int64_t *took = calloc(arrival_count + 1, sizeof *took);
    if (!took)
        fail("figures", strerror(ENOMEM));
    size_t count = 0, in_time = 0;
    double sum = 0;
    for (size_t i = 0; i < arrival_count; i++) {
        const struct arrival *arrival = &arrivals[i];
        if (arrival->took == 0 || !is_of(i, class))
            continue;
        took[count++] = arrival->took;
        sum += arrival->took;
        in_time += arrival->at + arrival->took <= options.seconds * SECOND;
    }
    qsort(took, count, sizeof *took, compare);
    size_t last = count > 0 ? count - 1 : 0;
    printf("\"%s\":{\"count\":%zu,\"per_second\":%.3f,\"response_ns\":{\"mean\":%.0f,"
           "\"p50\":%lld,\"p90\":%lld,\"p99\":%lld,\"max\":%lld}},",
           name, count, in_time / options.seconds, count > 0 ? sum / count : 0,
           (long long)took[last / 2], (long long)took[last * 9 / 10],
           (long long)took[last * 99 / 100], (long long)took[last]);
    free(took);
}

static double number(const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    if (*end || end == text || !(value >= least && value <= most))
        fail(text, "no such number here; --help says which");
    return value;
}

static void read_options(int count, char **words)
{
    static const char help[] =
        "Usage: clients [OPTION]..\n"
        "  --socket PATH      of the server [/run/mysqld/mysqld.sock]\n"
        "  --rate N           transactions a second, up to 5000; 0: as many as it can [0]\n"
        "  --seconds N        for which transactions arrive, up to 3600 [10]\n"
        "  --sessions N       for new orders, and as many for all others, up to 64 [16]\n"
        "  --seed N           of transactions and times [1]\n"
        "  --hints WHICH      none, importance (of new orders), locks (how many rows are locked)\n"
        "  --real-time        run in SCHED_FIFO, so that no policy delays the clients (root)\n"
        "Before it: mariadb < tables.sql\n";
    static const struct option names[] = {
        {"socket", required_argument, NULL, 'S'},
        {"rate", required_argument, NULL, 'r'},
        {"seconds", required_argument, NULL, 's'},
        {"sessions", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 'd'},
        {"hints", required_argument, NULL, 'h'},
        {"real-time", no_argument, NULL, 'R'},
        {"help", no_argument, NULL, '?'},
        {0},
    };
    for (int option; (option = getopt_long(count, words, "", names, NULL)) != -1;) {
        switch (option) {
        case 'S':
            options.socket = optarg;
            break;
        case 'r':
            options.rate = number(optarg, 0, MOST_RATE);
            break;
        case 's':
            options.seconds = number(optarg, 0.1, 3600);
            break;
        case 'n':
            options.sessions = number(optarg, 1, MOST_SESSIONS);
            break;
        case 'd':
            options.seed = number(optarg, 0, UINT32_MAX);
            break;
        case 'R':
            options.real_time = true;
            break;
        case 'h':
            if (!strcmp(optarg, "importance"))
                options.hints = IMPORTANCE;
            else if (!strcmp(optarg, "locks"))
                options.hints = LOCKS;
            else if (strcmp(optarg, "none"))
                fail(optarg, "hints are none, importance or locks");
            break;
        default:
            fputs(help, stderr);
            exit(2);
        }
    }
}

int main(int count, char **words)
{
    read_options(count, words);
    const struct sched_param lowest = {.sched_priority = 1};
    if (options.real_time && sched_setscheduler(0, SCHED_FIFO, &lowest))
        fail("SCHED_FIFO", strerror(errno));
    plan();
    mysql_library_init(0, NULL, NULL);
    /* Time for all sessions to connect. */
    start = now() + SECOND;
    pthread_t threads[2 * MOST_SESSIONS];
    unsigned started = 0;
    for (; started < 2 * options.sessions; started++) {
        int class = options.rate > 0 ? (int)(started % 2) : BOTH;
        int error = pthread_create(&threads[started], NULL, serve, (void *)(intptr_t)class);
        if (error)
            fail("a thread", strerror(error));
    }
    while (started > 0)
        pthread_join(threads[--started], NULL);
    printf("{\"figures\":{");
    print_class("orders", ORDERS);
    print_class("others", OTHERS);
    print_class("all", BOTH);
    printf("\"rate\":%.3f,\"retries\":%lu}}\n", options.rate, retries);
    mysql_library_end();
}
