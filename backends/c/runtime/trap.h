/* What a run-time check says when it fails.
 *
 *      pth.sched:41:9: cannot take a thread from RQ: it is empty (current holds thread 3; RQ is
 * empty)
 *      `---place---'   `-------------what-------------------'     `---------contents-----------'
 *
 * Place and what are known when the scheduler is compiled; the contents are found here. The message
 * is built in one buffer: a longer one is cut.
 */
#ifndef ATTUNE_TRAP_H
#define ATTUNE_TRAP_H

#include "container.h"

/* Threads that a message lists of one container. */
#define ATTUNE_LISTED 16

/* A check that is performed: those that were proved are not here. */
struct attune_check {
    uint32_t number; /* in the compiler's list */
    uint32_t line, column;
    const char *file, *what;
};

/* How generated code refers to a check. */
typedef const struct attune_check *attune_place;

#define ATTUNE_ALARM(attune, thread, at) (attune)->host->alarm((attune)->host->engine, thread, at)
#define ATTUNE_PREEMPT(attune, cpu, at)  (attune)->host->preempt((attune)->host->engine, cpu, at)
/* What goes on behind a failed check: nothing does. */
#define ATTUNE_NOBODY                    ((struct attune_thread ATTUNE_ARENA *)NULL)

/* A failure's text is large: it has a stack frame only where a check fails. */
#ifdef __GNUC__
#define ATTUNE_COLD __attribute__((noinline, cold))
#else
#define ATTUNE_COLD
#endif

struct attune_message {
    uint32_t length;
    char text[1024];
};

static inline void attune_say(struct attune_message *message, const char *text)
{
    for (; *text && message->length < sizeof message->text - 1 && ATTUNE_MAY_LOOP; text++)
        message->text[message->length++] = *text;
    message->text[message->length] = 0;
}

static inline void attune_say_number(struct attune_message *message, int64_t value)
{
    char digits[24];
    uint32_t at = sizeof digits - 1;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    digits[at] = 0;
    do
        digits[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) && ATTUNE_MAY_LOOP);
    if (value < 0)
        digits[--at] = '-';
    attune_say(message, digits + at);
}

/* `RQ`, or `RQ[3]` for an element of an array or a CPU's instance. */
static inline void attune_say_name(struct attune_message *message,
                                   const struct attune_container ATTUNE_ARENA *c)
{
    attune_say(message, c->name);
    if (c->element >= 0) {
        attune_say(message, "[");
        attune_say_number(message, c->element);
        attune_say(message, "]");
    }
}

/* `RQ holds threads 1, 2 and 7 more`, `RQ is empty`; nothing for no container. */
static inline void attune_say_contents(struct attune_message *message, const char *before,
                                       const struct attune_container ATTUNE_ARENA *c)
{
    uint32_t listed = 0;
    if (!c)
        return;
    attune_say(message, before);
    attune_say_name(message, c);
    attune_say(message, !c->size       ? " is empty"
                        : c->size == 1 ? " holds thread "
                                       : " holds threads ");
    for (struct attune_thread ATTUNE_ARENA *t = c->first; t && listed < ATTUNE_LISTED;
         t = attune_after(t)) {
        if (listed++)
            attune_say(message, ", ");
        attune_say_number(message, (int64_t)t->id);
    }
    if (listed < c->size) {
        attune_say(message, " and ");
        attune_say_number(message, (int64_t)c->size - listed);
        attune_say(message, " more");
    }
}

static inline void attune_begin(struct attune_message *message, attune_place check)
{
    message->length = 0;
    attune_say(message, check->file);
    attune_say(message, ":");
    attune_say_number(message, check->line);
    attune_say(message, ":");
    attune_say_number(message, check->column);
    attune_say(message, ": ");
    attune_say(message, check->what);
}

/* Does not return. */
static inline void attune_end(struct attune_instance *attune, attune_place check,
                              const struct attune_message *message)
{
    struct attune_trap trap = {.check = check->number,
                               .line = check->line,
                               .column = check->column,
                               .file = check->file,
                               .message = message->text};
    attune->host->trap(attune->host->engine, &trap);
    __builtin_trap();
}

/* The check failed. The containers are those that it is about, each may be NULL. */
static ATTUNE_COLD void attune_trap(struct attune_instance *attune, attune_place check,
                                    const struct attune_container ATTUNE_ARENA *a,
                                    const struct attune_container ATTUNE_ARENA *b)
{
    struct attune_message told, *message = &told;
    attune_begin(message, check);
    attune_say_contents(message, " (", a ? a : b);
    if (a && b != a)
        attune_say_contents(message, "; ", b);
    attune_say(message, a || b ? ")" : "");
    attune_end(attune, check, message);
}

/* The check failed for that thread. */
static ATTUNE_COLD void attune_trap_thread(struct attune_instance *attune, attune_place check,
                                           const struct attune_thread ATTUNE_ARENA *t)
{
    struct attune_message told, *message = &told;
    attune_begin(message, check);
    attune_say(message, " (thread ");
    attune_say_number(message, (int64_t)t->id);
    attune_say(message, ")");
    attune_end(attune, check, message);
}

/* An index is outside 0..length-1. */
static ATTUNE_COLD void attune_trap_index(struct attune_instance *attune, attune_place check,
                                          int64_t index, int64_t length)
{
    struct attune_message told, *message = &told;
    attune_begin(message, check);
    attune_say(message, " (it is ");
    attune_say_number(message, index);
    attune_say(message, ", outside 0..");
    attune_say_number(message, length - 1);
    attune_say(message, ")");
    attune_end(attune, check, message);
}

/* The container is inconsistent: its contents could not be listed. */
static ATTUNE_COLD void attune_trap_unsound(struct attune_instance *attune, attune_place check,
                                            const struct attune_container ATTUNE_ARENA *c)
{
    struct attune_message told, *message = &told;
    attune_begin(message, check);
    attune_say(message, " (");
    attune_say_name(message, c);
    attune_say(message, ")");
    attune_end(attune, check, message);
}

#endif
