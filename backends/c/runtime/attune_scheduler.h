/* The ABI between a compiled scheduler and the engine that loads it.
 *
 * A compiled scheduler exports one symbol, `attune_scheduler`, and has no variables of its own. The
 * engine allocates an instance's state, `state_size` bytes that begin with struct attune_instance,
 * and thread records of `thread_size` bytes, each beginning with struct attune_thread. It calls
 * handlers with the instance in which they run; a handler answers there. One thread of execution at
 * a time in each instance: the engine serialises calls.
 *
 * Units: times are nanoseconds of the engine's clock.
 */
#ifndef ATTUNE_SCHEDULER_H
#define ATTUNE_SCHEDULER_H

#include <stddef.h>
#include <stdint.h>

#define ATTUNE_ABI 8

/* Qualifies pointers to records and containers where those live in an address space of their own (a
 * BPF arena). */
#ifndef ATTUNE_ARENA
#define ATTUNE_ARENA
#endif

/* Order is part of the ABI; the same order as attune_language::event::Event. */
enum attune_event {
    ATTUNE_INIT,
    ATTUNE_NEWTHREAD,
    ATTUNE_SCHEDULE,
    ATTUNE_SWITCH_OUT,
    ATTUNE_EVENT_RAISED,
    ATTUNE_SET_NEXT_THREAD,
    ATTUNE_SET_WAITING,
    ATTUNE_SET_DEAD,
    ATTUNE_SUSPEND_THREAD,
    ATTUNE_RESUME_THREAD,
    ATTUNE_QUANTUM_EXPIRED,
    ATTUNE_ALARM,
    ATTUNE_TIMESLICE_LEFT,
    ATTUNE_THREADS_NEW,
    ATTUNE_THREADS_READY,
    ATTUNE_THREADS_WAITING,
    ATTUNE_THREADS_SUSPENDED,
    ATTUNE_THREADS_TOTAL,
    ATTUNE_IS_NEW,
    ATTUNE_IS_READY,
    ATTUNE_IS_WAITING,
    ATTUNE_CAN_SWITCH_TO,
    ATTUNE_FIRST_WAITING,
    ATTUNE_LEAVES,
    ATTUNE_ARRIVES,
    ATTUNE_EVENTS
};

enum attune_type { ATTUNE_INT, ATTUNE_FLOAT, ATTUNE_TIME };

/* What an imported variable of the application looks like in memory. Reading and writing one means
 * what values/ says: a float becomes an int by truncation, saturating, NaN becoming 0; a value that
 * does not fit is clamped to the nearest that does and counted in `clamped` (a finite double beyond
 * float's range becomes its largest float); a bool holds 0 or 1. */
enum attune_width {
    ATTUNE_I8,
    ATTUNE_I16,
    ATTUNE_I32,
    ATTUNE_I64,
    ATTUNE_U8,
    ATTUNE_U16,
    ATTUNE_U32,
    ATTUNE_U64,
    ATTUNE_F32,
    ATTUNE_F64,
    ATTUNE_BOOL
};

/* What an assignment to a variable that a cluster supplies does to it, whatever it has become
 * meanwhile; a subtraction adds the negated number. Division and remainder by zero mean what they
 * mean in the language. */
enum attune_operation { ATTUNE_SET, ATTUNE_ADD, ATTUNE_MULTIPLY, ATTUNE_DIVIDE, ATTUNE_REMAINDER };
/* Beside the operation: the variable is an int and the operand a float; the result is cut off. */
#define ATTUNE_BY_REAL 8u

struct attune_container;

/* The head of every thread record; a generated scheduler's attributes follow it. The engine zeroes
 * the record and sets `id` and `userdata` before thread_init; everything below `userdata` belongs
 * to the runtime. */
struct attune_thread {
    uint64_t id;                                 /* the engine's number for it, for messages */
    void *userdata;                              /* the application's per-thread data */
    struct attune_container ATTUNE_ARENA *where; /* the container it sits in, or NULL */
    /* list links, or left and right child in a sorted container */
    struct attune_thread ATTUNE_ARENA *prev, *next;
    struct attune_thread ATTUNE_ARENA *parent; /* sorted container */
    int64_t key;                               /* sort key as taken at insertion */
    uint64_t stamp;                            /* number of the insertion */
    uint8_t height;                            /* sorted container: of the subtree */
    /* the policy said `destroy`: the engine may free the record after the call */
    uint8_t destroyed;
    /* it may not run everywhere (affinity.h); 0 where no engine says so */
    uint8_t pinned;
    uint8_t unused;
    uint32_t line; /* scheduler's line of its last transfer */
};

struct attune_host;

/* The head of an instance's state: the handler call that is under way, and what the runtime keeps.
 * The engine says the first three members before each call and clears the answers; all from `host`
 * on belongs to the runtime. */
