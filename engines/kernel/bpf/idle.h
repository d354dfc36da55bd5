/* SPDX-License-Identifier: GPL-2.0 */
/* A CPU goes idle: the last moment to look again (preempt.h), as the kernel notes it next. Or it
 * has something to do.
 */
#if ATTUNE_CPUS > 1

#ifdef ATTUNE_COUNTS_IDLE
/* For experiments: a thread of the chunk is ready, and the CPU may run it. Without a lock, as the
 * kernel holds the CPU's run queue: one that becomes ready now may be missed, or counted though
 * another CPU takes it next. */
static __attribute__((noinline)) int attune_neglects_in(struct attune_chunk ATTUNE_ARENA *chunk,
                                                        uint32_t cpu)
{
    for (uint64_t i = (uint64_t)ATTUNE_ZERO; i < chunk->records && ATTUNE_MAY_GO_ON; i++) {
        struct thread ATTUNE_ARENA *t = &chunk->record[i];
        if (t->attune_task.state == ATTUNE_READY && !t->attune_task.leaving &&
            attune_may_run_on(&t->attune, cpu))
            return 1;
    }
    return 0;
}

static __attribute__((noinline)) void attune_count_idle(uint32_t cpu)
{
    struct attune_chunk ATTUNE_ARENA *chunk;
    __sync_fetch_and_add(&attune_statistics.idles, 1);
    for (chunk = attune_chunks; chunk && ATTUNE_MAY_GO_ON; chunk = chunk->before) {
        if (attune_neglects_in(chunk, cpu)) {
            __sync_fetch_and_add(&attune_statistics.neglects, 1);
            return;
        }
    }
}
#else
#define attune_count_idle(cpu) (void)0
#endif

/* It was asked to look at other instances, and has a thread before it did: another one looks. */
static inline void attune_pass_on(struct attune_cpu ATTUNE_ARENA *me, uint32_t cpu)
{
#if ATTUNE_INSTANCES > 1
    if (me->called && me->looked != attune_readied)
        attune_ask_idle_to(cpu, 1);
    me->called = 0;
#endif
}

ATTUNE_SECTION("struct_ops/update_idle") void attune_update_idle(unsigned long long *context)
{
    uint32_t cpu = (uint32_t)context[0];
    struct attune_cpu ATTUNE_ARENA *me = &attune_cpus[cpu];
    if (cpu >= ATTUNE_CPUS || attune_failure.failed)
        return;
    if (!context[1])
        attune_pass_on(me, cpu);
    else if (!attune_look_again(me, cpu))
        attune_count_idle(cpu);
}
#endif
