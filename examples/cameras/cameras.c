/* Cameras that store their pictures at a small server, which also shows them to people.
 *
 * Each camera is a process, and so is the server; each schedules its own user-level threads. They
 * share a circular buffer of eight places. A camera that finds it full loses its picture. The
 * server has a thread that empties the buffer and threads for visitors; when a crowd comes, nobody
 * empties the buffer, unless a cluster's policy prevents it:
 *
 *      thread import "has_picture"     the camera's thread is about to send a picture
 *      thread import "delayed"         the policy lets it wait
 *      import "known"                  how many pictures this camera has heard of
 *      thread import "stores"          1 for the server's thread that empties the buffer
 *      thread import "emptied"         how many places it has emptied since it last yielded
 *
 * The first process plays a script, turn by turn: one turn of the server's CPU at a time, one
 * picture at a time. It waits until what it has ordered is done, so that a slow machine changes
 * nothing but the time that it takes. Before it orders a picture, each camera must have heard of
 * those in the buffer: pictures are seconds apart in the world, news take less than a millisecond.
 */
#define _GNU_SOURCE /* eventfd, prctl */
#include "attune.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PLACES = 8,
    MOST_CAMERAS = 4, /* the policy needs a place for each, and some more */
    VISITORS = 16,
    /* Turns of the server's CPU. */
    STORING = 3,
    SERVING = 1,
    PERIOD = 25, /* of each camera */
    CROWD_EVERY = 400,
    CROWD_LASTS = 200
};

static struct {
    int cameras, pictures;
    double turn; /* seconds; 0: as fast as it goes */
    uint64_t seed;
} options = {3, 60, 0, 1};

struct camera {
    int has_picture, delayed, known; /* for the policy */
    atomic_int ordered, done;
};

/* All processes share this. */
static struct {
    atomic_int in_buffer; /* places taken: the pictures themselves are of no interest */
    atomic_int kept, lost, served;
    atomic_int turns; /* of the server, that have ended */
    struct camera cameras[MOST_CAMERAS];
} *all;

/* Descriptors: a picture is ordered, one has come into the buffer, a visitor has come; the server's
 * CPU has a turn. */
static int orders[MOST_CAMERAS], arrivals, visits, turns;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void start_library(void)
{
    /* Other policies may run it as well. */
    struct attune_options settings = {.size = sizeof(settings), .ignore_unknown_imports = 1};
    attune_init(&settings);
}

static void start_thread(const char *name, void *userdata, void *(*run)(void *))
{
    struct attune_attributes attributes = {.name = name, .userdata = userdata, .detached = 1};
    if (attune_create(NULL, &attributes, run, userdata) != 0)
        fail("cameras: cannot start a thread");
}