struct attune_instance {
    int64_t now;
    uint32_t cpu, cpus;
    /* answers */
    struct attune_thread ATTUNE_ARENA *dispatched; /* NULL: nothing was dispatched */
    int64_t slice; /* `dispatch t for d`, 0 if d is negative; -1: unbounded */
    int64_t value; /* of a query returning a number */
    /* of a query returning a thread (first_waiting), or NULL */
    struct attune_thread ATTUNE_ARENA *value_thread;
    /* the runtime's */
    const struct attune_host *host;
    uint64_t stamp;        /* number of the next insertion */
    uint64_t random_state; /* of `random` */
    /* so far, of ints and floats; values that did not fit an import. Starting leaves both. */
    uint64_t divisions_by_zero, clamped;
    uint32_t budget; /* iterations that `while`, `do` and `for` may still take in this call */
};

/* A run-time check failed. Valid while the engine's function runs. */
struct attune_trap {
    uint32_t check;        /* number of the check in the compiler's list */
    uint32_t line, column; /* from 1 */
    const char *file;
    const char
        *message; /* complete: "file:line:column: what was tried: what was found (contents)" */
};

/* Services of the engine. */
struct attune_host {
    void *engine;
    /* does not return */
    void (*trap)(void *engine, const struct attune_trap *trap);
    void (*alarm)(void *engine, struct attune_thread ATTUNE_ARENA *thread, int64_t at);
    /* at <= now: at once */
    void (*preempt)(void *engine, int64_t cpu, int64_t at);
    uint64_t seed; /* of `random` */
    /* at most attune_scheduler.cpus */
    uint32_t cpus;
    /* In a node's scheduler: a handler has assigned to a variable that a cluster supplies. `global`
     * is its place in the table; the operand is an int64_t, or the bits of a double. NULL: the
     * scheduler runs alone. */
    void (*update)(void *engine, uint32_t global, uint32_t operation, int64_t operand);
};

/* What the scheduler of a cluster's node is to the cluster. */
struct attune_node {
    const char *cluster;     /* the master's name */
    const char *description; /* what the cluster shares, for the part that keeps the node's copy */
};

/* How an import stands in memory: a thread record has one for each of its imports, an instance's
 * state one for each global import, at the variable's offset. */
struct attune_import {
    /* the application's variable; NULL = the default is in force */
    void *link;
    union {
        int64_t number;
        double real;
    } value; /* what is in force while nothing is linked */
};

/* A named variable: a global, a tunable, an import or an attribute. */
struct attune_variable {
    const char *name;
    enum attune_type type;
    uint8_t imported; /* 0 own, 1 import, 2 tunable, 3 const, 4 import that a cluster supplies */
    uint32_t length;  /* 0 scalar, else array elements */
    /* From the start of an instance's state, or, of an attribute, of a thread record. Own: the
     * value, int64_t or double; import: a struct attune_import. */
    size_t offset;
    /* imports: the width of the linked variable, one per name, from the start of an instance's
     * state; 0: nothing can be linked, and the import is a plain variable */
    size_t width;
    /* a plain variable that lies outside the state; else NULL */
    void *storage;
};

struct attune_container_info {
    const char *name;
    size_t offset;   /* of the first element, from the start of an instance's state */
    uint32_t length; /* 0 one container, else array elements */
    uint32_t stride; /* bytes from element to element */
};

struct attune_scheduler {
    uint32_t abi, thread_size, state_size;
    /* 1: its text says what happens when a thread arrives from another instance, so threads may go
     * from one to another */
    uint32_t may_be_split;
    const char *name, *file;
    const struct attune_variable *globals, *attributes;
    uint32_t global_count, attribute_count;
    const struct attune_container_info *containers; /* without those that are local to a handler */
    uint32_t container_count;
    uint32_t cpus;       /* the most CPUs it is compiled for */
    uint32_t tells_time; /* 1: a handler reads `now`; 0: an engine need not say it */
    /* Firmware has one instance, whose state is a variable of its own; else NULL. */
    struct attune_instance *only;
    /* Starts an instance whose state the engine has zeroed: sets globals and import defaults to
     * their initial values. Also the way to start again: empties all containers, links stay. The
     * host must live as long as the instance is in use. */
    void (*attach)(struct attune_instance *instance, const struct attune_host *host);
    /* Attributes to their initial values, for a record whose head the engine has set. Unlinks the
     * thread's imports: link them afterwards. It changes no answer. */
    void (*thread_init)(struct attune_instance ATTUNE_ARENA *instance,
                        struct attune_thread ATTUNE_ARENA *thread);
    /* Takes the thread from whatever container it sits in; nothing if it sits in none. */
    void (*thread_remove)(struct attune_thread ATTUNE_ARENA *thread);
    /* Visits the threads of a container in its order, until visit returns non-zero. */
    void (*container_each)(struct attune_container ATTUNE_ARENA *container,
                           int (*visit)(void *arg, struct attune_thread ATTUNE_ARENA *thread),
                           void *arg);
    /* The handlers; NULL where the policy has none. `thread` is the parameter or the thread the
     * event is about. */
    void (*handler[ATTUNE_EVENTS])(struct attune_instance ATTUNE_ARENA *instance,
                                   struct attune_thread ATTUNE_ARENA *thread);
    /* What a switch asks: `switch_out` of the thread that stops, then `schedule`, as one function
     * into which both handlers are inlined. NULL: the engine calls them one by one. */
    void (*change)(struct attune_instance ATTUNE_ARENA *instance,
                   struct attune_thread ATTUNE_ARENA *stops);
    const struct attune_node *node; /* NULL: it is no node's */
};

#endif
