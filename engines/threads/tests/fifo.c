/* A hand-made compiled scheduler, written against the ABI alone: first come, first served. It stands in for a
 * generated one where a test wants every handler in sight. Three containers: current, ready, blocked; blocked holds those
 * who wait or are suspended. One global import (`pressure`) and one thread import (`urgent`: goes to the front).
 *
 * -DFIFO_NAME=...    has another name
 * -DFIFO_ABI=n       claims another ABI version
 * -DFIFO_NO_SCHEDULE lacks a required handler
 * -DFIFO_TRAP        traps when a thread named by number 2 becomes ready
 * -DFIFO_LOSES       dispatches a thread that waits
 * -DFIFO_OLD         has neither set_waiting nor event_raised
 * -DFIFO_LOG         tells stderr of every handler call
 * -DFIFO_ALARM       asks for an alarm of each new thread
 */
#include <stdio.h>
#include <string.h>
#include "attune_scheduler.h"

#ifndef FIFO_ABI
#define FIFO_ABI ATTUNE_ABI
#endif

#ifndef FIFO_NAME
#define FIFO_NAME "test_fifo"
#endif

#ifdef FIFO_LOG
#define LOG(...) fprintf(stderr, __VA_ARGS__)
#else
#define LOG(...) (void)0
#endif

struct attune_container { struct attune_thread *first, *last; };

struct record { struct attune_thread head; struct attune_import urgent; int out, suspended; };

static struct attune_container current, ready, blocked;
static const struct attune_host *host;
static void *pressure;
static enum attune_width pressure_width, urgent_width;
static int64_t pressure_default = 7;
static uint64_t divisions, clamped;

static void put(struct attune_container *c, struct attune_thread *t, int front)
{
    t->where = c;
    t->prev = front ? NULL : c->last;
    t->next = front ? c->first : NULL;
    *(t->prev ? &t->prev->next : &c->first) = t;
    *(t->next ? &t->next->prev : &c->last) = t;
}

static void take(struct attune_thread *t)
{
    struct attune_container *c = t->where;
    if (!c)
        return;
    *(t->prev ? &t->prev->next : &c->first) = t->next;
    *(t->next ? &t->next->prev : &c->last) = t->prev;
    t->prev = t->next = NULL;
    t->where = NULL;
}

static void attach(const struct attune_host *h)
{
    host = h;
    memset(&current, 0, sizeof current);
    memset(&ready, 0, sizeof ready);
    memset(&blocked, 0, sizeof blocked);
}

static void thread_init(struct attune_call *call, struct attune_thread *t)
{
    (void)call;
    ((struct record *)t)->urgent = (struct attune_import){ NULL, { 5 } };
}

static void each(struct attune_container *c, int (*visit)(void *, struct attune_thread *), void *arg)
{
    for (struct attune_thread *t = c->first; t && !visit(arg, t); t = t->next) {}
}

static int is_urgent(struct attune_thread *t)
{
    struct record *r = (struct record *)t;
    return r->urgent.link && urgent_width == ATTUNE_I32 && *(int *)r->urgent.link;
}

static void enter_ready(struct attune_thread *t)
{
    take(t);
    put(&ready, t, is_urgent(t));
    if (pressure && pressure_width == ATTUNE_I64)
        ++*(int64_t *)pressure;
}

static void newthread(struct attune_call *call, struct attune_thread *t)
{
    LOG("newthread %d\n", (int)t->id);
    enter_ready(t);
#ifdef FIFO_ALARM
    host->alarm(host->engine, t, call->now + 1000000);
#else
    (void)call;
#endif
}

static void schedule(struct attune_call *call, struct attune_thread *none)
{
    (void)none;
    struct attune_thread *t = ready.first;
#ifdef FIFO_LOSES
    if (!t)
        t = blocked.first;
#endif
    LOG("schedule %d\n", t ? (int)t->id : 0);
    if (!t)
        return;
    take(t);
    put(&current, t, 0);
    call->dispatched = t;
}

