/* The ABI between a compiled scheduler and the engine that loads it.
 *
 * A compiled scheduler exports one symbol, `attune_scheduler`. The engine allocates thread records of
 * `thread_size` bytes, each beginning with struct attune_thread, and calls handlers; a handler answers in its
 * struct attune_call. One thread of execution at a time: the engine serialises calls.
 *
 * Units: times are nanoseconds of the engine's clock.
 */
#ifndef ATTUNE_SCHEDULER_H
#define ATTUNE_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

#define ATTUNE_ABI 2

/* Qualifies pointers to records and containers where those live in an address space of their own (a BPF arena). */
#ifndef ATTUNE_ARENA
#define ATTUNE_ARENA
#endif

/* Order is part of the ABI; the same order as attune_language::event::Event. */
enum attune_event {
    ATTUNE_INIT, ATTUNE_NEWTHREAD, ATTUNE_SCHEDULE, ATTUNE_SWITCH_OUT, ATTUNE_EVENT_RAISED,
    ATTUNE_SET_NEXT_THREAD, ATTUNE_SET_WAITING, ATTUNE_SET_DEAD, ATTUNE_SUSPEND_THREAD, ATTUNE_RESUME_THREAD,
    ATTUNE_QUANTUM_EXPIRED, ATTUNE_ALARM,
    ATTUNE_TIMESLICE_LEFT, ATTUNE_THREADS_NEW, ATTUNE_THREADS_READY, ATTUNE_THREADS_WAITING,
    ATTUNE_THREADS_SUSPENDED, ATTUNE_THREADS_TOTAL, ATTUNE_IS_NEW, ATTUNE_IS_READY, ATTUNE_IS_WAITING,
    ATTUNE_CAN_SWITCH_TO, ATTUNE_FIRST_WAITING,
    ATTUNE_EVENTS
};

enum attune_type { ATTUNE_INT, ATTUNE_FLOAT, ATTUNE_TIME };

/* What an imported variable of the application looks like in memory. Reading and writing one means what values/ says:
 * a float becomes an int by truncation, saturating, NaN becoming 0; a value that does not fit is clamped to the nearest
 * that does and counted in `clamped` (a finite double beyond float's range becomes its largest float); a bool holds 0 or 1. */
enum attune_width {
    ATTUNE_I8, ATTUNE_I16, ATTUNE_I32, ATTUNE_I64, ATTUNE_U8, ATTUNE_U16, ATTUNE_U32, ATTUNE_U64, ATTUNE_F32, ATTUNE_F64,
    ATTUNE_BOOL
};

struct attune_container;

/* The head of every thread record; a generated scheduler's attributes follow it. The engine zeroes the record and sets
 * `id` and `userdata` before thread_init; everything below `userdata` belongs to the runtime. */
struct attune_thread {
    uint64_t id;                                    /* the engine's number for it, for messages */
    void *userdata;                                 /* the application's per-thread data */
    struct attune_container ATTUNE_ARENA *where;    /* the container it sits in, or NULL */
    struct attune_thread ATTUNE_ARENA *prev, *next; /* list links, or left and right child in a sorted container */
    struct attune_thread ATTUNE_ARENA *parent;      /* sorted container */
    int64_t key;                                    /* sort key as taken at insertion */
    uint64_t stamp;                                 /* number of the insertion */
    uint8_t height;                                 /* sorted container: of the subtree */
    uint8_t destroyed;                              /* the policy said `destroy`: the engine may free the record after the call */
    uint16_t unused;
    uint32_t line;                                  /* scheduler's line of its last transfer */
};

/* A handler call: what the engine says, and what the policy answers. The engine clears the answers. */
struct attune_call {
    int64_t now;
    uint32_t cpu, cpus;
    /* answers */
    struct attune_thread ATTUNE_ARENA *dispatched; /* NULL: nothing was dispatched */
    int64_t slice;                       /* `dispatch t for d`, 0 if d is negative; -1: unbounded */
    int64_t value;                       /* of a query returning a number */
    struct attune_thread ATTUNE_ARENA *value_thread; /* of a query returning a thread (first_waiting), or NULL */
};

