/* In the engine's place where a test loads the scheduler by its table: failed checks, alarms and
 * preemption go to the host that the test attaches. */

#define ATTUNE_ALARM(attune, thread, at) (attune)->host->alarm((attune)->host->engine, thread, at)
#define ATTUNE_PREEMPT(attune, cpu, at)  (attune)->host->preempt((attune)->host->engine, cpu, at)

#ifdef ATTUNE_GLOBALS
/* A node's: the test looks after each call. */
static void attune_has_written(void)
{
}
#endif

static void attune_halt(struct attune_instance *instance, attune_place check,
                        const struct attune_thread *thread)
{
    struct attune_trap trap = {.check = check->number,
                               .line = check->line,
                               .column = check->column,
                               .file = check->file,
                               .message = check->what};
    (void)thread;
    instance->host->trap(instance->host->engine, &trap);
    __builtin_trap();
}
