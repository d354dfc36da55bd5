/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Behind the engine's text: a model of the kernel that calls it, on CPUs that go on in turns, in an
 * order that a seed decides. Another CPU may go on wherever one takes or has given back a lock, so
 * every interleaving of the engine's steps under its locks is possible.
 *
 *     a CPU       a coroutine: it schedules if it must, and otherwise does to some thread what
 *                 programs do: it wakes, blocks, yields, forks, exits, changes affinity or class
 *     run queue   a lock for each CPU, held as in kernel/sched/ext.c: over enqueue, dispatch,
 *                 disable, exit_task
 *     a thread    sleeps; or is the engine's (the policy keeps it); or is on a CPU's own queue; or
 *                 runs. `number` grows as it comes and goes: a dispatch of an older one is void
 *
 * Now and then all CPUs only schedule until none has to. Then everything must be at rest, and
 * audit() compares what the engine keeps with what the model knows.
 *
 * Time is virtual: a step takes up to a microsecond, and time passes to the next timer when no CPU
 * has anything to do.
 */
/* clang-format on */
#include <stdarg.h>
#include <ucontext.h>
#include <unistd.h>

enum place { SLEEPS, ENGINES, QUEUED, RUNS };

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
    struct task *chosen; /* by the dispatch under way */
    uint64_t chosen_number;
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

/* ---- what the engine calls ---- */

uint32_t model_cpu(void) __asm__("model_helper_8");
uint32_t model_cpu(void)
{
    return here;
}

uint64_t model_time(void) __asm__("model_helper_5");
uint64_t model_time(void)
{
    return (uint64_t)clock_now;
}

static char nothing[4096];
static struct attune_timer timer_places[ATTUNE_CPUS], watch_place;

void *model_lookup(void *map, const void *key) __asm__("model_helper_1");
void *model_lookup(void *map, const void *key)
{
    if (map == (void *)&attune_timers)
        return &timer_places[*(const uint32_t *)key];
    if (map == (void *)&attune_watch_timer)
        return &watch_place;
#if ATTUNE_TABLED
    if (map == (void *)&attune_columns)
        return nothing;
#endif
    return NULL; /* no process supplies anything */
}

void *model_storage(void *map, struct task_struct *task, void *value,
                    uint64_t flags) __asm__("model_helper_156");
void *model_storage(void *map, struct task_struct *task, void *value, uint64_t flags)
{
    struct task *t = (struct task *)task;
    if (flags & BPF_LOCAL_STORAGE_GET_F_CREATE)
        t->has_slot = 1;
    return t->has_slot ? &t->slot : NULL;
}

struct task_struct *model_current(void) __asm__("model_helper_158");
struct task_struct *model_current(void)
{
    struct task *t = cpus[here].current;
    return t ? &t->it : &idle_task.it;
}

const void *model_this_cpu(const void *variable) __asm__("model_helper_154");
const void *model_this_cpu(const void *variable)
{
    return variable;
}

long model_nothing(void) __asm__("model_helper_115");
long model_nothing(void)
{
    return 0;
}
long model_output(void) __asm__("model_helper_130");
long model_output(void)
{
    return 0;
}
long model_timer_init(void) __asm__("model_helper_169");
long model_timer_init(void)
{
    return 0;
}
long model_timer_callback(void) __asm__("model_helper_170");
long model_timer_callback(void)
{
    return 0;
}

long model_timer_start(struct attune_timer *timer, uint64_t at,
                       uint64_t flags) __asm__("model_helper_171");
long model_timer_start(struct attune_timer *timer, uint64_t at, uint64_t flags)
{
    if (timer != &watch_place)
        timers[timer - timer_places].at = (int64_t)at;
    return 0;
}

int32_t scx_bpf_create_dsq(uint64_t dsq, int32_t node)
{
    return 0;
}

_Bool scx_bpf_dsq_move_to_local(uint64_t dsq)
{
    return 0;
}

int32_t scx_bpf_dsq_nr_queued(uint64_t dsq)
{
    return 0;
}

_Bool scx_bpf_test_and_clear_cpu_idle(int32_t cpu)
{
    int was = cpus[cpu].idle;
    cpus[cpu].idle = 0;
    return was;
}

