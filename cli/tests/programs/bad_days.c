/* Cooperating programs beside one that behaves badly, or through a bad hour, each bad day for some
 * seconds:
 *
 *     bad_days TRANSPORT SECONDS DAY... [-- SCHEDULER...]
 *
 * Four programs serve a timer every 10 ms and compute all the time between, polling; two hogs
 * compute (not with the transport `shared`, where all that cooperate are one to the kernel); the
 * villain has its way. For each day a line: its name, the villain's CPU time (a thread, if it has
 * many), the least of the four's, the least of the hogs', in per mille of what each would have if
 * all threads that want the CPU shared it evenly, and the least of the four's timers served, in per
 * mille of those released, and of those served before half of the time to the next one was over. In
 * the end "well". A day that does not end is the caller's to notice. SCHEDULER runs a command,
 * which it is given, under a scheduler: for the day on which that comes and goes. */
#define _GNU_SOURCE
#include <attune_coop.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GOOD = 4, HOGS = 2, THREADS = 100, PAGES = 256 };
#define PERIOD UINT64_C(10000000)

/* attune.h's, which the library holds too. */
int64_t *attune_thread_import_int(uint64_t thread, const char *name);

/* A good program's timers: those served, and those of them served early enough; shared. */
static struct {
    _Atomic uint64_t all, in_time;
} *served;

static const char *transport;
static int hogs_there;

