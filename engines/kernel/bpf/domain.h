/* SPDX-License-Identifier: GPL-2.0 */
/* clang-format off
 *
 * Which policy a thread follows, where several share the machine. Each is a domain: the first ones
 * are those of commands, the one that came first before all others; the last one has all other
 * threads.
 *
 *     number    a command's threads have the number of its run, which no other run ever has; 0: a
 *               thread is of no command. Children have their parent's, whatever adopts them later
 *     runs      domain -> the number of its run. A thread whose run is not here, because it is over
 *               or came later, is one of the others
 *
 * Numbers outlive the program: programs that follow each other share the map of them, so that a
 * thread keeps its policy while runs come and go (docs/internals/joining.md).
 *
 * Invariant: a thread's number never changes, so neither does its domain in one program.
 */
/* clang-format on */

/* Where some expression differs by policy: `visit` writes the case of one (target/kernel/mod.rs).
 */
#define ATTUNE_IN_DOMAIN(domain, visit, ...)       \
    do {                                           \
        switch (domain) {                          \
            ATTUNE_EACH_DOMAIN(visit, __VA_ARGS__) \
        }                                          \
    } while (0)

/* A bit for each policy of which that holds, such as HAS_ALARM. */
#define ATTUNE_WHICH_ONE(of, ROLE, ending, what) | ATTUNE_##ROLE##what << of
#define ATTUNE_WHICH(what)                       (0 ATTUNE_EACH_DOMAIN(ATTUNE_WHICH_ONE, what))

#if ATTUNE_DOMAINS > 1
#define ATTUNE_OTHERS (ATTUNE_DOMAINS - 1)

/* Room for the domains, such that a mask keeps an index inside. */
#if ATTUNE_DOMAINS > 4
#define ATTUNE_DOMAIN_ROOM 8
#elif ATTUNE_DOMAINS > 2
#define ATTUNE_DOMAIN_ROOM 4
#else
#define ATTUNE_DOMAIN_ROOM 2
#endif
_Static_assert(ATTUNE_DOMAINS <= ATTUNE_DOMAIN_ROOM, "too many policies");

#define attune_domain_index(number) ((number) & (ATTUNE_DOMAIN_ROOM - 1))

static inline uint32_t attune_domain_of(const struct attune_thread ATTUNE_ARENA *t)
{
    return attune_domain_index(attune_task(t)->domain);
}

/* Set by the loader: 0 behind those of commands. */
const volatile uint32_t attune_runs[ATTUNE_DOMAIN_ROOM] = {0};

struct attune_member {
    /* its own, and what its children have from now on; 0: the same */
    uint32_t number, heirs;
};

struct {
    int (*type)[BPF_MAP_TYPE_TASK_STORAGE];
    int (*map_flags)[BPF_F_NO_PREALLOC];
    int *key;
    struct attune_member *value;
} attune_members ATTUNE_SECTION(".maps");

static inline uint32_t attune_domain_of_run(uint32_t number)
{
    for (uint32_t domain = 0; domain < ATTUNE_OTHERS; domain++)
        if (number && attune_runs[domain] == number)
            return domain;
    return ATTUNE_OTHERS;
}

/* The kernel tells of a task. One that no program has seen was there before the first one, or was
 * born between two: then it has its parent's number, as if it had been born under either. */
static __attribute__((noinline)) uint32_t attune_domain_at_birth(struct task_struct *task,
                                                                 struct scx_init_task_args *args)
{
    struct attune_member *own = bpf_task_storage_get(&attune_members, task, NULL, 0), *of = NULL;
    struct attune_member fresh = {0};
    if (own)
        return attune_domain_of_run(own->number);
    bpf_rcu_read_lock();
    if (args->fork) {
        of = bpf_task_storage_get(&attune_members, bpf_get_current_task_btf(), NULL, 0);
    } else {
        struct task_struct *parent =
            task->pid == task->tgid ? task->real_parent : task->group_leader;
        if (parent)
            of = bpf_task_storage_get(&attune_members, parent, NULL, 0);
    }
    if (of)
        fresh.number = of->heirs ? of->heirs : of->number;
    bpf_rcu_read_unlock();
    bpf_task_storage_get(&attune_members, task, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
    return attune_domain_of_run(fresh.number);
}

/* From the loader: the number that the thread's children have from now on; 0: its own. */
struct attune_adoption {
    int32_t pid;
    uint32_t number;
};

ATTUNE_SECTION("syscall") int32_t attune_adopt(struct attune_adoption *adoption)
{
    struct task_struct *task = bpf_task_from_pid(adoption->pid);
    struct attune_member *member;
    int32_t result = -3; /* ESRCH */
    if (!task)
        return result;
    member = bpf_task_storage_get(&attune_members, task, NULL, 0);
    if (member) {
        member->heirs = adoption->number;
        result = 0;
    }
    bpf_task_release(task);
    return result;
}

#else
#define attune_domain_of(thread)           0
#define attune_domain_at_birth(task, args) 0
#endif