/* Near before far: the last CPU, one of its cache, any. */
int32_t scx_bpf_select_cpu_dfl(struct task_struct *task, int32_t previous, uint64_t flags,
                               _Bool *found)
{
    struct task *t = (struct task *)task;
    for (int far = 0; far < 3; far++)
        for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++) {
            if (!(t->mask.bits[0] >> cpu & 1) || (far == 0 && cpu != (uint32_t)previous) ||
                (far == 1 && attune_cache_of[cpu] != attune_cache_of[previous]))
                continue;
            if (scx_bpf_test_and_clear_cpu_idle((int32_t)cpu)) {
                *found = 1;
                return (int32_t)cpu;
            }
        }
    if (t->mask.bits[0] >> previous & 1)
        return previous;
    return __builtin_ctzl(t->mask.bits[0]);
}

void scx_bpf_kick_cpu(int32_t cpu, uint64_t flags)
{
    struct cpu *it = &cpus[cpu];
    if (flags & SCX_KICK_PREEMPT && it->current)
        it->current->it.scx.slice = 0;
    if (!(flags & SCX_KICK_IDLE) || !it->current)
        it->must = 1;
}

_Bool scx_bpf_task_set_slice(struct task_struct *task, uint64_t slice)
{
    task->scx.slice = slice;
    return 1;
}

_Bool scx_bpf_task_set_dsq_vtime(struct task_struct *task, uint64_t vtime)
{
    task->scx.dsq_vtime = vtime;
    return 1;
}

struct task_struct *scx_bpf_cpu_curr(int32_t cpu)
{
    return cpus[cpu].current ? &cpus[cpu].current->it : &idle_task.it;
}

int32_t scx_bpf_task_cpu(const struct task_struct *task)
{
    return (int32_t)((const struct task *)task)->cpu;
}

struct task_struct *scx_bpf_tid_to_task(uint64_t tid)
{
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].alive && tasks[i].it.scx.tid == tid)
            return &tasks[i].it;
    return NULL;
}

void scx_bpf_error_bstr(char *text, unsigned long long *data, uint32_t size)
{
    broken("the engine gave up: about %u, check %u", attune_failure.about, attune_failure.check);
}

static struct cpumask all_online;

const struct cpumask *scx_bpf_get_online_cpumask(void)
{
    return &all_online;
}
void scx_bpf_put_cpumask(const struct cpumask *mask)
{
}
_Bool bpf_cpumask_test_cpu(uint32_t cpu, const struct cpumask *mask)
{
    return mask->bits[0] >> cpu & 1;
}
struct task_struct *bpf_task_from_pid(int32_t pid)
{
    return NULL;
}
void bpf_task_release(struct task_struct *task)
{
}
void bpf_rcu_read_lock(void)
{
}
void bpf_rcu_read_unlock(void)
{
}
void bpf_local_irq_save(unsigned long *flags)
{
}
void bpf_local_irq_restore(unsigned long *flags)
{
}
void *bpf_arena_alloc_pages(void *map, void *address, uint32_t pages, int node, uint64_t flags)
{
    return calloc(pages, 4096);
}
int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end)
{
    return 0;
}
int *bpf_iter_num_next(struct bpf_iter_num *it)
{
    return NULL;
}
void bpf_iter_num_destroy(struct bpf_iter_num *it)
{
}

/* In enqueue it counts at once; in dispatch when that ends, if the thread is still what it was. */
void scx_bpf_dsq_insert(struct task_struct *task, uint64_t dsq, uint64_t slice, uint64_t flags)
{
    struct task *t = (struct task *)task;
    struct cpu *me = &cpus[here];
    if (dsq != SCX_DSQ_LOCAL && (dsq & ~0xffffffffull) != SCX_DSQ_LOCAL_ON)
        broken("thread %d falls back", task->pid);
    if (me->enqueued == t) {
        t->put_on = 1 + (int)(dsq == SCX_DSQ_LOCAL ? here : (uint32_t)dsq);
        task->scx.slice = slice;
    } else {
        if (me->chosen)
            broken("CPU %u chooses two threads", here);
        me->chosen = t;
        me->chosen_number = t->number;
        task->scx.slice = slice;
    }
}

/* ---- the kernel's side ---- */

