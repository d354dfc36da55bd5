/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's types and helpers, as far as the graph uses them. Offsets are found when the program
 * is loaded (CO-RE), so that one object fits every kernel that has these members.
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SECTION(name) __attribute__((section(name), used))
#define ALWAYS_INLINE inline __attribute__((always_inline))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct;

struct mm_struct {
    struct task_struct *owner; /* only where memory cgroups are built in */
};

struct signal_struct {
    struct {
        int counter;
    } live;
};

struct task_struct {
    unsigned int flags;
    int pid, tgid;
    u64 start_boottime;
    struct task_struct *group_leader;
    struct mm_struct *mm;
    struct signal_struct *signal;
};

#pragma clang attribute pop

#define PF_WQ_WORKER 0x00000020
#define PF_KTHREAD   0x00200000

/* Whether the running kernel's structure has the member: decided when the program is loaded. */
#define HAS_MEMBER(expression) __builtin_preserve_field_info(expression, 2)

/* Helpers, by their number in the kernel's interface. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
                                         u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static void *(*const bpf_this_cpu_ptr)(const void *variable) = (void *)154;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;

#define BPF_MAP_TYPE_HASH         1
#define BPF_MAP_TYPE_ARRAY        2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH     9
#define BPF_ANY                   0
#define BPF_NOEXIST               1

/* Members of a map's definition: a number is the length of an array that a pointer points to. */
#define MAP_NUMBER(name, value) int(*name)[value]
#define MAP_TYPE(name, value)   typeof(value) *name
