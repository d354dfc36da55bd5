/* SPDX-License-Identifier: GPL-2.0 */
/* Stamps the events of selected processes into a ring that user space drains now and then.
 *
 * For a process that is not selected it does one look into a hash table. Records are
 * submitted without waking the reader, which comes by itself every few milliseconds: so they travel
 * in batches. A record that finds the ring full is counted in `lost` and dropped; the traced
 * program never waits.
 *
 * A job is what a thread does between two times that it blocks. Its CPU time is summed over the
 * switches and told when the thread blocks.
 */
#include "kernel.h"

char LICENSE[] SECTION("license") = "GPL";

enum kind {
    KIND_ENTER, /* of a system call */
    KIND_EXIT,  /* of a system call */
    KIND_WAKE,  /* the thread became runnable */
    KIND_BLOCK, /* the thread stopped being runnable; cpu_ns is its job's */
    KIND_START, /* a thread or process began */
    KIND_END,   /* a thread ended */
};

struct record {
    u64 time;   /* ns, CLOCK_MONOTONIC */
    u64 cpu_ns; /* of a finished job; 0 when its beginning was not seen */
    u32 thread, process;
    u32 call; /* number of the system call */
    u32 kind;
};

struct job {
    u64 since; /* when it was last given a CPU; 0 when it has none */
    u64 used;  /* ns before that */
    u32 whole; /* its beginning was seen */
    u32 padding;
};

/* What is done with a process, bits. */
#define TRACED   1
#define CHILDREN 2

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
    MAP_NUMBER(max_entries, 8192);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u32);
} processes SECTION(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
    MAP_NUMBER(max_entries, 8192);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u32);
} threads SECTION(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
    MAP_NUMBER(max_entries, 1024);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u32);
} calls SECTION(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
    MAP_NUMBER(max_entries, 16384);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, struct job);
} jobs SECTION(".maps");

/* Its size is set when it is loaded. */
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_RINGBUF);
    MAP_NUMBER(max_entries, 1 << 22);
} ring SECTION(".maps");

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, u32);
    MAP_TYPE(value, u64);
} lost SECTION(".maps");

/* Whether `threads` and `calls` restrict anything: set before loading, so that the verifier removes
 * what is not asked for. */
const volatile u32 only_threads = 0;
const volatile u32 only_calls = 0;

static ALWAYS_INLINE u32 *selection(u32 process)
{
    return bpf_map_lookup_elem(&processes, &process);
}

static ALWAYS_INLINE int is_traced(u32 process, u32 thread)
{
    u32 *flags = selection(process);
    if (!flags || !(*flags & TRACED))
        return 0;
    return !only_threads || bpf_map_lookup_elem(&threads, &thread);
}

static ALWAYS_INLINE void tell(u64 time, u32 kind, u32 process, u32 thread, u32 call, u64 cpu_ns)
{
    struct record *record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
    if (!record) {
        u32 zero = 0;
        u64 *count = bpf_map_lookup_elem(&lost, &zero);
        if (count)
            __sync_fetch_and_add(count, 1);
        return;
    }
    record->time = time;
    record->cpu_ns = cpu_ns;
    record->thread = thread;
    record->process = process;
    record->call = call;
    record->kind = kind;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static ALWAYS_INLINE void tell_call(u32 kind, u32 call)
{
    u64 id = bpf_get_current_pid_tgid();
    if (!is_traced(id >> 32, (u32)id))
        return;
    if (only_calls && !bpf_map_lookup_elem(&calls, &call))
        return;
    tell(bpf_ktime_get_ns(), kind, id >> 32, (u32)id, call, 0);
}

SECTION("tp_btf/sys_enter")
int call_enter(u64 *arguments)
{
    tell_call(KIND_ENTER, (u32)arguments[1]);
    return 0;
}

SECTION("tp_btf/sys_exit")
int call_exit(u64 *arguments)
{
    struct pt_regs *registers = (void *)arguments[0];
    tell_call(KIND_EXIT, CALL_OF(registers));
    return 0;
}

/* Runs where the waker is, before the woken thread can run. */
SECTION("tp_btf/sched_waking")
int thread_wakes(u64 *arguments)
{
    struct task_struct *task = (void *)arguments[0];
    u32 thread = task->pid, process = task->tgid;
    if (is_traced(process, thread))
        tell(bpf_ktime_get_ns(), KIND_WAKE, process, thread, 0, 0);
    return 0;
}

static ALWAYS_INLINE void leave(u32 process, u32 thread, u64 now, u32 state)
{
    struct job *job = bpf_map_lookup_elem(&jobs, &thread);
    u64 used = 0;
    if (job) {
        if (job->since)
            job->used += now - job->since;
        job->since = 0;
        if (state) {
            used = job->whole ? job->used : 0;
            job->used = 0;
            job->whole = 1;
        }
    }
    if (state)
        tell(now, KIND_BLOCK, process, thread, 0, used);
}

static ALWAYS_INLINE void arrive(u32 thread, u64 now)
{
    struct job *job = bpf_map_lookup_elem(&jobs, &thread);
    if (job) {
        job->since = now;
    } else {
        struct job fresh = {.since = now};
        bpf_map_update_elem(&jobs, &thread, &fresh, BPF_ANY);
    }
}

/* Arguments: preempted, previous, next, previous' state (0: it is still runnable). */
SECTION("tp_btf/sched_switch")
int cpu_switches(u64 *arguments)
{
    struct task_struct *previous = (void *)arguments[1], *next = (void *)arguments[2];
    u32 state = (u32)arguments[3];
    u64 now = bpf_ktime_get_ns();
    if (arguments[0] & 1)
        state = 0;
    if (is_traced(previous->tgid, previous->pid))
        leave(previous->tgid, previous->pid, now, state);
    if (is_traced(next->tgid, next->pid))
        arrive(next->pid, now);
    return 0;
}

SECTION("tp_btf/sched_process_fork")
int task_begins(u64 *arguments)
{
    struct task_struct *parent = (void *)arguments[0], *child = (void *)arguments[1];
    u32 process = child->tgid;
    u32 *flags = selection(parent->tgid);
    if (!flags)
        return 0;
    if (process != (u32)parent->tgid) {
        u32 inherited = TRACED | CHILDREN;
        if (!(*flags & CHILDREN))
            return 0;
        bpf_map_update_elem(&processes, &process, &inherited, BPF_ANY);
    }
    if (is_traced(process, child->pid))
        tell(bpf_ktime_get_ns(), KIND_START, process, child->pid, 0, 0);
    return 0;
}

SECTION("tp_btf/sched_process_exit")
int task_ends(u64 *arguments)
{
    struct task_struct *task = (void *)arguments[0];
    u32 thread = task->pid, process = task->tgid;
    if (!selection(process))
        return 0;
    bpf_map_delete_elem(&jobs, &thread);
    if (is_traced(process, thread))
        tell(bpf_ktime_get_ns(), KIND_END, process, thread, 0, 0);
    /* Its number may soon be another thread's. */
    if (!task->signal->live.counter)
        bpf_map_delete_elem(&processes, &process);
    return 0;
}