static void append(uint32_t cpu, struct task *t)
{
    struct cpu *it = &cpus[cpu];
    t->next = NULL;
    if (it->last)
        it->last->next = t;
    else
        it->first = t;
    it->last = t;
    t->place = QUEUED;
    t->cpu = cpu;
}

static void drop(struct task *t)
{
    struct cpu *it = &cpus[t->cpu];
    struct task *before = NULL;
    for (struct task *u = it->first; u; before = u, u = u->next) {
        if (u != t)
            continue;
        if (before)
            before->next = t->next;
        else
            it->first = t->next;
        if (it->last == t)
            it->last = before;
        return;
    }
}

static int is_allowed(const struct task *t, uint32_t cpu)
{
    return (int)(t->mask.bits[0] >> cpu & 1);
}

/* Under the lock of its CPU. The engine may put it on a CPU's own queue; that of another CPU has it
 * when this lock is given back: 1 + that CPU. */
static int enqueue(struct task *t, uint64_t flags)
{
    unsigned long long context[2] = {(uintptr_t)t, flags};
    int to;
    t->it.scx.flags |= SCX_TASK_QUEUED;
    t->it.on_rq = 1;
    t->place = ENGINES;
    t->number++;
    t->put_on = 0;
    cpus[here].enqueued = t;
    attune_enqueue(context);
    cpus[here].enqueued = NULL;
    to = t->put_on;
    t->put_on = 0;
    if (to == 1 + (int)t->cpu) {
        append(t->cpu, t);
        to = 0;
    }
    if (!cpus[t->cpu].current)
        cpus[t->cpu].must = 1;
    return to;
}

/* Without a lock: the thread that an enqueue has put on another CPU's queue. */
static void forward(struct task *t, int to, uint64_t number)
{
    uint32_t from;
    if (!to)
        return;
    from = t->cpu;
    take(&cpus[from].lock);
    if (t->place != ENGINES || t->number != number || t->cpu != from) {
        cpus[from].lock = 0;
        return;
    }
    t->it.on_rq = 2;
    cpus[from].lock = 0;
    take(&cpus[to - 1].lock);
    t->it.on_rq = 1;
    if (t->place == ENGINES && t->number == number) {
        if (!is_allowed(t, (uint32_t)to - 1))
            broken("thread %d is put on CPU %d, where it may not run", t->it.pid, to - 1);
        append((uint32_t)to - 1, t);
        if (!cpus[to - 1].current)
            cpus[to - 1].must = 1;
    }
    cpus[to - 1].lock = 0;
}

/* Under the lock of its CPU: it is runnable no more, or about to be moved. */
static void dequeue(struct task *t)
{
    if (t->place == QUEUED)
        drop(t);
    t->it.scx.flags &= ~SCX_TASK_QUEUED;
    t->number++;
}

/* The lock of the thread itself, and of the CPU where it is. */
static void take_both(struct task *t)
{
    take(&t->lock);
    for (;;) {
        uint32_t cpu = t->cpu;
        take(&cpus[cpu].lock);
        /* what moves a running thread has that thread's CPU */
        if (t->cpu == cpu && t->it.on_rq != 2 && !(t->place == RUNS && cpus[cpu].schedules))
            return;
        cpus[cpu].lock = 0;
        let_others();
    }
}

static void give_both(struct task *t)
{
    cpus[t->cpu].lock = 0;
    t->lock = 0;
}

static void end_task(struct task *t)
{
    unsigned long long context[2] = {(uintptr_t)t, 0};
    t->alive = 0;
    if (t->in_class)
        attune_disable(context);
    attune_exit_task(context);
}

/* What dispatch has chosen comes to this CPU's queue, if it is still what it was. Under the lock of
 * the CPU, which is given back for a while. */
