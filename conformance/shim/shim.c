/* Stands behind a generated scheduler in one file, and lets the tests call its handlers: a failed
 * check comes back as an answer, so does a crash, and what a handler asks of its engine is kept for
 * the tests to read.
 *
 * Invariant: `trapped` is 1 exactly when the last call ended in a failed check, 2 when it crashed
 * or did not end. Alarms, preemptions and updates beyond KEPT are
 * counted, not kept.
 */
#include <setjmp.h>
#include <string.h>

#define KEPT 4096

struct conformance {
    uint32_t trapped, check, line, column;
    const char *file;
    char message[1024];
    uint32_t alarms, preempts;
    struct {
        struct attune_thread *thread;
        int64_t at;
    } alarm[KEPT];
    struct {
        int64_t cpu, at;
    } preempt[KEPT];
    uint64_t updates;
    struct {
        uint32_t global, operation;
        int64_t operand;
    } update[KEPT];
};

static struct conformance conformance;
static sigjmp_buf conformance_back;

static void conformance_trap(void *engine, const struct attune_trap *trap)
{
    (void)engine;
    conformance.trapped = 1;
    conformance.check = trap->check;
    conformance.line = trap->line;
    conformance.column = trap->column;
    conformance.file = trap->file;
    strncpy(conformance.message, trap->message, sizeof conformance.message - 1);
    siglongjmp(conformance_back, 1);
}

/* For the handler of a signal that a call of this scheduler raised. */
void conformance_crash(int signal);
void conformance_crash(int signal)
{
    conformance.trapped = 2;
    conformance.check = (uint32_t)signal;
    siglongjmp(conformance_back, 1);
}

static void conformance_alarm(void *engine, struct attune_thread *thread, int64_t at)
{
    (void)engine;
    if (conformance.alarms < KEPT) {
        conformance.alarm[conformance.alarms].thread = thread;
        conformance.alarm[conformance.alarms].at = at;
    }
    conformance.alarms++;
}

static void conformance_preempt(void *engine, int64_t cpu, int64_t at)
{
    (void)engine;
    if (conformance.preempts < KEPT) {
        conformance.preempt[conformance.preempts].cpu = cpu;
        conformance.preempt[conformance.preempts].at = at;
    }
    conformance.preempts++;
}

static void conformance_update(void *engine, uint32_t global, uint32_t operation, int64_t operand)
{
    (void)engine;
    if (conformance.updates < KEPT) {
        conformance.update[conformance.updates].global = global;
        conformance.update[conformance.updates].operation = operation;
        conformance.update[conformance.updates].operand = operand;
    }
    conformance.updates++;
}

static struct attune_host conformance_host = {
    .trap = conformance_trap,
    .alarm = conformance_alarm,
    .preempt = conformance_preempt,
    .update = conformance_update,
};

static void conformance_begin(void)
{
    conformance.trapped = 0;
    conformance.alarms = conformance.preempts = 0;
    conformance.updates = 0;
}

#ifdef ATTUNE_WRITTEN_H
/* A node whose engine merges what handlers write. */
struct attune_change *conformance_written(void);
struct attune_change *conformance_written(void)
{
    return attune_written;
}

int64_t *conformance_heard_at(void);
int64_t *conformance_heard_at(void)
{
    return &attune_heard_at;
}
#endif

/* Starts an instance anew. */
const struct conformance *conformance_attach(struct attune_instance *instance, uint64_t seed,
                                             uint32_t cpus);
const struct conformance *conformance_attach(struct attune_instance *instance, uint64_t seed,
                                             uint32_t cpus)
{
    conformance_begin();
    conformance_host.seed = seed;
    conformance_host.cpus = cpus;
    if (!sigsetjmp(conformance_back, 0))
        attune_scheduler.attach(instance, &conformance_host);
    return &conformance;
}

/* Runs a handler; for the number past the last one, the beginning of a thread. */
void conformance_call(uint32_t event, struct attune_instance *instance,
                      struct attune_thread *thread);
void conformance_call(uint32_t event, struct attune_instance *instance,
                      struct attune_thread *thread)
{
    conformance_begin();
    if (sigsetjmp(conformance_back, 0))
        return;
    if (event == ATTUNE_EVENTS)
        attune_scheduler.thread_init(instance, thread);
    else if (attune_scheduler.handler[event])
        attune_scheduler.handler[event](instance, thread);
}
