/* SPDX-License-Identifier: GPL-2.0 */
/* Counts which process wakes which, and hands ratings on at once.
 *
 * A process is told apart by its number and its start (`identity`), one identity for all threads
 * of an address space. User space empties `edges` each second and keeps the ratings of `ratings`
 * up to date. Between two seconds, a rated process that wakes an unrated one gives it its input
 * rating, a process that wakes one whose output is rated gets that, and a child starts with the
 * ratings of its parent: such rows name the giver, and user space takes them over.
 *
 * Two corrections make an edge mean what it says:
 *  - Work that a process queues (a pseudo-terminal's, say) is done by a kernel worker: its wake-ups
 *    are the process's, from the moment the work starts until it ends.
 *  - An interrupt's wake-ups are not those of the thread that it interrupts.
 *
 * All maps are bounded. A wake-up for which there is no room is counted in `lost`.
 */
#include "kernel.h"

#include "depth.h"
#include "interrupt.h"

char LICENSE[] SECTION("license") = "GPL";

struct pair {
    u64 from, to; /* identities */
};

/* How a row came to be. */
enum how {
    BY_READER, /* user space wrote it */
    BY_WAKE,
    BY_FORK,
};

/* Ratings in thousandths of the ceiling. A row of a table by process (values/src/table.rs): engines
 * read its first two words; the others are ours. */
struct row {
    s64 input, output;
    u64 from; /* identity of the process that handed them on */
    u64 at;   /* ns, CLOCK_MONOTONIC */
    u32 how;
    u32 hub; /* its ratings go no further */
    u64 unused[3];
};

struct edge {
    u64 wakes;
    u64 seen; /* changes of ratings, as its last wake-up found them */
};

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
    MAP_NUMBER(max_entries, 16384);
    MAP_TYPE(key, struct pair);
    MAP_TYPE(value, struct edge);
} edges SECTION(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
    MAP_NUMBER(max_entries, 8192);
    MAP_TYPE(key, u64);
    MAP_TYPE(value, struct row);
} ratings SECTION(".maps");

/* How often user space has changed `ratings`, which says so after it did. */
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u64);
} published SECTION(".maps");

/* How often the kernel has. */
u64 handed = 0;

/* The process that queued a piece of work, by the work's address; 0: an interrupt did. */
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_LRU_HASH);
    MAP_NUMBER(max_entries, 4096);
    MAP_TYPE(key, u64);
    MAP_TYPE(value, u64);
} queued SECTION(".maps");

/* The process for which a kernel worker works now. */
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
    MAP_NUMBER(max_entries, 2048);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u64);
} working SECTION(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u64);
} lost SECTION(".maps");

/* As /proc tells a start: hundredths of a second. */
#define TICK     10000000
#define PID_BITS 22

static ALWAYS_INLINE u64 identity_of(struct task_struct *task)
{
    struct task_struct *leader = task->group_leader;
    return (leader->start_boottime / TICK) << PID_BITS | (u32)task->tgid;
}

/* The process that owns the task's address space; 0 for a kernel thread. */
static ALWAYS_INLINE u64 identity(struct task_struct *task)
{
    struct mm_struct *mm = task->mm;
    if (!mm || task->flags & PF_KTHREAD)
        return 0;
    if (HAS_MEMBER(mm->owner)) {
        struct task_struct *owner = mm->owner;
        if (owner)
            return identity_of(owner);
    }
    return identity_of(task);
}

/* How a program learns that it runs inside an interrupt: two programs differ in that alone, and
 * user space loads the one that the kernel takes. */
enum interrupts {
    BY_KERNEL, /* linux/bpf/c/interrupt.h */
    COUNTED,   /* depth.h */
};

/* The process on whose behalf this CPU works now; 0 where there is none. */
static ALWAYS_INLINE u64 origin(struct task_struct *current, enum interrupts interrupts)
{
    if (interrupts == COUNTED ? in_counted_interrupt() : attune_in_interrupt())
        return 0;
    if (current->flags & PF_WQ_WORKER) {
        u32 worker = current->pid;
        u64 *process = bpf_map_lookup_elem(&working, &worker);
        return process ? *process : 0;
    }
    return identity(current);
}

/* How often ratings have changed since the start. */
static ALWAYS_INLINE u64 changes(void)
{
    u32 zero = 0;
    u64 *by_user = bpf_map_lookup_elem(&published, &zero);
    return handed + (by_user ? *by_user : 0);
}

