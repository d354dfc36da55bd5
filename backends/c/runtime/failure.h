/* What a failed run-time check leaves behind where no text can be made: numbers, from which the
 * loader makes the message of trap.h. The first failure counts; after the handler that it happened
 * in, the engine gives the scheduler up.
 */
#ifndef ATTUNE_FAILURE_H
#define ATTUNE_FAILURE_H

#include "container.h"

/* Threads that are noted of one container. */
#define ATTUNE_LISTED 16

/* How generated code refers to a check: its number in the compiler's list. */
typedef uint32_t attune_place;

enum attune_about { ATTUNE_CONTAINERS, ATTUNE_THREAD, ATTUNE_INDEX, ATTUNE_CUT };

struct attune_contents {
    struct attune_container ATTUNE_ARENA *container; /* NULL: none */
    uint32_t size, listed;
    uint64_t thread[ATTUNE_LISTED]; /* their numbers */
};

struct attune_failure {
    uint32_t failed; /* 1 when there is one */
    uint32_t check;
    uint32_t about; /* enum attune_about; the engine has more */
    /* of the text's policies, where the engine says it: not for checks */
    uint32_t policy;
    uint64_t thread;
    int64_t index, length;
    struct attune_contents contents[2];
};

static struct attune_failure ATTUNE_KEPT ATTUNE_ARENA attune_failure;

/* Behind a failed check, in place of the thread that is not there. */
static struct attune_thread ATTUNE_ARENA *attune_nobody(void);
#define ATTUNE_NOBODY attune_nobody()

/* Asked for by the policy; the engine's. */
static void attune_alarm(struct attune_instance ATTUNE_ARENA *attune,
                         struct attune_thread ATTUNE_ARENA *thread, int64_t at);
static void attune_preempt(struct attune_instance ATTUNE_ARENA *attune, int64_t cpu, int64_t at);
#define ATTUNE_ALARM(attune, thread, at) attune_alarm(attune, thread, at)
#define ATTUNE_PREEMPT(attune, cpu, at)  attune_preempt(attune, cpu, at)

static inline int attune_first_failure(attune_place check, uint32_t about)
{
    if (attune_failure.failed)
        return 0;
    attune_failure.failed = 1;
    attune_failure.check = check;
    attune_failure.about = about;
    return 1;
}

/* A loop without a place was cut short inside something that has one. */
static inline void attune_cut_inside(attune_place place)
{
    if (attune_failure.about == ATTUNE_CUT && attune_failure.check == ATTUNE_NOWHERE)
        attune_failure.check = place;
}

/* What the handler does behind it does not count: once a function's time is over, all its loops end
 * at once. */
ATTUNE_OUTLINE attune_cut(attune_place place)
{
    if (!attune_first_failure(place, ATTUNE_CUT))
        attune_cut_inside(place);
    ATTUNE_RETURN;
}

static inline void attune_note(struct attune_contents ATTUNE_ARENA *note,
                               const struct attune_container ATTUNE_ARENA *c)
{
    uint32_t listed = (uint32_t)ATTUNE_ZERO;
    note->container = (struct attune_container ATTUNE_ARENA *)c;
    if (!c)
        return;
    note->size = c->size;
    for (struct attune_thread ATTUNE_ARENA *t = c->first;
         t && listed < ATTUNE_LISTED && ATTUNE_MAY_LOOP; t = attune_after(t))
        note->thread[listed++ & (ATTUNE_LISTED - 1)] = t->id;
    note->listed = listed;
}

/* The check failed. The containers are those that it is about, each may be NULL. */
ATTUNE_OUTLINE attune_trap(struct attune_instance ATTUNE_ARENA *attune ATTUNE_IN_ARENA,
                           attune_place check,
                           const struct attune_container ATTUNE_ARENA *a ATTUNE_IN_ARENA,
                           const struct attune_container ATTUNE_ARENA *b ATTUNE_IN_ARENA)
{
    if (!attune_first_failure(check, ATTUNE_CONTAINERS))
        ATTUNE_RETURN;
    attune_note(&attune_failure.contents[0], a ? a : b);
    attune_note(&attune_failure.contents[1], a && b != a ? b : NULL);
    ATTUNE_RETURN;
}

/* The check failed for that thread. */
ATTUNE_OUTLINE attune_trap_thread(struct attune_instance ATTUNE_ARENA *attune ATTUNE_IN_ARENA,
                                  attune_place check,
                                  const struct attune_thread ATTUNE_ARENA *t ATTUNE_IN_ARENA)
{
    if (attune_first_failure(check, ATTUNE_THREAD))
        attune_failure.thread = t->id;
    ATTUNE_RETURN;
}

/* An index is outside 0..length-1. */
ATTUNE_OUTLINE attune_trap_index(struct attune_instance ATTUNE_ARENA *attune ATTUNE_IN_ARENA,
                                 attune_place check, int64_t index, int64_t length)
{
    if (attune_first_failure(check, ATTUNE_INDEX)) {
        attune_failure.index = index;
        attune_failure.length = length;
    }
    ATTUNE_RETURN;
}

#endif
