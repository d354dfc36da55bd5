/* What a run-time check says when it fails.
 *
 *      pth.sched:41:9: cannot take a thread from RQ: it is empty (current holds thread 3; RQ is empty)
 *      `---place---'   `-------------what-------------------'     `---------contents-----------'
 *
 * Place and what are known when the scheduler is compiled; the contents are found here. The message is built in one static
 * buffer: a longer one is cut.
 */
#ifndef ATTUNE_TRAP_H
#define ATTUNE_TRAP_H

#include "container.h"

/* Threads that a message lists of one container. */
#define ATTUNE_LISTED 16

/* A check that is performed: those that were proved are not here. */
struct attune_check {
    uint32_t number;                                 /* in the compiler's list */
    uint32_t line, column;
    const char *file, *what;
};

/* How generated code refers to a check. */
typedef const struct attune_check *attune_place;

static const struct attune_host *attune_host;

#define ATTUNE_ALARM(thread, at) attune_host->alarm(attune_host->engine, thread, at)
#define ATTUNE_PREEMPT(cpu, at) attune_host->preempt(attune_host->engine, cpu, at)
/* What goes on behind a failed check: nothing does. */
#define ATTUNE_NOBODY ((struct attune_thread ATTUNE_ARENA *)NULL)

static struct {
    uint32_t length;
    char text[1024];
} attune_message;

static inline void attune_say(const char *text)
{
    for (; *text && attune_message.length < sizeof attune_message.text - 1 && ATTUNE_MAY_LOOP; text++)
        attune_message.text[attune_message.length++] = *text;
    attune_message.text[attune_message.length] = 0;
}

static inline void attune_say_number(int64_t value)
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
    attune_say(digits + at);
}

/* `RQ`, or `RQ[3]` for an element of an array or a CPU's instance. */
static inline void attune_say_name(const struct attune_container ATTUNE_ARENA *c)
{
    attune_say(c->name);
    if (c->element >= 0) {
        attune_say("[");
        attune_say_number(c->element);
        attune_say("]");
    }
}

/* `RQ holds threads 1, 2 and 7 more`, `RQ is empty`; nothing for no container. */
static inline void attune_say_contents(const char *before, const struct attune_container ATTUNE_ARENA *c)
{
    uint32_t listed = 0;
    if (!c)
        return;
    attune_say(before);
    attune_say_name(c);
    attune_say(!c->size ? " is empty" : c->size == 1 ? " holds thread " : " holds threads ");
    for (struct attune_thread ATTUNE_ARENA *t = c->first; t && listed < ATTUNE_LISTED; t = attune_after(t)) {
        if (listed++)
            attune_say(", ");
        attune_say_number((int64_t)t->id);
    }
    if (listed < c->size) {
        attune_say(" and ");
        attune_say_number((int64_t)c->size - listed);
        attune_say(" more");
    }
}

static inline void attune_begin(attune_place check)
{
    attune_message.length = 0;
    attune_say(check->file);
    attune_say(":");
    attune_say_number(check->line);
    attune_say(":");
    attune_say_number(check->column);
    attune_say(": ");
    attune_say(check->what);
}

/* Does not return. */
static inline void attune_end(attune_place check)
{
    struct attune_trap trap = { .check = check->number, .line = check->line, .column = check->column,
                                .file = check->file, .message = attune_message.text };
    attune_host->trap(attune_host->engine, &trap);
    __builtin_trap();
}

/* The check failed. The containers are those that it is about, each may be NULL. */
static inline void attune_trap(attune_place check, const struct attune_container ATTUNE_ARENA *a,
                               const struct attune_container ATTUNE_ARENA *b)
{
    attune_begin(check);
    attune_say_contents(" (", a ? a : b);
    if (a && b != a)
        attune_say_contents("; ", b);
    attune_say(a || b ? ")" : "");
    attune_end(check);
}

/* The check failed for that thread. */
static inline void attune_trap_thread(attune_place check, const struct attune_thread ATTUNE_ARENA *t)
{
    attune_begin(check);
    attune_say(" (thread ");
    attune_say_number((int64_t)t->id);
    attune_say(")");
    attune_end(check);
}

/* An index is outside 0..length-1. */
static inline void attune_trap_index(attune_place check, int64_t index, int64_t length)
{
    attune_begin(check);
    attune_say(" (it is ");
    attune_say_number(index);
    attune_say(", outside 0..");
    attune_say_number(length - 1);
    attune_say(")");
    attune_end(check);
}

/* The container is inconsistent: its contents could not be listed. */
static inline void attune_trap_unsound(attune_place check, const struct attune_container ATTUNE_ARENA *c)
{
    attune_begin(check);
    attune_say(" (");
    attune_say_name(c);
    attune_say(")");
    attune_end(check);
}

#endif