/* A run-time check failed. Valid until the next one. */
struct attune_trap {
    uint32_t check;                      /* number of the check in the compiler's list */
    uint32_t line, column;               /* from 1 */
    const char *file;
    const char *message;                 /* complete: "file:line:column: what was tried: what was found (contents)" */
};

/* Services of the engine. */
struct attune_host {
    void *engine;
    void (*trap)(void *engine, const struct attune_trap *trap);                 /* does not return */
    void (*alarm)(void *engine, struct attune_thread ATTUNE_ARENA *thread, int64_t at);
    void (*preempt)(void *engine, int64_t cpu, int64_t at);                     /* at <= now: at once */
    uint64_t seed;                                                              /* of `random` */
    uint32_t cpus;                                                              /* at most attune_scheduler.cpus */
};

/* How an import stands in memory: a thread record has one for each of its imports, at the attribute's offset. */
struct attune_import {
    void *link;                          /* the application's variable; NULL = the default is in force */
    union { int64_t number; double real; } value; /* what is in force while nothing is linked */
};

/* A named variable: a global, a tunable, an import or an attribute. */
struct attune_variable {
    const char *name;
    enum attune_type type;
    uint8_t imported;                    /* 0 own, 1 import, 2 tunable, 3 const */
    uint32_t length;                     /* 0 scalar, else array elements */
    /* Globals: the storage (own: int64_t or double). Imports: the value in force while nothing is linked, and see link.
     * Attributes: NULL. */
    void *storage;
    size_t offset;                       /* attributes: offset in the thread record (own: the value; import: a struct attune_import) */
    void **link;                         /* imports: where the address of the application's variable goes; NULL = default in force */
    enum attune_width *width;            /* imports: the width of the linked variable, one per name */
};

struct attune_container_info {
    const char *name;
    struct attune_container ATTUNE_ARENA *container;  /* first element */
    uint32_t length;                     /* 0 one container, else array elements */
    uint32_t stride;                     /* bytes from element to element */
};

struct attune_scheduler {
    uint32_t abi, thread_size;
    const char *name, *file;
    const struct attune_variable *globals, *attributes;
    uint32_t global_count, attribute_count;
    const struct attune_container_info *containers;  /* without those that are local to a handler */
    uint32_t container_count;
    uint32_t cpus;                                   /* the most CPUs it is compiled for */
    /* Empties all containers, sets globals and import defaults to their initial values (links stay). Also the way to start
     * again. The host must live as long as the scheduler is in use. */
    void (*attach)(const struct attune_host *host);
    /* Attributes to their initial values, for a record whose head the engine has set. Unlinks the thread's imports: link
     * them afterwards. Of `call`, the first three fields count. */
    void (*thread_init)(struct attune_call ATTUNE_ARENA *call, struct attune_thread ATTUNE_ARENA *thread);
    /* Takes the thread from whatever container it sits in; nothing if it sits in none. */
    void (*thread_remove)(struct attune_thread ATTUNE_ARENA *thread);
    /* Visits the threads of a container in its order, until visit returns non-zero. */
    void (*container_each)(struct attune_container ATTUNE_ARENA *container,
                           int (*visit)(void *arg, struct attune_thread ATTUNE_ARENA *thread), void *arg);
    /* The handlers; NULL where the policy has none. `thread` is the parameter or the thread the event is about. */
    void (*handler[ATTUNE_EVENTS])(struct attune_call ATTUNE_ARENA *call, struct attune_thread ATTUNE_ARENA *thread);
    /* Counters that the engine may show; attach leaves them. */
    const uint64_t *divisions_by_zero, *clamped;
};

#endif