static void bring_chosen(uint32_t cpu)
{
    struct cpu *me = &cpus[cpu];
    struct task *t = me->chosen;
    uint64_t number = me->chosen_number;
    uint32_t from;
    me->chosen = NULL;
    if (!t || !t->alive || t->number != number || t->place != ENGINES)
        return;
    from = t->cpu;
    if (from != cpu) {
        me->lock = 0;
        take(&cpus[from].lock);
        if (!t->alive || t->number != number || t->place != ENGINES || t->cpu != from) {
            cpus[from].lock = 0;
            take(&me->lock);
            return;
        }
        if (!is_allowed(t, cpu))
            broken("thread %d is dispatched on CPU %u, where it may not run", t->it.pid, cpu);
        t->it.on_rq = 2;
        t->cpu = cpu;
        cpus[from].lock = 0;
        take(&me->lock);
        t->it.on_rq = 1;
    } else if (!is_allowed(t, cpu))
        broken("thread %d is dispatched on CPU %u, where it may not run", t->it.pid, cpu);
    if (t->alive && t->number == number && t->place == ENGINES)
        append(cpu, t);
}

static void schedule(uint32_t cpu)
{
    struct cpu *me = &cpus[cpu];
    struct task *previous, *next = NULL;
    uint64_t number = 0;
    int keeps = 0, to = 0, ends;
    take(&me->lock);
    me->schedules = 1;
    previous = me->current;
    ends = previous && previous->dies;
    me->must = 0;
    for (int turns = 0; turns < 32; turns++) {
        int runnable = previous && previous->it.scx.flags & SCX_TASK_QUEUED;
        unsigned long long context[2] = {
            cpu, (uintptr_t)(previous && previous->in_class ? previous : NULL)};
        struct task *chosen;
        if (runnable && previous->it.scx.slice) {
            keeps = 1;
            break;
        }
        if (me->first)
            break;
        attune_dispatch(context);
        chosen = me->chosen;
        bring_chosen(cpu);
        if (previous && previous->it.scx.flags & SCX_TASK_QUEUED && previous->it.scx.slice) {
            keeps = 1;
            break;
        }
        if (me->first || !chosen)
            break;
    }
    if (previous && !keeps) {
        if (previous->place == RUNS) {
            previous->ran += clock_now - previous->runs_since;
            if (previous->it.scx.flags & SCX_TASK_QUEUED) {
                to = enqueue(previous, 0);
                number = previous->number;
            } else
                previous->place = SLEEPS;
        }
        me->current = NULL;
    }
    if (keeps) {
        if (!is_allowed(previous, cpu))
            broken("thread %d stays on CPU %u, where it may not run", previous->it.pid, cpu);
    } else if ((next = me->first)) {
        drop(next);
        if (!is_allowed(next, cpu))
            broken("thread %d runs on CPU %u, where it may not run", next->it.pid, cpu);
        next->place = RUNS;
        next->runs_since = clock_now;
        if (!next->it.scx.slice)
            next->it.scx.slice = 1; /* as the kernel gives one */
        me->current = next;
        me->idle = 0;
    } else {
        if (previous) {
            unsigned long long context[2] = {cpu, 1};
            attune_update_idle(context);
        }
        me->idle = 1;
    }
    me->schedules = 0;
    me->lock = 0;
    forward(previous, to, number);
    if (ends) {
        take_both(previous);
        end_task(previous);
        give_both(previous);
    }
}

/* ---- what programs do ---- */

/* One that moves between instances at this moment more often than another. */
static struct task *any(void)
{
    uint32_t first = below(TASKS);
    for (uint32_t i = below(2) ? 0 : TASKS; i < TASKS; i++) {
        struct task *t = &tasks[(first + i) % TASKS];
        struct thread *record = (struct thread *)t->slot.record;
        if (t->alive && record && record->attune_task.state == ATTUNE_MOVING)
            return t;
    }
    return &tasks[first];
}

static void wake(struct task *t)
{
    unsigned long long context[3];
    uint64_t number;
    int to = 0;
    take(&t->lock);
    /* it still leaves its CPU */
    while (t->place == RUNS && !(t->it.scx.flags & SCX_TASK_QUEUED))
        let_others();
    if (t->alive && t->in_class && t->place == SLEEPS && !t->dies) {
        context[0] = (uintptr_t)t;
        context[1] = t->cpu;
        context[2] = SCX_ENQ_WAKEUP;
        t->it.__state = 0;
        t->cpu = (uint32_t)attune_select_cpu(context);
        take(&cpus[t->cpu].lock);
        to = enqueue(t, SCX_ENQ_WAKEUP);
        number = t->number;
        cpus[t->cpu].lock = 0;
        t->lock = 0;
        forward(t, to, number);
        return;
    }
    t->lock = 0;
}