static void switch_out(struct attune_call *call, struct attune_thread *t)
{
    (void)call;
    LOG("switch_out %d\n", (int)t->id);
    if (t->where != &current)
        return;
    if (((struct record *)t)->out == 2)
        return;
    take(t);
    if (((struct record *)t)->out == 1)
        put(&blocked, t, 0);
    else
        enter_ready(t);
}

static void block(struct attune_call *call, struct attune_thread *t)
{
    (void)call;
    LOG("set_waiting %d\n", (int)t->id);
    ((struct record *)t)->out = 1;
}

static void unblock(struct attune_call *call, struct attune_thread *t)
{
    (void)call;
    LOG("event_raised %d\n", (int)t->id);
    ((struct record *)t)->out = 0;
#ifdef FIFO_TRAP
    if (t->id == 2) {
        struct attune_trap trap = { 0, 12, 5, "fifo.sched", "fifo.sched:12:5: ready => current: ready is empty" };
        host->trap(host->engine, &trap);
    }
#endif
    if (!((struct record *)t)->suspended)
        enter_ready(t);
}

static void set_dead(struct attune_call *call, struct attune_thread *t)
{
    (void)call;
    LOG("set_dead %d\n", (int)t->id);
    ((struct record *)t)->out = 2;
}

static void set_next(struct attune_call *call, struct attune_thread *t)
{
    (void)call;
    LOG("set_next_thread %d\n", (int)t->id);
    take(t);
    put(&ready, t, 1);
}

static void suspend(struct attune_call *call, struct attune_thread *t)
{
    (void)call;
    LOG("suspend_thread %d\n", (int)t->id);
    ((struct record *)t)->suspended = 1;
    take(t);
    put(&blocked, t, 0);
}

static void resume(struct attune_call *call, struct attune_thread *t)
{
    (void)call;
    LOG("resume_thread %d\n", (int)t->id);
    ((struct record *)t)->suspended = 0;
    if (!((struct record *)t)->out)
        enter_ready(t);
}

static void alarmed(struct attune_call *call, struct attune_thread *t)
{
    (void)call;
    LOG("alarm %d\n", (int)t->id);
    (void)t;
}

static const struct attune_variable globals[] = {
    { "pressure", ATTUNE_INT, 1, 0, &pressure_default, 0, &pressure, &pressure_width },
    { "own", ATTUNE_INT, 0, 0, &divisions, 0, NULL, NULL },
};
static const struct attune_variable attributes[] = {
    { "urgent", ATTUNE_INT, 1, 0, NULL, offsetof(struct record, urgent), NULL, &urgent_width },
};
static const struct attune_container_info containers[] = {
    { "current", &current, 0, 0 }, { "ready", &ready, 0, 0 }, { "blocked", &blocked, 0, 0 },
};

const struct attune_scheduler attune_scheduler = {
    .abi = FIFO_ABI, .thread_size = sizeof(struct record), .name = FIFO_NAME, .file = "fifo.sched",
    .globals = globals, .global_count = 2, .attributes = attributes, .attribute_count = 1,
    .containers = containers, .container_count = 3, .cpus = 1,
    .attach = attach, .thread_init = thread_init, .thread_remove = take, .container_each = each,
    .handler = {
        [ATTUNE_NEWTHREAD] = newthread,
#ifndef FIFO_NO_SCHEDULE
        [ATTUNE_SCHEDULE] = schedule,
#endif
        [ATTUNE_SWITCH_OUT] = switch_out,
#ifndef FIFO_OLD
        [ATTUNE_EVENT_RAISED] = unblock, [ATTUNE_SET_WAITING] = block,
#endif
        [ATTUNE_SET_NEXT_THREAD] = set_next, [ATTUNE_SET_DEAD] = set_dead,
        [ATTUNE_SUSPEND_THREAD] = suspend, [ATTUNE_RESUME_THREAD] = resume, [ATTUNE_ALARM] = alarmed,
    },
    .divisions_by_zero = &divisions, .clamped = &clamped
};

/* Some variants leave handlers out. */
void *attune_unused[] = { (void *)schedule, (void *)block, (void *)unblock };
