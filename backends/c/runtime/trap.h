/* Run-time checks: what one says when it fails, and the helpers that check.
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

static const struct attune_host *attune_host;

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

static inline void attune_begin(const struct attune_check *check)
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
static inline void attune_end(const struct attune_check *check)
{
    struct attune_trap trap = { .check = check->number, .line = check->line, .column = check->column,
                                .file = check->file, .message = attune_message.text };
    attune_host->trap(attune_host->engine, &trap);
    __builtin_trap();
}

/* The check failed. The containers are those that it is about, each may be NULL. */
static inline void attune_trap(const struct attune_check *check, const struct attune_container ATTUNE_ARENA *a,
                               const struct attune_container ATTUNE_ARENA *b)
{
    attune_begin(check);
    attune_say_contents(" (", a ? a : b);
    if (a && b != a)
        attune_say_contents("; ", b);
    attune_say(a || b ? ")" : "");
    attune_end(check);
}

/* A transfer's source, `dispatch`, `destroy`, an attribute: c is not empty. `to` is where the thread would have gone. */
static inline struct attune_thread ATTUNE_ARENA *attune_need(const struct attune_check *check,
                                                             const struct attune_container ATTUNE_ARENA *c,
                                                             const struct attune_container ATTUNE_ARENA *to)
{
    if (!c->first)
        attune_trap(check, to, c);
    return c->first;
}

/* A transfer's destination: the threadref c is empty or holds t itself. */
static inline void attune_need_room(const struct attune_check *check, const struct attune_container ATTUNE_ARENA *c,
                                    const struct attune_thread ATTUNE_ARENA *t)
{
    if (c->first && c->first != t)
        attune_trap(check, c, t->where);
}

/* t was not destroyed before. */
static inline struct attune_thread ATTUNE_ARENA *attune_need_alive(const struct attune_check *check,
                                                                   struct attune_thread ATTUNE_ARENA *t)
{
    if (t->destroyed) {
        attune_begin(check);
        attune_say(" (thread ");
        attune_say_number((int64_t)t->id);
        attune_say(")");
        attune_end(check);
    }
    return t;
}

/* 0 <= index < length. */
static inline int64_t attune_need_index(const struct attune_check *check, int64_t index, int64_t length)
{
    if (index < 0 || index >= length) {
        attune_begin(check);
        attune_say(" (it is ");
        attune_say_number(index);
        attune_say(", outside 0..");
        attune_say_number(length - 1);
        attune_say(")");
        attune_end(check);
    }
    return index;
}

/* The new thread t sits somewhere, or was destroyed. */
static inline void attune_need_stored(const struct attune_check *check, const struct attune_thread ATTUNE_ARENA *t)
{
    if (!t->where && !t->destroyed) {
        attune_begin(check);
        attune_say(" (thread ");
        attune_say_number((int64_t)t->id);
        attune_say(")");
        attune_end(check);
    }
}

/* c is empty. */
static inline void attune_need_empty(const struct attune_check *check, const struct attune_container ATTUNE_ARENA *c)
{
    if (c->size)
        attune_trap(check, c, NULL);
}

#ifdef ATTUNE_DEBUG
/* c, if it was changed, is what container.h says it is. Its contents could not be listed. */
static inline void attune_need_sound(const struct attune_check *check, const struct attune_container ATTUNE_ARENA *c)
{
    if (c->changed && !attune_sound(c)) {
        attune_begin(check);
        attune_say(" (");
        attune_say_name(c);
        attune_say(")");
        attune_end(check);
    }
}
#endif

/* Iterations that `while`, `do` and `for` may still take in this call. */
static uint32_t attune_budget;

#define ATTUNE_LOOP_BUDGET 1048576u

/* One more iteration. */
static inline int attune_iterate(const struct attune_check *check)
{
    if (!attune_budget)
        attune_trap(check, NULL, NULL);
    attune_budget--;
    return 1;
}

#endif