static uint64_t clock_of(clockid_t clock)
{
    struct timespec time;
    return clock_gettime(clock, &time)
               ? 0
               : (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t cpu_of(pid_t process)
{
    clockid_t clock;
    return clock_getcpuclockid(process, &clock) ? 0 : clock_of(clock);
}

static void sleep_until(uint64_t time)
{
    struct timespec until = {(time_t)(time / 1000000000), (long)(time % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
        ;
}

static void compute(void)
{
    for (volatile int turn = 0; turn < 20000; turn++)
        ;
}

static attune_coop_poller *join(void)
{
    attune_coop_poller *poller = attune_coop_join(transport);
    if (!poller) {
        fprintf(stderr, "bad_days: %s\n", attune_coop_error());
        exit(1);
    }
    return poller;
}

static struct attune_coop_answer ask(attune_coop_poller *poller, uint64_t timer,
                                     int64_t best_effort, struct pollfd *ready)
{
    struct attune_coop_offer offer = {0, timer, best_effort};
    struct attune_coop_answer answer;
    while (attune_coop_poll(poller, &offer, ready, ready != NULL, &answer))
        ;
    return answer;
}

/* ---- Good programs
 * ------------------------------------------------------------------------------------------------
 */

struct good {
    uint64_t next;
    int64_t done;
    int number;
};

static void on_time(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    struct good *good = data;
    served[good->number].all++;
    served[good->number].in_time += attune_coop_now() < good->next + PERIOD / 2;
    attune_coop_submit_timer(loop, event, good->next += PERIOD);
}

static void on_work(attune_coop_loop *loop, attune_coop_event event, void *data)
{
    compute();
    attune_coop_submit_best_effort(loop, event, ++((struct good *)data)->done, ATTUNE_COOP_NEVER);
}

static void be_good(int number)
{
    attune_coop_loop *loop = attune_coop_new(transport, 0);
    if (!loop) {
        fprintf(stderr, "bad_days: %s\n", attune_coop_error());
        exit(1);
    }
    struct good good = {attune_coop_now(), 0, number};
    attune_coop_submit_timer(loop, attune_coop_event_new(loop, "timer", on_time, &good), good.next);
    attune_coop_submit_best_effort(loop, attune_coop_event_new(loop, "work", on_work, &good), 0,
                                   ATTUNE_COOP_NEVER);
    attune_coop_run(loop);
    exit(1);
}

/* ---- Villains: each goes on until it is killed
 * -------------------------------------------------------------------- */

static void is_always_due(void)
{
    attune_coop_poller *poller = join();
    for (;;) {
        ask(poller, attune_coop_now(), INT64_MIN + 2, NULL);
        compute();
    }
}

/* Says that it has nothing to do, is woken at once by a pipe that is readable, and computes. */
static void is_never_due(void)
{
    attune_coop_poller *poller = join();
    int ends[2];
    if (pipe(ends) || write(ends[1], "x", 1) != 1)
        exit(1);
    for (;;) {
        struct pollfd ready = {ends[0], POLLIN, 0};
        ask(poller, ATTUNE_COOP_NEVER, ATTUNE_COOP_NOTHING, &ready);
        for (int turn = 0; turn < 100; turn++)
            compute();
    }
}

static void never_polls_again(void)
{
    ask(join(), attune_coop_now(), 1, NULL);
    for (;;)
        compute();
}

static void *one_of_many(void *nothing)
{
    is_always_due();
    return nothing;
}

static void is_many(void)
{
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread, &small, one_of_many, NULL))
            exit(1);
    pthread_join(thread, NULL);
}

/* Writes what comes to its mind into the page that it shares with the scheduler, and polls now and
 * then. */
static void scribble(int below_zero)
{
    static const char *const names[] = {"polls", "next_release", "importance",
                                        "group", "until",        "others"};
    enum { WORDS = sizeof names / sizeof names[0], GROUP = 3 };
    int64_t *words[WORDS];
    uint64_t chance = 88172645463325252u;
    ask(join(), attune_coop_now(), 1, NULL);
    for (int i = 0; i < WORDS; i++)
        if (!(words[i] = attune_thread_import_int(0, names[i])))
            exit(1);
    for (uint64_t turn = 0;; turn++) {
        chance ^= chance << 13, chance ^= chance >> 7, chance ^= chance << 17;
        /* Whatever, a time near now, or a small number. */
        int64_t value = chance % 3 == 0 ? (int64_t)chance
                        : chance % 3 == 1
                            ? (int64_t)(attune_coop_now() + chance % 50000000) - 25000000
                            : (int64_t)(chance >> 33) % 5 - 1;
        uint64_t word = (chance >> 20) % WORDS;
        if (word == GROUP && value < 0 && !below_zero)
            continue;
        __atomic_store_n(words[word], value, __ATOMIC_RELAXED);
        if (turn % 64 == 0)
            syscall(SYS_sched_yield);
    }
}

static void scribbles(void)
{
    scribble(0);
}

/* Groups below zero, too, which are none. */
static void scribbles_below_zero(void)
{
    scribble(1);
}

/* Sleeps in a poll, most of the time. */
static void sleeps_in_polls(void)
{
    attune_coop_poller *poller = join();
    for (;;) {
        ask(poller, attune_coop_now() + 7000000, ATTUNE_COOP_NOTHING, NULL);
        compute();
    }
}

/* The machine's clock, an hour back and forth; no other clock. */
static void steps_the_clock(void)
{
    for (int hour = 3600;; hour = -hour) {
        struct timespec time;
        clock_gettime(CLOCK_REALTIME, &time);
        time.tv_sec += hour;
        if (clock_settime(CLOCK_REALTIME, &time))
            exit(1);
        sleep_until(attune_coop_now() + 17000000);
    }
}

static pid_t start(void (*run)(void))
{
    pid_t child = fork();
    if (child < 0)
        exit(1);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run();
        _exit(0);
    }
    return child;
}

static void sleeps(void)
{
    ask(join(), ATTUNE_COOP_NEVER, ATTUNE_COOP_NOTHING, NULL);
}

/* Programs that do nothing but have a page each, as many as a scheduler has pages. */
static void takes_all_pages(void)
{
    sleep_until(attune_coop_now() + 200000000); /* the four come first */
    for (int i = 0; i < PAGES; i++)
        start(sleeps);
    for (;;)
        pause();
}

/* Days */

static void end(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static uint64_t kills(pid_t villain, uint64_t until, void (*run)(void))
{
    uint64_t used = 0;
    while (attune_coop_now() < until) {
        sleep_until(attune_coop_now() + 23000000);
        used += cpu_of(villain);
        end(villain);
        villain = start(run);
    }
    used += cpu_of(villain);
    end(villain);
    return used;
}

static uint64_t stops(pid_t villain, uint64_t until)
{
    while (attune_coop_now() < until) {
        sleep_until(attune_coop_now() + 60000000);
        kill(villain, SIGSTOP);
        sleep_until(attune_coop_now() + 60000000);
        kill(villain, SIGCONT);
    }
    uint64_t used = cpu_of(villain);
    end(villain);
    return used;
}

/* All four at once, for longer than a hundred of their timers: worse than a suspend, in which the
 * clock stands still. */
static void stop_all(const pid_t *good)
{
    for (int i = 0; i < GOOD; i++)
        kill(good[i], SIGSTOP);
    sleep_until(attune_coop_now() + 1500000000);
    for (int i = GOOD; i-- > 0;)
        kill(good[i], SIGCONT);
}

/* Tells the caller when; it stops the whole machine, whose clock goes on. */
static void stand_still(const pid_t *good)
{
    (void)good;
    uint64_t last = attune_coop_now(); /* it may stand still before the call returns */
    puts("stand still");
    fflush(stdout);
    for (int looks = 0; looks < 200; looks++) {
        sleep_until(last + 50000000);
        uint64_t now = attune_coop_now();
        if (now - last > 1000000000) {
            puts("stood still");
            return;
        }
        last = now;
    }
}

/* SCHEDULER's words, and behind them this program, which says "up" when it is the command. */
static char *command[16];

/* Returns when the scheduler is there. */
static pid_t start_scheduler(void)
{
    static char said[256];
    int ends[2];
    pid_t child;
    if (pipe(ends) || (child = fork()) < 0)
        exit(1);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        setpgid(0, 0);
        setpriority(PRIO_PROCESS, 0, -20); /* loading it takes long, beside so many */
        dup2(ends[1], 1);
        execv(command[0], command);
        _exit(127);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    while (from && fgets(said, sizeof said, from) && strcmp(said, "up\n"))
        ;
    if (strcmp(said, "up\n"))
        exit(1);
    fclose(from);
    return child;
}

/* With the command, for which it would wait. */
static void end_scheduler(pid_t scheduler)
{
    kill(-scheduler, SIGTERM);
    waitpid(scheduler, NULL, 0);
}

static pid_t scheduler;

/* One comes and goes, and then another comes. */
static void restart(const pid_t *good)
{
    (void)good;
    pid_t first = start_scheduler();
    sleep_until(attune_coop_now() + 1000000000);
    end_scheduler(first);
    sleep_until(attune_coop_now() + 300000000);
    scheduler = start_scheduler();
}

struct day {
    const char *name;
    void (*villain)(void);
    int threads; /* of the villain's that may want the CPU all the time */
    /* seconds: a release counts until its thread is 40 ms ahead of its share, so many threads can
     * be ahead for long */
    double settle;
    void (*ordeal)(const pid_t *good);
};

static const struct day days[] = {
    {"nothing", NULL, 0, 0.5, NULL},
    {"killed-in-poll", sleeps_in_polls, 1, 0.5, NULL},
    {"stopped", is_always_due, 1, 0.5, NULL},
    {"always-due", is_always_due, 1, 0.5, NULL},
    {"never-due", is_never_due, 1, 0.5, NULL},
    {"never-polls", never_polls_again, 1, 0.5, NULL},
    {"hundred-threads", is_many, THREADS, 6, NULL},
    {"scribbles", scribbles, 1, 0.5, NULL},
    {"scribbles-below-zero", scribbles_below_zero, 1, 0.5, NULL},
    {"clock-steps", steps_the_clock, 0, 0.5, NULL},
    {"all-pages-taken", takes_all_pages, 0, 3, NULL},
    {"all-stopped", NULL, 0, 0.5, stop_all},
    {"machine-stopped", NULL, 0, 2, stand_still},
    {"restarted", NULL, 0, 2, restart},
};

static int number;

static void good_one(void)
{
    be_good(number);
}

static void hog(void)
{
    for (;;)
        compute();
}

static void live(const struct day *day, uint64_t time)
{
    pid_t good[GOOD], hogs[HOGS], villain = 0;
    uint64_t before[GOOD + HOGS], timers[GOOD], late[GOOD], used = 0;
    int all = GOOD + hogs_there;
    memset((void *)served, 0, GOOD * sizeof *served);
    for (number = 0; number < GOOD; number++)
        good[number] = start(good_one);
    for (int i = 0; i < hogs_there; i++)
        hogs[i] = start(hog);
    if (day->villain)
        villain = start(day->villain);
    sleep_until(attune_coop_now() + (uint64_t)(day->settle * 1e9));
    /* No timer may be skipped in an ordeal; what it makes late is forgiven. */
    uint64_t dawn = attune_coop_now();
    for (int i = 0; i < GOOD; i++)
        timers[i] = served[i].all;
    if (day->ordeal) {
        day->ordeal(good);
        sleep_until(attune_coop_now() + (uint64_t)(day->settle * 1e9));
    }
    uint64_t begin = attune_coop_now(), villain_before = villain ? cpu_of(villain) : 0;
    for (int i = 0; i < GOOD; i++)
        late[i] = served[i].all - served[i].in_time;
    for (int i = 0; i < all; i++)
        before[i] = cpu_of(i < GOOD ? good[i] : hogs[i - GOOD]);
    if (day->villain == sleeps_in_polls)
        used = kills(villain, begin + time, day->villain);
    else if (villain && !strcmp(day->name, "stopped"))
        used = stops(villain, begin + time) - villain_before;
    else
        sleep_until(begin + time);
    /* The day may have become longer. */
    uint64_t lasted = attune_coop_now() - begin;
    if (villain && !used)
        used = cpu_of(villain) - villain_before;
    double released = (double)(attune_coop_now() - dawn) / PERIOD;
    double even = (double)lasted / (all + day->threads);
    double least[2] = {INFINITY, INFINITY}, fewest[2] = {INFINITY, INFINITY};
    for (int i = 0; i < all; i++) {
        double got =
            (double)(cpu_of(i < GOOD ? good[i] : hogs[i - GOOD]) - before[i]) * 1000 / even;
        if (got < least[i >= GOOD])
            least[i >= GOOD] = got;
    }
    for (int i = 0; i < GOOD; i++) {
        double of = (double)(served[i].all - timers[i]) * 1000 / released;
        double in_time = 1000 - (double)(served[i].all - served[i].in_time - late[i]) * 1000 /
                                    ((double)lasted / PERIOD);
        fewest[0] = fmin(fewest[0], of);
        fewest[1] = fmin(fewest[1], in_time);
    }
    int villains = day->threads > 0 ? day->threads : 1;
    printf("%s %.0f %.0f %.0f %.0f %.0f\n", day->name, (double)used * 1000 / even / villains,
           least[0], least[1], fewest[0], fewest[1]);
    fflush(stdout);
    if (villain && day->villain != sleeps_in_polls && strcmp(day->name, "stopped"))
        end(villain);
    for (int i = 0; i < GOOD; i++)
        end(good[i]);
    for (int i = 0; i < hogs_there; i++)
        end(hogs[i]);
    if (scheduler > 0) {
        end_scheduler(scheduler);
        scheduler = 0;
    }
}

int main(int count, char **words)
{
    if (count == 2 && !strcmp(words[1], "up"))
        return puts("up"), fflush(stdout), pause();
    if (count < 3)
        return fputs("usage: bad_days TRANSPORT SECONDS DAY... [-- SCHEDULER...]\n", stderr), 2;
    int end_of_days = 3, length = 0;
    while (end_of_days < count && strcmp(words[end_of_days], "--"))
        end_of_days++;
    for (int i = end_of_days + 1;
         i < count && length + 3 < (int)(sizeof command / sizeof command[0]); i++)
        command[length++] = words[i];
    command[length++] = words[0];
    command[length] = "up";
    transport = words[1];
    hogs_there = strcmp(transport, "shared") ? HOGS : 0;
    uint64_t time = (uint64_t)(atof(words[2]) * 1e9);
    served = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (served == MAP_FAILED)
        return 1;
    for (size_t i = 0; i < sizeof days / sizeof days[0]; i++) {
        for (int j = 3; j < end_of_days; j++)
            if (!strcmp(words[j], days[i].name))
                live(&days[i], time);
    }
    puts("well");
    return 0;
}
