/* Threads with a nice value that a policy forgets, and which do not hold still: `strays THREADS
 * ROUNDS`.
 *
 * In each of its rounds a thread computes, sleeps, goes to the other CPU, has a class of its own
 * for a moment, and makes a thread that ends at once. The main thread moves them between CPUs, and
 * takes their class away and gives it back, whatever they do. The program prints a line when all
 * have ended; then it kills a process of such threads.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, FORGOTTEN = 5, STEPS = 200000 };

static int rounds;
static volatile int left;
static volatile pid_t numbers[MOST];

static void go_to(pid_t thread, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
    sched_setaffinity(thread, sizeof set, &set);
}

static void take_class(pid_t thread, int class)
{
    struct sched_param of = {.sched_priority = class == SCHED_FIFO};
    sched_setscheduler(thread, class, &of);
}

static void compute(void)
{
    for (volatile int step = 0; step < STEPS; step++)
        ;
}

static void *end(void *argument)
{
    return argument;
}

static void *stray(void *argument)
{
    int number = (int)(long)argument;
    setpriority(PRIO_PROCESS, gettid(), FORGOTTEN);
    numbers[number] = gettid();
    for (int round = 0; round < rounds; round++) {
        pthread_t other;
        compute();
        usleep(1000);
        go_to(0, round + number);
        take_class(0, SCHED_FIFO);
        compute();
        take_class(0, SCHED_OTHER);
        if (!pthread_create(&other, NULL, end, NULL))
            pthread_join(other, NULL);
    }
    numbers[number] = 0;
    __atomic_fetch_sub(&left, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void start(int threads)
{
    pthread_t ignored;
    left = threads;
    for (long i = 0; i < threads; i++)
        if (pthread_create(&ignored, NULL, stray, (void *)i))
            exit(2);
}

/* Moves them, and takes each out of its class and back, while the policy has forgotten it. */
static void disturb(int threads)
{
    for (int turn = 0; left; turn++) {
        pid_t thread = numbers[turn % threads];
        if (thread)
            go_to(thread, turn / threads);
        usleep(30000);
        if (thread && turn % 41 == 40) {
            take_class(thread, SCHED_FIFO);
            take_class(thread, SCHED_OTHER);
        }
    }
}

int main(int words, char **word)
{
    int threads = words > 2 ? atoi(word[1]) : 0, status;
    pid_t child;
    if (threads < 1 || threads > MOST)
        return 2;
    rounds = atoi(word[2]);
    start(threads);
    disturb(threads);
    printf("strays: all %d have ended\n", threads);
    fflush(stdout);
    child = fork();
    if (!child) {
        rounds = 1 << 30;
        start(threads);
        disturb(threads);
    }
    usleep(1000000);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    printf("strays: the others were killed\n");
    return 0;
}