static void take_one(int fd)
{
    uint64_t one;
    while (attune_read(fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
        if (errno != EINTR && errno != EAGAIN)
            fail("cameras: a process is gone");
}

static void add(int fd, uint64_t count)
{
    if (write(fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
        fail("cameras: a process is gone");
}

/* ---- A camera ---- */

/* A place of the buffer, if one is free. */
static bool take_place(void)
{
    int taken = atomic_load(&all->in_buffer);
    while (taken < PLACES)
        if (atomic_compare_exchange_weak(&all->in_buffer, &taken, taken + 1))
            return true;
    return false;
}

static void *shutter(void *argument)
{
    struct camera *self = argument;
    for (;;) {
        take_one(orders[self - all->cameras]);
        self->has_picture = 1;
        attune_yield(); /* here the policy may let it wait */
        if (take_place())
            add(arrivals, 1);
        else
            atomic_fetch_add(&all->lost, 1);
        self->has_picture = 0;
        attune_yield(); /* the policy sees that it is gone */
        atomic_fetch_add(&self->done, 1);
    }
    return NULL;
}

static void camera(struct camera *self)
{
    start_library();
    attune_register("known", &self->known);
    attune_register_thread_field("has_picture", struct camera, has_picture);
    attune_register_thread_field("delayed", struct camera, delayed);
    start_thread("shutter", self, shutter);
    attune_exit(NULL);
}

/* ---- The server ---- */

struct server_thread {
    int stores, emptied; /* for the policy */
};

/* Computes for so many turns of the CPU: nobody else in this process runs meanwhile. */
static void compute(int count)
{
    uint64_t one;
    for (; count > 0; count--) {
        while (read(turns, &one, sizeof(one)) != (ssize_t)sizeof(one))
            if (errno != EINTR)
                fail("cameras: the script is gone");
        if (count > 1)
            atomic_fetch_add(&all->turns, 1);
    }
}

/* The end of the last turn: whatever the thread does next belongs to it. */
static void end_turn(void)
{
    atomic_fetch_add(&all->turns, 1);
    attune_yield();
}

static void *store(void *argument)
{
    struct server_thread *self = argument;
    for (;;) {
        take_one(arrivals);
        attune_yield(); /* a thread among others */
        compute(STORING);
        atomic_fetch_sub(&all->in_buffer, 1);
        atomic_fetch_add(&all->kept, 1);
        self->emptied++;
        end_turn();
    }
    return NULL;
}

static void *serve(void *argument)
{
    (void)argument;
    for (;;) {
        take_one(visits);
        attune_yield();
        compute(SERVING);
        atomic_fetch_add(&all->served, 1);
        end_turn();
    }
    return NULL;
}

static void server(void)
{
    static struct server_thread storing = {.stores = 1}, serving[VISITORS];
    start_library();
    attune_register_thread_field("stores", struct server_thread, stores);
    attune_register_thread_field("emptied", struct server_thread, emptied);
    start_thread("store", &storing, store);
    for (int i = 0; i < VISITORS; i++)
        start_thread("visitor", &serving[i], serve);
    attune_exit(NULL);
}

/* ---- The script ---- */

static pid_t processes[MOST_CAMERAS + 1];
static bool in_cluster;

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    if (waitpid(-1, NULL, WNOHANG) > 0) {
        fputs("cameras: a process has ended\n", stderr);
        exit(1);
    }
}

/* splitmix64, below `limit`. */
static uint64_t chance(uint64_t limit)
{
    uint64_t z = options.seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % limit;
}

static bool busy(const struct camera *camera)
{
    return atomic_load(&camera->done) < atomic_load(&camera->ordered);
}

static int read_now(const int *written_by_another_process)
{
    return *(const volatile int *)written_by_another_process;
}

/* Waits until every camera has heard of the pictures in the buffer. */
static void let_them_hear(void)
{
    for (int i = 0; in_cluster && i < options.cameras; i++)
        while (read_now(&all->cameras[i].known) < atomic_load(&all->in_buffer))
            pause_shortly();
}

/* Lets a camera take a picture, and waits until that is sent, lost or delayed. */
static void order(struct camera *camera)
{
    let_them_hear();
    atomic_fetch_add(&camera->ordered, 1);
    add(orders[camera - all->cameras], 1);
    while (busy(camera) && !read_now(&camera->delayed))
        pause_shortly();
}

/* Gives the server's CPU a turn, if it has anything to do. */
static bool turn(int visitors)
{
    if (atomic_load(&all->in_buffer) == 0 && atomic_load(&all->served) == visitors)
        return false;
    int before = atomic_load(&all->turns);
    add(turns, 1);
    while (atomic_load(&all->turns) == before)
        pause_shortly();
    return true;
}

static int play(void)
{
    int due[MOST_CAMERAS] = {0}, phase[MOST_CAMERAS], visitors = 0, delays = 0;
    bool was_delayed[MOST_CAMERAS] = {false};
    /* The seed says when the first crowd comes, and which pictures come together. */
    int crowd = 50 + (int)chance(CROWD_EVERY - CROWD_LASTS - 50);
    for (int i = 0; i < options.cameras; i++)
        phase[i] = (int)chance(PERIOD);
    for (int now = 0;; now++) {
        bool over = true;
        for (int i = 0; i < options.cameras; i++) {
            struct camera *camera = &all->cameras[i];
            bool comes = now % PERIOD == phase[i] && now / PERIOD < options.pictures;
            due[i] += comes;
            if (due[i] > 0 && !busy(camera)) {
                order(camera);
                due[i]--;
                was_delayed[i] = false;
            }
            if (busy(camera) && !was_delayed[i]) {
                was_delayed[i] = true;
                delays++;
            }
            over &= now / PERIOD >= options.pictures && due[i] == 0 && !busy(camera);
        }
        bool crowded = now % CROWD_EVERY >= crowd && now % CROWD_EVERY < crowd + CROWD_LASTS;
        int come = visitors - atomic_load(&all->served);
        int wanted = over ? 0 : crowded ? VISITORS - come : come == 0 && now % 5 == 0;
        if (wanted > 0) {
            visitors += wanted;
            add(visits, (uint64_t)wanted);
        }
        bool worked = turn(visitors);
        if (over && !worked)
            break;
        if (options.turn > 0)
            nanosleep(
                &(struct timespec){(time_t)options.turn, (long)(options.turn * 1e9) % 1000000000},
                NULL);
        else if (!worked)
            pause_shortly(); /* delayed cameras hear that there are places */
    }
    int taken = options.cameras * options.pictures;
    printf("{\"pictures\":%d,\"kept\":%d,\"lost\":%d,\"delayed\":%d,\"visitors\":%d,"
           "\"served\":%d,\"turns\":%d}\n",
           taken, all->kept, all->lost, delays, visitors, all->served, all->turns);
    return all->kept + all->lost == taken && all->served == visitors ? 0 : 1;
}

/* ---- The whole ---- */

static const char usage[] =
    "usage: cameras [--camera FILE.so --server FILE.so] [--pictures N] [--seed N] [--turn S]\n"
    "Three cameras and their server, each a process. Says as a line of JSON how many pictures of\n"
    "each camera's N were kept and lost. With the node schedulers of a cluster they are its "
    "nodes;\n"
    "without, each runs first in, first out. A turn of the server's CPU takes S seconds at least.\n"
    "example: ATTUNE_CLUSTER=cameras cameras --camera ./camera.so --server ./server.so\n";

static const char *camera_policy, *server_policy;

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        char *end;
        double number = strtod(value, &end);
        bool is_number = *value && !*end && number >= 0;
        if (!strcmp(name, "--help")) {
            fputs(usage, stdout);
            exit(0);
        }
        if (*value && !strcmp(name, "--camera"))
            camera_policy = value;
        else if (*value && !strcmp(name, "--server"))
            server_policy = value;
        else if (is_number && !strcmp(name, "--pictures") && number >= 1 && number <= 1e6)
            options.pictures = (int)number;
        else if (is_number && !strcmp(name, "--turn") && number <= 60)
            options.turn = number;
        else if (is_number && !strcmp(name, "--seed") && number < 1e15)
            options.seed = (uint64_t)number;
        else {
            fprintf(stderr, "cameras: %s %s: no such option or value\n%s", name, value, usage);
            exit(2);
        }
    }
    if (!camera_policy != !server_policy) {
        fprintf(stderr, "cameras: --camera and --server come together\n%s", usage);
        exit(2);
    }
    in_cluster = camera_policy && getenv("ATTUNE_CLUSTER");
    if (camera_policy && !in_cluster) {
        fprintf(stderr, "cameras: ATTUNE_CLUSTER must name the manager of the nodes\n%s", usage);
        exit(2);
    }
}

static pid_t start(const char *policy)
{
    pid_t process = fork();
    if (process < 0)
        fail("cameras: cannot start a process");
    if (process == 0) {
        /* It ends with the first process, however that ends. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (policy) {
            setenv("ATTUNE_SCHED", policy, 1);
        } else {
            unsetenv("ATTUNE_SCHED");
            unsetenv("ATTUNE_CLUSTER");
        }
    }
    return process;
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        fail("cameras: no memory");
    for (int i = 0; i < options.cameras; i++)
        orders[i] = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);
    arrivals = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);
    visits = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);
    turns = eventfd(0, EFD_SEMAPHORE);
    if (orders[options.cameras - 1] < 0 || arrivals < 0 || visits < 0 || turns < 0)
        fail("cameras: no descriptors");
    for (int i = 0; i <= options.cameras; i++) {
        bool is_server = i == options.cameras;
        processes[i] = start(is_server ? server_policy : camera_policy);
        if (processes[i] == 0)
            is_server ? server() : camera(&all->cameras[i]);
    }
    int status = play();
    for (int i = 0; i <= options.cameras; i++) {
        kill(processes[i], SIGKILL);
        waitpid(processes[i], NULL, 0);
    }
    return status;
}
