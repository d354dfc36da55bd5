/* SPDX-License-Identifier: GPL-2.0 */
/* `alarm t at T`: one a thread, kept by time in a tree of their own. They ring in dispatch, on the
 * CPU that set the earliest; its timer only kicks.
 */
#if ATTUNE_WHICH(HAS_ALARM)
static struct attune_container ATTUNE_ARENA attune_alarms[ATTUNE_INSTANCES];
/* which CPU's timer wakes for the first one */
static uint32_t ATTUNE_ARENA attune_alarm_cpu[ATTUNE_INSTANCES];

static inline struct thread ATTUNE_ARENA *attune_alarmed(struct attune_thread ATTUNE_ARENA *node)
{
    return (struct thread ATTUNE_ARENA *)((char ATTUNE_ARENA *)node -
                                          offsetof(struct thread, attune_alarm_node));
}

/* When its alarm rings; 0: never. */
static inline int64_t attune_rings_at(const struct thread ATTUNE_ARENA *t)
{
    return t->attune_alarm_node.where ? t->attune_alarm_node.key : 0;
}

/* The CPU whose timer wakes for an alarm: this one, if it is of the instance. */
static inline uint32_t attune_alarm_waker(const struct attune_instance ATTUNE_ARENA *attune)
{
    uint32_t cpu = bpf_get_smp_processor_id();
    if (attune_serves(cpu))
        return cpu;
#if ATTUNE_CPUS > 1
    cpu = attune_number_of(attune->cpu);
#endif
    if (!attune_serves(cpu))
        cpu = attune_some_cpu();
    attune_kick(cpu); /* to arm its timer */
    return cpu;
}

/* Under the lock, when CPUs have changed: one that is there wakes for the alarms. */
static inline void attune_pass_on_alarms(void)
{
    if (!attune_serves(attune_alarm_cpu[attune_held()]))
        attune_alarm_cpu[attune_held()] = attune_some_cpu();
}

static inline void attune_start_alarms(void)
{
    attune_container_init(&attune_alarms[attune_held()], NULL, -1, ATTUNE_PQUEUE, 1, UINT32_MAX);
}

static void attune_alarm(struct attune_instance ATTUNE_ARENA *attune,
                         struct attune_thread ATTUNE_ARENA *thread, int64_t at)
{
    struct attune_thread ATTUNE_ARENA *node = &ATTUNE_RECORD(thread)->attune_alarm_node;
    attune_remove(node);
    if (at > 0) {
        struct attune_container ATTUNE_ARENA *alarms = &attune_alarms[attune_held()];
        attune_insert(attune, alarms, node, at);
        if (alarms->first == node)
            attune_alarm_cpu[attune_held()] = attune_alarm_waker(attune);
    }
}

/* 0: none that this CPU looks after. Without the lock it is a hint. */
static inline int64_t attune_next_alarm(uint32_t cpu)
{
    uint32_t instance = attune_instance_at(cpu);
    struct attune_thread ATTUNE_ARENA *first = attune_alarms[instance].first;
    return first && attune_alarm_cpu[instance] == cpu ? first->key : 0;
}
#else
static inline void attune_start_alarms(void)
{
}
static inline void attune_pass_on_alarms(void)
{
}
static void attune_alarm(struct attune_instance ATTUNE_ARENA *attune,
                         struct attune_thread ATTUNE_ARENA *thread, int64_t at)
{
}
static inline int64_t attune_next_alarm(uint32_t cpu)
{
    return 0;
}
static inline void attune_ring(uint32_t cpu)
{
}
#define attune_rings_at(t) 0
#endif
