/* SPDX-License-Identifier: GPL-2.0 */
/* What the engine calls: the helpers and functions of the kernel, as far as it uses them. */

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

static struct cpumask all_online;
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

/* What a CPU that goes asks for keeps later interrupts away. */
static void interrupts(void)
{
    if (cpus[here].presence != THERE)
        broken("CPU %u asks for an interrupt as it goes", here);
}

long model_timer_start(struct attune_timer *timer, uint64_t at,
                       uint64_t flags) __asm__("model_helper_171");
long model_timer_start(struct attune_timer *timer, uint64_t at, uint64_t flags)
{
    interrupts();
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
    return was && cpus[cpu].presence == THERE;
}

/* A CPU where it may run. If all those go, it may run on any. */
static uint32_t some_allowed(struct task *t)
{
    unsigned long there = 0;
    for (uint32_t cpu = 0; cpu < ATTUNE_CPUS; cpu++)
        there |= (unsigned long)(cpus[cpu].presence == THERE) << cpu;
    if (!(t->mask.bits[0] & there)) {
        t->mask.bits[0] = all_online.bits[0];
        t->it.nr_cpus_allowed = ATTUNE_CPUS;
    }
    return (uint32_t)__builtin_ctzl(t->mask.bits[0] & there);
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
    if (t->mask.bits[0] >> previous & 1 && cpus[previous].presence != AWAY)
        return previous;
    return (int32_t)some_allowed(t);
}

static void preempt(uint32_t cpu)
{
    struct cpu *it = &cpus[cpu];
    it->kicked = it->schedules;
    if (it->schedules)
        return;
    if (it->current)
        it->current->it.scx.slice = 0;
    it->must = 1;
}

void scx_bpf_kick_cpu(int32_t cpu, uint64_t flags)
{
    struct cpu *it = &cpus[cpu];
    interrupts();
    if (it->presence == AWAY)
        return;
    if (flags & SCX_KICK_PREEMPT)
        preempt((uint32_t)cpu);
    else if (!(flags & SCX_KICK_IDLE) || !it->current)
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
        t->put_on = 1 + (int)(dsq == SCX_DSQ_LOCAL ? t->cpu : (uint32_t)dsq);
        task->scx.slice = slice;
        if (flags & SCX_ENQ_PREEMPT)
            preempt(t->cpu);
    } else if (dsq != SCX_DSQ_LOCAL) {
        if ((uint32_t)dsq != t->cpu || me->handed_count == ATTUNE_HANDED)
            broken("CPU %u hands thread %d over to CPU %u", here, task->pid, (uint32_t)dsq);
        me->handed[me->handed_count++] = (struct handed){t, t->number};
        task->scx.slice = slice;
    } else {
        if (me->chosen)
            broken("CPU %u chooses two threads", here);
        me->chosen = t;
        me->chosen_number = t->number;
        task->scx.slice = slice;
    }
}

void scx_bpf_dispatch_cancel(void)
{
    cpus[here].chosen = NULL;
}
