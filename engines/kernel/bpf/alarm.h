/* SPDX-License-Identifier: GPL-2.0 */
/* `alarm t at T`: one a thread, kept by time in a tree of their own. They ring in dispatch, on the CPU that set the earliest;
 * its timer only kicks.
 */
#if ATTUNE_HAS_ALARM || ATTUNE_OTHERS_HAS_ALARM
static struct attune_container ATTUNE_ARENA attune_alarms;
static uint32_t ATTUNE_ARENA attune_alarm_cpu;          /* which CPU's timer wakes for the first one */

static inline struct thread ATTUNE_ARENA *attune_alarmed(struct attune_thread ATTUNE_ARENA *node)
{
    return (struct thread ATTUNE_ARENA *)((char ATTUNE_ARENA *)node - offsetof(struct thread, attune_alarm_node));
}

static inline void attune_start_alarms(void)
{
    attune_container_init(&attune_alarms, NULL, -1, ATTUNE_PQUEUE, 1, UINT32_MAX);
}

static void attune_alarm(struct attune_thread ATTUNE_ARENA *thread, int64_t at)
{
    struct attune_thread ATTUNE_ARENA *node = &ATTUNE_RECORD(thread)->attune_alarm_node;
    attune_remove(node);
    if (at > 0) {
        attune_insert(&attune_alarms, node, at);
        if (attune_alarms.first == node)
            attune_alarm_cpu = bpf_get_smp_processor_id();
    }
}

/* 0: none that this CPU looks after. Without the lock it is a hint. */
static inline int64_t attune_next_alarm(uint32_t cpu)
{
    struct attune_thread ATTUNE_ARENA *first = attune_alarms.first;
    return first && attune_alarm_cpu == cpu ? first->key : 0;
}
#else
static inline void attune_start_alarms(void) {}
static void attune_alarm(struct attune_thread ATTUNE_ARENA *thread, int64_t at) {}
static inline int64_t attune_next_alarm(uint32_t cpu) { return 0; }
static inline void attune_ring(uint32_t cpu) {}
#endif