/* 1 if ratings may have to be handed on: they have changed since the pair's last wake-up. */
static ALWAYS_INLINE int count(u64 from, u64 to)
{
    struct pair pair = {.from = from, .to = to};
    struct edge *edge = bpf_map_lookup_elem(&edges, &pair);
    struct edge fresh = {.wakes = 1, .seen = changes()};
    u32 zero = 0;
    u64 *missed;
    if (edge) {
        int changed = edge->seen != fresh.seen;
        __sync_fetch_and_add(&edge->wakes, 1);
        edge->seen = fresh.seen;
        return changed;
    }
    if (!bpf_map_update_elem(&edges, &pair, &fresh, BPF_NOEXIST))
        return 1;
    missed = bpf_map_lookup_elem(&lost, &zero);
    /* Another CPU may have made the same edge meanwhile: that one wake-up is not counted either. */
    if (missed)
        ++*missed;
    return 1;
}

/* A rating of at least a tenth of the ceiling is handed on. */
#define ENOUGH 100

static ALWAYS_INLINE void hand(u64 from, u64 to, s64 input, s64 output, u32 how)
{
    struct row row = {
        .input = input, .output = output, .from = from, .at = bpf_ktime_get_ns(), .how = how};
    /* If there is no room, user space rates the process at the end of the second. */
    if (!bpf_map_update_elem(&ratings, &to, &row, BPF_NOEXIST))
        __sync_fetch_and_add(&handed, 1);
}

static ALWAYS_INLINE void hand_on(u64 from, u64 to)
{
    struct row *waker = bpf_map_lookup_elem(&ratings, &from);
    struct row *woken = bpf_map_lookup_elem(&ratings, &to);
    if (waker && !woken && !waker->hub && waker->input >= ENOUGH)
        hand(from, to, waker->input, 0, BY_WAKE);
    else if (woken && !waker && !woken->hub && woken->output >= ENOUGH)
        hand(to, from, 0, woken->output, BY_WAKE);
}

/* Runs where the waker is, before the woken thread can run. */
static ALWAYS_INLINE int wakes(u64 *arguments, enum interrupts interrupts)
{
    struct task_struct *woken = (void *)arguments[0];
    struct task_struct *current = bpf_get_current_task_btf();
    u64 from, to;
    if (current->mm && current->mm == woken->mm)
        return 0; /* one address space */
    from = origin(current, interrupts);
    if (!from)
        return 0;
    to = identity(woken);
    if (!to || from == to)
        return 0;
    if (count(from, to))
        hand_on(from, to);
    return 0;
}

SECTION("tp_btf/sched_waking") int thread_wakes(u64 *arguments)
{
    return wakes(arguments, BY_KERNEL);
}

SECTION("tp_btf/sched_waking") int thread_wakes_counted(u64 *arguments)
{
    return wakes(arguments, COUNTED);
}

/* Arguments: CPU, queue, work. */
static ALWAYS_INLINE int queues(u64 *arguments, enum interrupts interrupts)
{
    u64 work = arguments[2];
    u64 process = origin(bpf_get_current_task_btf(), interrupts);
    bpf_map_update_elem(&queued, &work, &process, BPF_ANY);
    return 0;
}

SECTION("tp_btf/workqueue_queue_work") int work_is_queued(u64 *arguments)
{
    return queues(arguments, BY_KERNEL);
}

SECTION("tp_btf/workqueue_queue_work") int work_is_queued_counted(u64 *arguments)
{
    return queues(arguments, COUNTED);
}

SECTION("tp_btf/workqueue_execute_start")
int work_starts(u64 *arguments)
{
    u64 work = arguments[0];
    u64 *process = bpf_map_lookup_elem(&queued, &work);
    if (process && *process) {
        u64 value = *process;
        u32 worker = bpf_get_current_task_btf()->pid;
        bpf_map_update_elem(&working, &worker, &value, BPF_ANY);
    }
    return 0;
}

SECTION("tp_btf/workqueue_execute_end")
int work_ends(u64 *arguments)
{
    u32 worker = bpf_get_current_task_btf()->pid;
    bpf_map_delete_elem(&working, &worker);
    return 0;
}

/* Arguments: parent, child. */
SECTION("tp_btf/sched_process_fork")
int task_begins(u64 *arguments)
{
    struct task_struct *parent = (void *)arguments[0], *child = (void *)arguments[1];
    struct row *row;
    u64 from, to;
    if (parent->tgid == child->tgid)
        return 0;
    from = identity(parent);
    if (!from)
        return 0;
    row = bpf_map_lookup_elem(&ratings, &from);
    if (!row || row->hub)
        return 0;
    /* As long as it shares the parent's memory, vfork's child counts as the parent. */
    to = identity_of(child);
    hand(from, to, row->input, row->output, BY_FORK);
    return 0;
}

SECTION("tp_btf/sched_process_exit")
int task_ends(u64 *arguments)
{
    struct task_struct *task = (void *)arguments[0];
    u64 process;
    if (task->signal->live.counter)
        return 0;
    process = identity_of(task);
    bpf_map_delete_elem(&ratings, &process);
    return 0;
}
