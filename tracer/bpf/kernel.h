/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's types and helpers, as far as the tracer uses them. Offsets are found when the
 * program is loaded (CO-RE), so that one object fits every kernel that has these members: Linux
 * 5.18 and newer, for sched_switch's fourth argument.
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define ALWAYS_INLINE inline __attribute__((always_inline))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct signal_struct {
    struct {
        int counter;
    } live;
};

struct task_struct {
    int pid, tgid;
    struct signal_struct *signal;
};

struct pt_regs {
#if defined(__TARGET_ARCH_x86)
    unsigned long orig_ax;
#else
    int syscallno;
#endif
};

#pragma clang attribute pop

/* The system call that a thread is leaving. */
#if defined(__TARGET_ARCH_x86)
#define CALL_OF(regs) ((u32)(regs)->orig_ax)
#else
#define CALL_OF(regs) ((u32)(regs)->syscallno)
#endif

/* Helpers, by their number in the kernel's interface. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
                                         u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *record, u64 flags) = (void *)132;

#define BPF_MAP_TYPE_HASH    1
#define BPF_MAP_TYPE_ARRAY   2
#define BPF_MAP_TYPE_RINGBUF 27
#define BPF_ANY              0
#define BPF_RB_NO_WAKEUP     1

/* Members of a map's definition: a number is the length of an array that a pointer points to. */
#define MAP_NUMBER(name, value) int(*name)[value]
#define MAP_TYPE(name, value)   typeof(value) *name