/* Any of the CPUs, a single one often. */
static unsigned long some_cpus(void)
{
    unsigned long all = ATTUNE_CPUS < 64 ? (1ul << ATTUNE_CPUS) - 1 : ~0ul, some;
    switch (below(4)) {
    case 0:
        return all;
    case 1:
        return 1ul << below(ATTUNE_CPUS);
    default:
        some = all & (((unsigned long)below(1u << 16)) | 1ul << below(ATTUNE_CPUS));
        return some;
    }
}

static int count_cpus(const struct task *t)
{
    return __builtin_popcountl(t->mask.bits[0]);
}

static void begin(struct task *t, int nice, unsigned long allowed)
{
    unsigned long long context[3] = {(uintptr_t)t, 0, 0};
    struct scx_init_task_args args = {1};
    uint64_t number = t->number;
    int to;
    take(&t->lock);
    if (t->alive || t->place != SLEEPS) {
        t->lock = 0;
        return;
    }
    memset(&t->it, 0, sizeof t->it);
    memset(&t->slot, 0, sizeof t->slot);
    t->has_slot = t->dies = 0;
    t->ran = 0;
    t->in_class = 1;
    t->it.cpus_ptr = &t->mask;
    t->it.real_cred = &t->cred;
    t->it.group_leader = t->it.real_parent = &t->it;
    t->it.pid = t->it.tgid = 1 + (int)(t - tasks);
    t->it.scx.tid = ++tids;
    t->it.static_prio = 120 + nice;
    t->mask.bits[0] = allowed;
    t->it.nr_cpus_allowed = count_cpus(t);
    t->number = number + 1;
    t->cpu = (uint32_t)__builtin_ctzl(t->mask.bits[0]);
    t->alive = 1;
    context[1] = (uintptr_t)&args;
    attune_init_task(context);
    context[1] = 0;
    attune_set_weight(context);
    context[1] = t->cpu;
    t->cpu = (uint32_t)attune_select_cpu(context);
    take(&cpus[t->cpu].lock);
    to = enqueue(t, 0);
    number = t->number;
    cpus[t->cpu].lock = 0;
    t->lock = 0;
    forward(t, to, number);
}

/* set_cpus_allowed: out of its queue, and in again. A thread that runs where it may not is moved as
 * the kernel's stopper does it. */
static void allow(struct task *t, unsigned long mask)
{
    int to = 0;
    uint64_t number;
    take_both(t);
    if (!t->alive || t->dies) {
        give_both(t);
        return;
    }
    if (t->place == RUNS) {
        t->mask.bits[0] = mask;
        t->it.nr_cpus_allowed = count_cpus(t);
        if (!is_allowed(t, t->cpu) && t->it.scx.flags & SCX_TASK_QUEUED) {
            struct cpu *it = &cpus[t->cpu];
            it->current = NULL;
            it->must = 1;
            t->ran += clock_now - t->runs_since;
            dequeue(t);
            t->it.on_rq = 2;
            t->place = ENGINES;
            it->lock = 0;
            t->cpu = (uint32_t)__builtin_ctzl(mask);
            take(&cpus[t->cpu].lock);
            to = enqueue(t, 0);
        }
    } else if (t->place == SLEEPS) {
        t->mask.bits[0] = mask;
        t->it.nr_cpus_allowed = count_cpus(t);
    } else if (t->in_class) {
        dequeue(t);
        t->place = ENGINES;
        t->mask.bits[0] = mask;
        t->it.nr_cpus_allowed = count_cpus(t);
        if (!is_allowed(t, t->cpu)) {
            t->it.on_rq = 2;
            cpus[t->cpu].lock = 0;
            t->cpu = (uint32_t)__builtin_ctzl(mask);
            take(&cpus[t->cpu].lock);
        }
        to = enqueue(t, 0);
    }
    number = t->number;
    give_both(t);
    forward(t, to, number);
}

