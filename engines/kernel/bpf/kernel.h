/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's types and functions, as far as the engine uses them. Offsets are found when the
 * program is loaded (CO-RE), so that one object fits every kernel that has these members.
 */
#ifndef ATTUNE_CPUS
#define ATTUNE_CPUS 1
#endif

/* Instances of the policy: see move.h. */
#ifndef ATTUNE_INSTANCES
#define ATTUNE_INSTANCES 1
#endif

#define ATTUNE_SECTION(name) __attribute__((section(name), used))
#define ATTUNE_KFUNC         extern __attribute__((section(".ksyms")))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
    unsigned long bits[64];
};

struct scx_dispatch_q;

struct sched_ext_entity {
    struct scx_dispatch_q *dsq;
    uint32_t flags;
    uint32_t weight;
    uint64_t tid;
    uint64_t slice;
    uint64_t dsq_vtime;
};

struct sched_entity {
    uint64_t sum_exec_runtime;
};

struct cred {
    struct {
        uint32_t val;
    } uid;
};

struct task_struct {
    unsigned int __state;
    unsigned int flags;
    unsigned in_iowait : 1;
    uint8_t on_rq;
    int nr_cpus_allowed;
    int static_prio;
    unsigned int policy;
    const struct cpumask *cpus_ptr;
    unsigned short migration_disabled;
    struct sched_entity se;
    struct sched_ext_entity scx;
    int pid, tgid;
    uint64_t start_boottime;
    struct task_struct *real_parent, *group_leader;
    const struct cred *real_cred;
};

/* A program that is being executed. */
struct linux_binprm {
    unsigned int secureexec : 1;
};

struct hrtimer_clock_base {
    int64_t offset;
};

struct hrtimer {
    struct hrtimer_clock_base *base;
    int64_t _softexpires;
    void *function;
};

enum scx_exit_kind { SCX_EXIT_NONE };

/* A step on a CPU's way in or out; this one's number depends on the kernel. */
enum cpuhp_state { CPUHP_AP_ACTIVE = 235 };

/* CONFIG_EXT_GROUP_SCHED. */
struct cgroup {
    int level;
};

struct scx_cgroup_init_args {
    uint32_t weight;
    uint64_t bw_period_us, bw_quota_us, bw_burst_us;
};

struct scx_init_task_args {
    _Bool fork;
    struct cgroup *cgroup;
};

struct scx_exit_info {
    enum scx_exit_kind kind;
    int64_t exit_code;
    const char *reason;
    char *msg;
};

#pragma clang attribute pop

struct scx_exit_task_args;
struct scx_cpu_acquire_args;

struct sched_ext_ops {
    int32_t (*select_cpu)(struct task_struct *task, int32_t previous, uint64_t flags);
    void (*enqueue)(struct task_struct *task, uint64_t flags);
    void (*dispatch)(int32_t cpu, struct task_struct *previous);
    void (*tick)(struct task_struct *task);
    _Bool (*yield)(struct task_struct *from, struct task_struct *to);
    void (*set_weight)(struct task_struct *task, uint32_t weight);
    void (*set_cpumask)(struct task_struct *task, const struct cpumask *mask);
    int32_t (*init_task)(struct task_struct *task, struct scx_init_task_args *args);
    void (*exit_task)(struct task_struct *task, struct scx_exit_task_args *args);
    void (*disable)(struct task_struct *task);
    int32_t (*init)(void);
    void (*exit)(struct scx_exit_info *info);
    uint64_t flags;
    uint32_t timeout_ms;
    char name[128];
    void (*update_idle)(int32_t cpu, _Bool idle);
    void (*cpu_online)(int32_t cpu);
    void (*cpu_offline)(int32_t cpu);
    /* A kernel may lack them: the loader leaves those out (src/optional.rs). */
    int32_t (*cgroup_init)(struct cgroup *cgroup, struct scx_cgroup_init_args *args);
    void (*cgroup_exit)(struct cgroup *cgroup);
    void (*cgroup_move)(struct task_struct *task, struct cgroup *from, struct cgroup *to);
    void (*cgroup_set_weight)(struct cgroup *cgroup, uint32_t weight);
    void (*cgroup_set_idle)(struct cgroup *cgroup, _Bool idle);
    void (*cgroup_set_bandwidth)(struct cgroup *cgroup, uint64_t period, uint64_t quota,
                                 uint64_t burst);
    _Bool (*core_sched_before)(struct task_struct *one, struct task_struct *other);
    void (*cpu_acquire)(int32_t cpu, struct scx_cpu_acquire_args *args);
};

#define SCX_ENQ_WAKEUP                 1ull
#define SCX_ENQ_PREEMPT                (1ull << 32)
#define SCX_KICK_IDLE                  1ull
#define SCX_KICK_PREEMPT               2ull
#define SCX_TASK_QUEUED                1u
#define SCX_DSQ_LOCAL                  0x8000000000000002ull
#define SCX_DSQ_LOCAL_ON               0xc000000000000000ull
#define SCX_SLICE_INF                  UINT64_MAX
#define SCX_OPS_KEEP_BUILTIN_IDLE      1ull
#define SCX_OPS_ENQ_LAST               2ull
#define SCX_OPS_ENQ_EXITING            4ull
#define SCX_OPS_SWITCH_PARTIAL         8ull
#define SCX_OPS_ENQ_MIGRATION_DISABLED 16ull
#define SCX_OPS_TID_TO_TASK            256ull
#define TASK_DEAD                      0x80u
#define SCHED_IDLE                     5
#define PF_EXITING                     0x00000004u
#define PF_KTHREAD                     0x00200000u

