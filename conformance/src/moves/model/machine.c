/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Behind the engine's text: a model of the kernel that calls it, on CPUs that go on in turns, in an
 * order that a seed decides. Another CPU may go on wherever one takes or has given back a lock, so
 * every interleaving of the engine's steps under its locks is possible.
 *
 *     a CPU       a coroutine: it schedules if it must, and otherwise does to some thread what
 *                 programs do: it wakes, blocks, yields, forks, exits, changes affinity or class.
 *                 Now and then it goes, until no thread is there, and comes back later
 *     run queue   a lock for each CPU, held as in kernel/sched/ext.c: over enqueue, dispatch,
 *                 disable, exit_task
 *     a thread    sleeps; or is the engine's (the policy keeps it); or is on a CPU's own queue; or
 *                 runs. `number` grows as it comes and goes: a dispatch of an older one is void
 *
 * Now and then all CPUs only schedule until none has to. Then everything must be at rest, and
 * audit() compares what the engine keeps with what the model knows.
 *
 * Here are threads, CPUs and locks; the other files, in this order, are one text with it:
 *
 *     calls.c         what the engine calls
 *     scheduling.c    the kernel's side, which calls the engine
 *     hotplug.c       CPUs that go and come
 *     programs.c      what programs do
 *     audit.c         the machine at rest
 *     main.c          the runs
 *
 * Time is virtual: a step takes up to a microsecond, and time passes to the next timer when no CPU
 * has anything to do.
 */
/* clang-format on */
#include <stdarg.h>
#include <ucontext.h>
#include <unistd.h>

enum place { SLEEPS, ENGINES, QUEUED, RUNS };

/* A CPU that is GOING takes threads still, and pushes them to others; on one that is AWAY the
 * kernel enqueues them without a word. */
enum presence { THERE, GOING, AWAY };

struct task {
    struct task_struct it; /* first: the engine's pointer */
    struct cpumask mask;
    struct attune_slot slot;
    struct cred cred;
    struct task *next; /* on a CPU's own queue */
    uint64_t number;
    uint32_t cpu, lock;
    enum place place;
    int alive, in_class, dies, has_slot;
    int put_on; /* 1 + the CPU on whose queue the current enqueue puts it; 0: none */
    int64_t ran, runs_since;
};

struct cpu {
    ucontext_t context;
    char *stack;
    struct task *current, *first, *last;
    uint32_t lock;
    int idle, must, schedules;
    int kicked; /* while it schedules, which comes first */
    enum presence presence;
    int done;            /* with what it did last */
    struct task *chosen; /* by the dispatch under way */
    uint64_t chosen_number;
    struct handed { /* by the same, to the queues of the CPUs where they are */
        struct task *task;
        uint64_t number;
    } handed[ATTUNE_HANDED];
    uint32_t handed_count;
    struct task *enqueued; /* by the enqueue under way */
};

#define TASKS    96
#define PATIENCE 300 /* seconds */
#define STACK    (256 << 10)

static struct task tasks[TASKS];
static struct cpu cpus[ATTUNE_CPUS];
static struct task idle_task;
static ucontext_t main_context;
static uint32_t here; /* the CPU that goes on */
static uint64_t chance, loops;
static int64_t clock_now = 1000000;
static int started; /* CPUs go on; before, only `init` runs */
static int calm;    /* CPUs only schedule */
static uint64_t tids, events;
static struct {
    int64_t at;
} timers[ATTUNE_CPUS];

static void __attribute__((noreturn, format(printf, 1, 2))) broken(const char *text, ...)
{
    va_list words;
    va_start(words, text);
    printf("broken: ");
    vprintf(text, words);
    printf(" (event %llu, at %lld ns)\n", (unsigned long long)events, (long long)clock_now);
    exit(1);
}

static uint32_t below(uint32_t limit)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (uint32_t)((chance >> 11) % limit);
}

/* Another CPU goes on. */
static void let_others(void)
{
    swapcontext(&cpus[here].context, &main_context);
}

static void take(uint32_t *lock)
{
    for (uint64_t turns = 0; *lock; turns++) {
        if (turns > 10000000)
            broken("CPU %u waits for a lock without end", here);
        let_others();
    }
    *lock = 1;
}

int model_take(uint32_t *lock)
{
    loops = 0;
    if (!started) {
        *lock = 1;
        return 1;
    }
    if (!below(3))
        let_others();
    take(lock);
    return 1;
}

void model_gave(void)
{
    if (!started || below(3))
        return;
    /* sometimes long enough for much to happen meanwhile */
    for (uint32_t turns = calm || below(8) ? 1 : below(60); turns; turns--)
        let_others();
}

int model_may_loop(void)
{
    if (++loops > 10000000)
        broken("a loop has no end");
    return 1;
}