/* Into another class, asleep or able to run, or back. */
static void change_class(struct task *t)
{
    unsigned long long context[2] = {(uintptr_t)t, 0};
    int to = 0;
    uint64_t number;
    take_both(t);
    if (!t->alive || t->dies || t->place == RUNS) {
        give_both(t);
        return;
    }
    if (t->in_class) {
        int able = t->place != SLEEPS;
        if (able)
            dequeue(t);
        attune_disable(context);
        t->in_class = 0;
        t->place = SLEEPS;
        t->it.on_rq = able;
    } else {
        t->in_class = 1;
        attune_set_weight(context);
        if (t->it.on_rq)
            to = enqueue(t, 0);
    }
    number = t->number;
    give_both(t);
    forward(t, to, number);
}

/* A thread ends wherever it is, as when its fork is taken back. */
static void vanish(struct task *t)
{
    take_both(t);
    if (t->alive && !t->dies && t->place != RUNS) {
        if (t->place != SLEEPS)
            dequeue(t);
        t->place = SLEEPS;
        t->it.on_rq = 0;
        end_task(t);
    }
    give_both(t);
}

static void block(uint32_t cpu, int dies)
{
    struct task *t;
    take(&cpus[cpu].lock);
    t = cpus[cpu].current;
    if (t && t->place == RUNS && t->it.scx.flags & SCX_TASK_QUEUED) {
        t->dies = dies;
        t->it.__state = dies ? TASK_DEAD : 1;
        t->it.scx.flags &= ~SCX_TASK_QUEUED;
        t->it.on_rq = 0;
        t->number++;
        cpus[cpu].must = 1;
    }
    cpus[cpu].lock = 0;
}

static void yield(uint32_t cpu)
{
    unsigned long long context[2] = {0, 0};
    take(&cpus[cpu].lock);
    if (cpus[cpu].current && cpus[cpu].current->it.scx.flags & SCX_TASK_QUEUED) {
        context[0] = (uintptr_t)cpus[cpu].current;
        attune_yield(context);
        cpus[cpu].must = 1;
    }
    cpus[cpu].lock = 0;
}

static void act(uint32_t cpu)
{
    struct task *t = any();
    events++;
    switch (below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        wake(t);
        break;
    case 4:
    case 5:
    case 6:
        block(cpu, 0);
        break;
    case 7:
        yield(cpu);
        break;
    case 8:
    case 9:
        begin(t, (int)below(8) - 2, some_cpus());
        break;
    case 10:
        block(cpu, !below(2));
        break;
    case 11:
    case 12:
    case 13:
        allow(t, some_cpus());
        break;
    case 14:
        change_class(t);
        break;
    case 15:
        if (!below(4))
            vanish(t);
        break;
    }
}

/* Threads that are to begin, and their nice values. */
static int beginners;
static const int *beginner_nices;

static void live(uint32_t cpu)
{
    for (;;) {
        struct cpu *me = &cpus[cpu];
        if (timers[cpu].at && timers[cpu].at <= clock_now) {
            uint32_t key = cpu;
            timers[cpu].at = 0;
            attune_fires(NULL, &key, &timer_places[cpu]);
        }
        if (me->must)
            schedule(cpu);
        else if (beginners && cpu == 0) {
            begin(&tasks[beginners - 1], beginner_nices[beginners - 1], all_online.bits[0]);
            beginners--;
        } else if (!calm)
            act(cpu);
        let_others();
    }
}

static void live_from(int low)
{
    live((uint32_t)low);
}

static void step(uint32_t cpu)
{
    here = cpu;
    swapcontext(&main_context, &cpus[cpu].context);
}

/* Whether a CPU must schedule or holds a lock. */
static int is_busy(void)
{
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
        if (cpus[cpu].must || cpus[cpu].lock || (timers[cpu].at && timers[cpu].at <= clock_now))
            return 1;
    for (int i = 0; i < TASKS; i++)
        if (tasks[i].lock || tasks[i].it.on_rq == 2)
            return 1;
    return 0;
}

/* Everybody goes on until nobody has anything to do. */
static void settle(void)
{
    int quiet = 0;
    calm = 1;
    for (uint64_t turns = 0; quiet < 2; turns++) {
        if (turns > 100000)
            broken("the machine does not come to rest");
        for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
            step(cpu);
        quiet = is_busy() ? 0 : quiet + 1;
    }
    calm = 0;
}