ATTUNE_KFUNC int32_t scx_bpf_create_dsq(uint64_t dsq, int32_t node);
ATTUNE_KFUNC void scx_bpf_dsq_insert(struct task_struct *task, uint64_t dsq, uint64_t slice,
                                     uint64_t flags);
ATTUNE_KFUNC void scx_bpf_dispatch_cancel(void);
ATTUNE_KFUNC _Bool scx_bpf_dsq_move_to_local(uint64_t dsq);
ATTUNE_KFUNC int32_t scx_bpf_dsq_nr_queued(uint64_t dsq);
ATTUNE_KFUNC int32_t scx_bpf_select_cpu_dfl(struct task_struct *task, int32_t previous,
                                            uint64_t flags, _Bool *idle);
ATTUNE_KFUNC _Bool scx_bpf_test_and_clear_cpu_idle(int32_t cpu);
ATTUNE_KFUNC void scx_bpf_kick_cpu(int32_t cpu, uint64_t flags);
ATTUNE_KFUNC _Bool scx_bpf_task_set_slice(struct task_struct *task, uint64_t slice);
ATTUNE_KFUNC _Bool scx_bpf_task_set_dsq_vtime(struct task_struct *task, uint64_t vtime);
ATTUNE_KFUNC struct task_struct *scx_bpf_cpu_curr(int32_t cpu);
ATTUNE_KFUNC int32_t scx_bpf_task_cpu(const struct task_struct *task);
ATTUNE_KFUNC struct task_struct *scx_bpf_tid_to_task(uint64_t tid);
ATTUNE_KFUNC void scx_bpf_error_bstr(char *text, unsigned long long *data, uint32_t data__sz);
ATTUNE_KFUNC const struct cpumask *scx_bpf_get_online_cpumask(void);
ATTUNE_KFUNC void scx_bpf_put_cpumask(const struct cpumask *mask);
ATTUNE_KFUNC _Bool bpf_cpumask_test_cpu(uint32_t cpu, const struct cpumask *mask);
ATTUNE_KFUNC struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgroup, int level)
    __attribute__((weak));
ATTUNE_KFUNC void bpf_cgroup_release(struct cgroup *cgroup) __attribute__((weak));
ATTUNE_KFUNC struct task_struct *bpf_task_from_pid(int32_t pid);
ATTUNE_KFUNC void bpf_task_release(struct task_struct *task);
ATTUNE_KFUNC void bpf_rcu_read_lock(void);
ATTUNE_KFUNC void bpf_rcu_read_unlock(void);
ATTUNE_KFUNC void bpf_local_irq_save(unsigned long *flags);
ATTUNE_KFUNC void bpf_local_irq_restore(unsigned long *flags);
ATTUNE_KFUNC void ATTUNE_ARENA *bpf_arena_alloc_pages(void *map, void ATTUNE_ARENA *address,
                                                      uint32_t pages, int node, uint64_t flags);

struct bpf_iter_num {
    uint64_t opaque[1];
} __attribute__((aligned(8)));

ATTUNE_KFUNC int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end);
ATTUNE_KFUNC int *bpf_iter_num_next(struct bpf_iter_num *it);
ATTUNE_KFUNC void bpf_iter_num_destroy(struct bpf_iter_num *it);

struct bpf_iter_task {
    uint64_t opaque[3];
} __attribute__((aligned(8)));

#define BPF_TASK_ITER_PROC_THREADS 2

ATTUNE_KFUNC int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
                                   uint32_t flags);
ATTUNE_KFUNC struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it);
ATTUNE_KFUNC void bpf_iter_task_destroy(struct bpf_iter_task *it);

struct bpf_timer {
    uint64_t opaque[2];
} __attribute__((aligned(8)));

/* Helpers, by their number in the kernel's interface. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
                                         uint64_t flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static uint64_t (*const bpf_ktime_get_ns)(void) = (void *)5;
static uint32_t (*const bpf_get_smp_processor_id)(void) = (void *)8;
static long (*const bpf_probe_read_kernel_str)(void *to, uint32_t size,
                                               const void *from) = (void *)115;
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *task, void *value,
                                           uint64_t flags) = (void *)156;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static long (*const bpf_ringbuf_output)(void *ring, void *data, uint64_t size,
                                        uint64_t flags) = (void *)130;
static void *(*const bpf_this_cpu_ptr)(const void *variable) = (void *)154;
static long (*const bpf_timer_init)(struct bpf_timer *timer, void *map,
                                    uint64_t clock) = (void *)169;
static long (*const bpf_timer_set_callback)(struct bpf_timer *timer, void *callback) = (void *)170;
static long (*const bpf_timer_start)(struct bpf_timer *timer, uint64_t at,
                                     uint64_t flags) = (void *)171;

#define BPF_MAP_TYPE_HASH              1
#define BPF_MAP_TYPE_ARRAY             2
#define BPF_MAP_TYPE_ARRAY_OF_MAPS     12
#define BPF_MAP_TYPE_RINGBUF           27
#define BPF_MAP_TYPE_TASK_STORAGE      29
#define BPF_MAP_TYPE_ARENA             33
#define BPF_F_NO_PREALLOC              1
#define BPF_F_MMAPABLE                 1024
#define BPF_F_TIMER_ABS                1
#define BPF_F_TIMER_CPU_PIN            2
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define CLOCK_MONOTONIC                1