/* At rest: the engine's books are right, and no CPU idles beside a thread that it could run. */
static void audit(void)
{
    int64_t lags = 0, all_lags = 0, loads[ATTUNE_INSTANCES] = {0};
    uint64_t ready[ATTUNE_INSTANCES] = {0};
    for (int i = 0; i < TASKS; i++) {
        struct task *task = &tasks[i];
        struct thread *t = (struct thread *)task->slot.record;
        enum attune_state expected;
        if (!task->alive || !t)
            continue;
        expected = !task->in_class || t->attune_task.state == ATTUNE_UNKNOWN ? ATTUNE_UNKNOWN
                   : task->place == RUNS                                     ? ATTUNE_RUNNING
                   : task->place == ENGINES                                  ? ATTUNE_READY
                                                                             : ATTUNE_WAITING;
        if (task->place == QUEUED)
            broken("thread %d is left on a CPU's queue", task->it.pid);
        if (t->attune_task.state != expected ||
            (expected == ATTUNE_UNKNOWN && task->in_class && task->place != SLEEPS))
            broken("thread %d is %d to the engine, %d expected", task->it.pid, t->attune_task.state,
                   expected);
        if (expected == ATTUNE_UNKNOWN)
            continue;
        if (!t->attune.where)
            broken("thread %d sits in no container", task->it.pid);
        if ((char *)t->attune.where < (char *)&attune_instances[t->attune_task.instance] ||
            (char *)t->attune.where >= (char *)&attune_instances[t->attune_task.instance + 1])
            broken("thread %d sits in another instance", task->it.pid);
        lags += t->attune_task.account.lag;
        loads[t->attune_task.instance] += t->attune_task.account.load;
        if (!t->attune_task.account.load == (expected != ATTUNE_WAITING))
            broken("thread %d has a wrong load", task->it.pid);
        if (expected == ATTUNE_RUNNING &&
            (attune_cpus[task->cpu].running != t ||
             attune_cpus[task->cpu].instance != t->attune_task.instance))
            broken("thread %d runs on CPU %u, the engine knows nothing of it", task->it.pid,
                   task->cpu);
        if (expected != ATTUNE_READY)
            continue;
        ready[t->attune_task.instance]++;
        if (attune_allowed_in(t, t->attune_task.instance) >= ATTUNE_CPUS)
            broken("thread %d is ready where it may not run", task->it.pid);
        for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
            if (!cpus[cpu].current && is_allowed(task, cpu))
                broken("CPU %u idles beside thread %d", cpu, task->it.pid);
    }
    for (uint32_t i = 0; i < ATTUNE_INSTANCES; i++) {
        uint64_t listed = 0;
        struct thread *last = NULL;
        for (struct thread *t = attune_lists[i].first; t; t = t->attune_task.ready_behind) {
            if (t->attune_task.ready_before != last || t->attune_task.instance != i)
                broken("the list of instance %u is not one", i);
            if (last && last->attune_task.ready_since > t->attune_task.ready_since)
                broken("the list of instance %u has no order", i);
            last = t;
            listed++;
        }
        if (listed != ready[i] || attune_domains[i][0].ready != ready[i])
            broken("instance %u has %llu ready threads, lists %llu and counts %llu", i,
                   (unsigned long long)ready[i], (unsigned long long)listed,
                   (unsigned long long)attune_domains[i][0].ready);
        if (attune_books[i].load != loads[i])
            broken("instance %u has load %lld, its threads %lld", i,
                   (long long)attune_books[i].load, (long long)loads[i]);
        all_lags += attune_books[i].lags;
    }
    if (lags != all_lags)
        broken("lags add up to %lld, the books say %lld", (long long)lags, (long long)all_lags);
}

static void start(uint64_t seed, uint32_t per_cache)
{
    chance = seed * 2 + 1;
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++) {
        struct cpu *it = &cpus[cpu];
        attune_cache_of[cpu] = cpu / per_cache;
        attune_instance_of[cpu] = cpu * ATTUNE_INSTANCES / ATTUNE_CPUS;
        all_online.bits[0] |= 1ul << cpu;
        it->stack = malloc(STACK);
        it->idle = 1;
        getcontext(&it->context);
        it->context.uc_stack.ss_sp = it->stack;
        it->context.uc_stack.ss_size = STACK;
        makecontext(&it->context, (void (*)(void))live_from, 1, (int)cpu);
    }
    attune_cpu_count = ATTUNE_CPUS;
    attune_seed = seed;
    for (int i = 0; i < TASKS; i++)
        tasks[i].mask.bits[0] = all_online.bits[0];
}

static void init(void)
{
    unsigned long long context[1] = {0};
    if (attune_init(context))
        broken("init refuses");
}

/* So many random events. */
static void storm(uint64_t count)
{
    uint64_t next = 0;
    while (events < count) {
        step(below(ATTUNE_CPUS));
        /* now and then there is time for lags */
        clock_now += below(8) ? below(1000) : below(events / 1000 % 2 ? 40000000 : 2000000);
        if (events >= next) {
            settle();
            audit();
            next = events + 20 + below(200);
        }
    }
    printf("%llu events, %llu moves, %llu of them pulled, %llu for balance\n",
           (unsigned long long)events, (unsigned long long)attune_statistics.moves,
           (unsigned long long)attune_statistics.pulls,
           (unsigned long long)attune_statistics.balanced);
}

#define TICK 4000000ll

/* Time passes to the next timer or tick. */
static void pass(void)
{
    int64_t next = clock_now - clock_now % TICK + TICK;
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
        if (timers[cpu].at && timers[cpu].at < next)
            next = timers[cpu].at;
    clock_now = next > clock_now ? next : clock_now;
    for (uint32_t cpu = 0; next % TICK == 0 && cpu < ATTUNE_CPUS; cpu++) {
        unsigned long long context[1] = {(uintptr_t)cpus[cpu].current};
        here = cpu;
        if (!context[0])
            continue;
        attune_tick(context);
        cpus[cpu].must |= !cpus[cpu].current->it.scx.slice;
    }
}

/* What each thread should have of all CPUs: by weight, none more than one CPU. */
static void divide(const int *nices, int count, double *due)
{
    double left = ATTUNE_CPUS, weights = 0;
    int sated[TASKS] = {0};
    for (int i = 0; i < count; i++)
        weights += attune_weights[nices[i] - ATTUNE_NICEST];
    for (int again = 1; again;) {
        again = 0;
        for (int i = 0; i < count; i++) {
            double weight = attune_weights[nices[i] - ATTUNE_NICEST];
            if (!sated[i] && left * weight > weights) {
                sated[i] = again = 1;
                due[i] = 1;
                left -= 1;
                weights -= weight;
            }
        }
    }
    for (int i = 0; i < count; i++)
        if (!sated[i])
            due[i] = left * attune_weights[nices[i] - ATTUNE_NICEST] / weights;
}

/* Threads that compute, of these nice values, for so many seconds: the worst part by which one is
 * off what it should have had, in per cent. */
static void share(int seconds, char **words, int count)
{
    int nices[TASKS];
    double due[TASKS], worst = 0;
    int64_t begins = clock_now, ends = begins + seconds * 1000000000ll;
    for (int i = 0; i < count; i++)
        nices[i] = atoi(words[i]);
    divide(nices, count, due);
    calm = 1;
    /* they all begin on the first CPU's coroutine, as children of one shell */
    beginners = count;
    beginner_nices = nices;
    while (clock_now < ends) {
        for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
            step(cpu);
        if (!is_busy() && !beginners)
            pass();
        else
            clock_now += 500;
    }
    for (int i = 0; i < count; i++) {
        struct task *t = &tasks[i];
        int64_t ran = t->ran + (t->place == RUNS ? clock_now - t->runs_since : 0);
        double off = ((double)ran / (double)(clock_now - begins) / due[i] - 1) * 100;
        if (off < 0)
            off = -off;
        worst = off > worst ? off : worst;
    }
    printf("%.2f %% off, %llu moves, %llu for balance\n", worst,
           (unsigned long long)attune_statistics.moves,
           (unsigned long long)attune_statistics.balanced);
}

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(PATIENCE); /* a mistake may make it run without end */
    start(strtoull(words[2], NULL, 10), (uint32_t)atoi(words[4]));
    init();
    started = 1;
    if (!strcmp(words[1], "storm"))
        storm(strtoull(words[3], NULL, 10));
    else
        share(atoi(words[3]), words + 5, count - 5);
    return 0;
}
