/* Attune: user-level threads inside one process, scheduled by a scheduler that you choose when the
 * program starts. docs/threads.md is the manual. In the repository, after `make build`:
 *
 *     cc prog.c -I engines/threads/include -L target/release -Wl,-rpath,$PWD/target/release \
 *         -lattune_threads -o prog
 *     attune build fifo --engine threads -o fifo.so
 *     ATTUNE_SCHED=./fifo.so ./prog
 *
 * The threads share one operating-system thread and switch only inside the functions below, so
 * plain variables need no lock between two calls. Everything runs on the OS thread that called
 * attune_init (or, without it, made the first call), unless the program asks for more workers: then
 * that is worker 1, and variables that threads of several workers use need a mutex or atomics. A
 * call from any other OS thread, from a forked child or from a signal handler fails with EPERM.
 *
 * A thread stays on its worker, unless the program says that threads may move (Moves, below). What
 * the functions below do to a thread of another worker is done when that worker next switches
 * threads; the caller waits for it, and others run meanwhile.
 *
 * Results are 0 or a count on success, and -1 with errno set on failure, as in POSIX. A call that
 *   succeeds leaves errno alone, also when other threads ran meanwhile. Each function lists its
 *   errors; EPERM as above comes on top.
 * Times are int64_t nanoseconds of CLOCK_MONOTONIC. A timeout is relative; a negative one
 *   (ATTUNE_FOREVER) never ends, and 0 tries once. A timeout that ends first is -1 with ETIMEDOUT.
 * Threads are named by numbers that are never used again. The program itself is thread 1, and
 *   ATTUNE_SELF means the calling thread. A number without a thread is ESRCH.
 * Objects of all types are valid from the start when their bytes are zero.
 *
 * The process ends with one of these, after a message:
 *   status 2    ATTUNE_SCHED names no usable scheduler
 *   status 70   the scheduler made an error: a failed check, with its place
 *   status 71   deadlock: no thread can ever run again
 *   SIGSEGV     a thread overflowed its stack
 */
#ifndef ATTUNE_H
#define ATTUNE_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#else
#include <limits.h>
#include <stdbool.h>
#endif

typedef uint64_t attune_t;

#define ATTUNE_SELF    ((attune_t)0)
#define ATTUNE_FOREVER ((int64_t)-1)

/* for a new thread: the worker with the fewest threads that have not ended */
#define ATTUNE_LEAST_LOADED (-1)

/* ---- Starting ---- */

/* Zero means the default everywhere. Start from { .size = sizeof(struct attune_options) }. */
struct attune_options {
    size_t size; /* sizeof(struct attune_options), so that the struct can grow */
    /* path of a compiled scheduler, used when ATTUNE_SCHED is unset; NULL: the built-in one */
    const char *scheduler;
    /* bytes of a thread's stack unless its attributes say otherwise; default 256 KiB */
    size_t stack_size;
    /* stacks kept for new threads when theirs end; default: all. The kernel may take the memory of
     * all but 4096 when it runs short and the program has had nothing to do */
    size_t stack_cache;
    /* non-zero: registering a name that the scheduler lacks succeeds quietly */
    int ignore_unknown_imports;
    uint64_t seed; /* of random(n) in the scheduler; default: a fixed number */
    /* the cluster whose node this process is, used when ATTUNE_CLUSTER is unset; NULL: none */
    const char *cluster;
    /* OS threads that run threads, at most 64, used when ATTUNE_WORKERS is unset; default 1 */
    unsigned workers;
    /* non-zero: a thread whose slice is over gives way at its safe points, see attune_check */
    int preempt;
    /* non-zero: ready threads may go to another worker, see Moves */
    int moves;
    /* a scheduler that is part of the program, &attune_scheduler of the file that `attune build
     * --engine threads -o NAME.c` writes; used when neither ATTUNE_SCHED nor `scheduler` names a
     * file */
    const struct attune_scheduler *scheduler_in_program;
};

/* The scheduler of a program that has one in it. */
extern const struct attune_scheduler attune_scheduler;

/* Starts the library with options (NULL: defaults). Optional: any other call starts it with the
 * defaults. Loads the scheduler, and ends the process with status 2 and a message if that fails.
 * The environment comes before the options: ATTUNE_SCHED (ignored, with a message, in set-uid and
 * otherwise privileged programs), ATTUNE_UNKNOWN_IMPORTS=error|warn|ignore, ATTUNE_SEED,
 * ATTUNE_CLUSTER (the cluster whose node this process is), ATTUNE_WORKERS (how many workers),
 * ATTUNE_MOVES=0 (threads do not move), ATTUNE_IO=uring|epoll, ATTUNE_TRACE (the file of a
 * trace). EALREADY: it runs already. EINVAL: size is unknown, or too many workers. ENOMEM, EMFILE,
 * ENFILE: no memory, no descriptors for epoll. */
int attune_init(const struct attune_options *options);

/* The name of the scheduler that runs, or NULL with errno. */
const char *attune_scheduler_name(void);

/* Now, on the clock of all times here. */
int64_t attune_now(void);

/* ---- Threads ---- */

struct attune_attributes {
    const char *name; /* for messages; cut to 31 bytes; NULL: "thread" */
    /* bytes, rounded up to pages, at least 16 KiB; 0: as the options say */
    size_t stack_size;
    /* as with attune_set_userdata, in force before the scheduler sees the thread */
    void *userdata;
    int detached; /* non-zero: no thread will join it */
    /* where it begins: 1 to attune_workers(), ATTUNE_LEAST_LOADED, or 0: the caller's worker */
    int worker;
    int pinned; /* non-zero: as if it began with attune_pin */
};

/* Starts a thread that runs start(argument) when the scheduler chooses it. attributes may be NULL,
 * and so may thread if the program does not need the number. EAGAIN: no memory for its stack.
 * EINVAL: stack size too large, or no such worker. */
int attune_create(attune_t *thread, const struct attune_attributes *attributes,
                  void *(*start)(void *), void *argument);

/* Waits until thread ends, and forgets it. *result (if result is not NULL) is what it returned or
 * passed to attune_exit. ESRCH; EDEADLK: itself, or one that waits for it; EINVAL: detached, or
 * another thread joins it already; ECANCELED: it was a Rust thread that panicked. */
int attune_join(attune_t thread, void **result);

/* Lets thread end unjoined; forgets it at once if it has ended. ESRCH; EINVAL: detached or being
 * joined already. */
int attune_detach(attune_t thread);

/* Ends the calling thread. In the main program the other threads go on, and the process ends with
 * status 0 after the last. A Rust thread's destructors do not run. Called from outside the threads
 * it ends the process. */
#ifdef __cplusplus
[[noreturn]]
#else
_Noreturn
#endif
void attune_exit(void *result);

attune_t attune_self(void); /* 0 with EPERM on a foreign OS thread */

/* How many workers there are, and which one the caller runs on, from 1. */
int attune_workers(void);
int attune_worker(void);

/* The thread's name; valid until it is forgotten. NULL with ESRCH. */
const char *attune_name(attune_t thread);

/* Lets the scheduler choose again. */
int attune_yield(void);

/* Yields and asks the scheduler to choose thread next (its handler set_next_thread; a plain yield
 * where it has none, and where thread is of another worker). ESRCH; EAGAIN: thread is not ready to
 * run, or the scheduler's can_switch_to says no. */
int attune_yield_to(attune_t thread);

/* Keeps thread from running until attune_resume. A waiting thread goes on waiting meanwhile.
 * A thread that runs on another worker is suspended when it yields next, or at its next safe point
 * (attune_check). ESRCH; EALREADY: it is suspended; ENOTSUP: the scheduler has no suspend_thread
 * and resume_thread. */
int attune_suspend(attune_t thread);

/* ESRCH; EINVAL: it is not suspended. */
int attune_resume(attune_t thread);

int attune_sleep_until(int64_t time);      /* a time that has passed: a yield */
int attune_sleep_for(int64_t nanoseconds); /* negative: for ever */

/* Data of the application's own, one pointer per thread; what thread imports point into. NULL with
 * ESRCH / ESRCH. */
void *attune_userdata(attune_t thread);
int attune_set_userdata(attune_t thread, void *userdata);

/* ---- Preemption ----
 *
 * For programs that say preempt in their options. A thread then gives way when its slice is over
 * (`dispatch t for d` in the policy) or when the policy wants to choose again (`preempt`), but only
 * at a safe point. These calls are safe points: attune_check; attune_mutex_lock,
 * attune_semaphore_wait, attune_join, those on descriptors that may wait, and attune_poll, before
 * they try; attune_mutex_unlock, attune_semaphore_post, attune_condition_signal and _broadcast,
 * attune_resume, when they have done their work. No other thread of the worker runs between two of
 * them. A thread that reaches none keeps its worker. */

/* A safe point for long computations. Does nothing in a program without preempt. */
int attune_check(void);

/* How many nanoseconds the calling thread may still run: what the policy's query timeslice_left
 * answers, or else what is left of its slice. INT64_MAX: nothing ends its stay. -1 with errno. */
int64_t attune_timeslice_left(void);

/* ---- Moves ----
 *
 * For programs that say moves in their options, and have several workers. A thread that is ready
 * may then go to another worker, one that has none or lastingly fewer. It finds itself there when a
 * call of this library returns: any call in which it waited or gave way. A thread that waits does
 * not move, and so none inside attune_blocking; the program's first thread and threads of Rust
 * never do.
 *
 * The thread is on another OS thread then. So it must not keep from before such a call until after
 * it what belongs to an OS thread: the address of a thread-local variable, a lock of pthreads, a
 * signal mask, a locale. Compilers keep addresses of thread-local variables themselves, within one
 * function; of errno, too. Define ATTUNE_MOVES before you include this header, and errno is asked
 * for anew each time. Use other thread-local variables between attune_pin and attune_unpin, or in
 * functions that do not call this library and are not inlined. */

/* Keeps the calling thread on its worker until as many calls of attune_unpin. attune_pin:
 * EOVERFLOW. attune_unpin: EINVAL: it is not pinned. */
int attune_pin(void);
int attune_unpin(void);

/* Where the errno of the calling thread is until it next waits or gives way. */
int *attune_errno(void);

#ifdef ATTUNE_MOVES
#include <errno.h>
#undef errno
#define errno (*attune_errno())
#endif

/* ---- Mutex, condition, semaphore ----
 *
 * Waiters are served in the order in which they came, by handing over: a thread that is woken has
 * what it waited for. */

typedef struct attune_mutex {
    attune_t owner;
    void *first, *last;
} attune_mutex;
typedef struct attune_condition {
    void *first, *last;
} attune_condition;
typedef struct attune_semaphore {
    uint64_t value;
    void *first, *last;
} attune_semaphore;

#define ATTUNE_MUTEX_INIT        {0, NULL, NULL}
#define ATTUNE_CONDITION_INIT    {NULL, NULL}
#define ATTUNE_SEMAPHORE_INIT(n) {(n), NULL, NULL}

/* EDEADLK: the caller has it */
int attune_mutex_lock(attune_mutex *mutex);
int attune_mutex_trylock(attune_mutex *mutex);                     /* EBUSY: it is locked */
int attune_mutex_lock_timed(attune_mutex *mutex, int64_t timeout); /* EDEADLK, ETIMEDOUT */
/* EPERM: the caller does not have it */
int attune_mutex_unlock(attune_mutex *mutex);
int attune_mutex_destroy(attune_mutex *mutex); /* EBUSY: locked */

/* The mutex is the caller's again when these return, also after a timeout. EPERM: the caller does
 * not have the mutex. */
int attune_condition_wait(attune_condition *condition, attune_mutex *mutex);
/* ETIMEDOUT */
int attune_condition_wait_timed(attune_condition *condition, attune_mutex *mutex, int64_t timeout);
int attune_condition_signal(attune_condition *condition);
int attune_condition_broadcast(attune_condition *condition);
/* EBUSY: threads wait for it */
int attune_condition_destroy(attune_condition *condition);

int attune_semaphore_wait(attune_semaphore *semaphore);
int attune_semaphore_trywait(attune_semaphore *semaphore);                     /* EAGAIN: it is 0 */
int attune_semaphore_wait_timed(attune_semaphore *semaphore, int64_t timeout); /* ETIMEDOUT */
int attune_semaphore_post(attune_semaphore *semaphore);                        /* EOVERFLOW */
/* EBUSY: threads wait for it */
int attune_semaphore_destroy(attune_semaphore *semaphore);

/* ---- Descriptors ----
 *
 * These work like the calls of the same names, but only the calling thread waits. Each first tries,
 * and waits only where the call would have blocked. Errors are those of the plain call, and
 * ETIMEDOUT; EINTR does not occur. Sockets keep their flags. Listening and connecting sockets,
 * pipes, terminals and the like are made O_NONBLOCK. Several threads may use a descriptor at a
 * time. Close it with attune_close: threads that wait for it get EBADF at once. The library notices
 * a plain close(2) too, but that may take a second.
 *
 * A regular file or a disk may be slow: only the caller waits, until the transfer has ended,
 * whatever the timeout. Where no OS thread can be had for it: ENOMEM, EMFILE, ENFILE. Opening and
 * closing may wait for a file's server; do these through attune_blocking. */

ssize_t attune_read(int fd, void *buffer, size_t size);
ssize_t attune_write(int fd, const void *buffer, size_t size);
ssize_t attune_readv(int fd, const struct iovec *parts, int count);
ssize_t attune_writev(int fd, const struct iovec *parts, int count);
ssize_t attune_pread(int fd, void *buffer, size_t size, int64_t offset);
ssize_t attune_pwrite(int fd, const void *buffer, size_t size, int64_t offset);
ssize_t attune_recv(int fd, void *buffer, size_t size, int flags);
ssize_t attune_send(int fd, const void *buffer, size_t size, int flags);
ssize_t attune_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t attune_sendmsg(int fd, const struct msghdr *message, int flags);
/* the new descriptor is O_NONBLOCK */
int attune_accept(int fd, struct sockaddr *address, socklen_t *length);
int attune_connect(int fd, const struct sockaddr *address, socklen_t length);
int attune_close(int fd);

ssize_t attune_read_timed(int fd, void *buffer, size_t size, int64_t timeout);
ssize_t attune_write_timed(int fd, const void *buffer, size_t size, int64_t timeout);
ssize_t attune_readv_timed(int fd, const struct iovec *parts, int count, int64_t timeout);
ssize_t attune_writev_timed(int fd, const struct iovec *parts, int count, int64_t timeout);
ssize_t attune_recv_timed(int fd, void *buffer, size_t size, int flags, int64_t timeout);
ssize_t attune_send_timed(int fd, const void *buffer, size_t size, int flags, int64_t timeout);
ssize_t attune_recvmsg_timed(int fd, struct msghdr *message, int flags, int64_t timeout);
ssize_t attune_sendmsg_timed(int fd, const struct msghdr *message, int flags, int64_t timeout);
int attune_accept_timed(int fd, struct sockaddr *address, socklen_t *length, int64_t timeout);
/* flags as accept4's: SOCK_NONBLOCK, SOCK_CLOEXEC. */
int attune_accept4_timed(int fd, struct sockaddr *address, socklen_t *length, int flags,
                         int64_t timeout);
/* After ETIMEDOUT the attempt goes on in the background: close the descriptor or call again. */
int attune_connect_timed(int fd, const struct sockaddr *address, socklen_t length, int64_t timeout);

/* Number of descriptors with something in revents, 0 after the timeout (nanoseconds, unlike
 * poll's). */
int attune_poll(struct pollfd *descriptors, nfds_t count, int64_t timeout);

/* Runs function(argument) on an OS thread of the library's own, where it may block; the calling
 * thread waits, and others run. *result (if result is not NULL) is what it returned. There function
 * sees other thread-local variables than its caller, errno too, and cannot call this library. Up to
 * 64 such calls run at a time, and further ones wait for one to end. ENOMEM, EMFILE, ENFILE: no OS
 * thread can be had. EINVAL: no function. */
int attune_blocking(void *(*function)(void *), void *argument, void **result);

/* How the caller's worker asks which descriptors are ready: "uring" or "epoll". *why (if why is not
 * NULL) is the reason why it is not io_uring, or NULL. NULL with errno. */
const char *attune_io(const char **why);

/* ---- Imports: what the scheduler knows about the application ----
 *
 * The program names a variable, and the scheduler imports it:
 *
 *     static int bytes_left;
 *     attune_register("bytes_left", &bytes_left);
 *
 *         imports { int bytes_left default 0; }
 *
 * or, for each thread, a field of the structure that the thread's userdata points to:
 *
 *     struct connection { long bytes_left; };
 *     attune_register_thread_field("bytes_left", struct connection, bytes_left);
 *     attune_set_userdata(ATTUNE_SELF, &connection);
 *
 *         threadimports { int bytes_left default 0; }
 *
 * The scheduler reads the variable when one of its handlers starts, and writes it when a handler
 * assigns to it. The variable may have any integer type, bool, float or double; other types do not
 * compile. A value that does not fit is clamped and counted (attune_stats). The variable must live
 * until attune_unregister, a userdata until it is replaced or its thread ends.
 *
 * Each function returns 0, or -1 with one of these errors. ENOENT: the scheduler has no such
 * import; a message on stderr says so, unless the options or ATTUNE_UNKNOWN_IMPORTS say that it
 * does not matter. EINVAL: the name is an import of the other kind, of all threads or of each. */

enum attune_variable_kind {
    ATTUNE_KIND_I8,
    ATTUNE_KIND_I16,
    ATTUNE_KIND_I32,
    ATTUNE_KIND_I64,
    ATTUNE_KIND_U8,
    ATTUNE_KIND_U16,
    ATTUNE_KIND_U32,
    ATTUNE_KIND_U64,
    ATTUNE_KIND_F32,
    ATTUNE_KIND_F64,
    ATTUNE_KIND_BOOL
};

int attune_register_variable(const char *name, volatile void *variable,
                             enum attune_variable_kind kind);
int attune_register_thread_variable(const char *name, size_t offset,
                                    enum attune_variable_kind kind);

/* An int at that offset from the thread's userdata. */
int attune_register_thread(const char *name, size_t offset);

/* The default holds again. ENOENT; EINVAL: nothing is registered. */
int attune_unregister(const char *name);

/* For languages without C's types: the engine owns the variable. It starts with the value in force
 * and lives as long as the process, a thread's as long as the thread. NULL with errno as above;
 * ESRCH; EBUSY: a variable of another kind is registered under that name. */
int64_t *attune_import_int(const char *name);
double *attune_import_float(const char *name);
int64_t *attune_thread_import_int(attune_t thread, const char *name);
double *attune_thread_import_float(attune_t thread, const char *name);

#ifndef __cplusplus

#define ATTUNE_KIND_OF(variable)                                              \
    _Generic((variable),                                                      \
        bool: ATTUNE_KIND_BOOL,                                               \
        char: CHAR_MIN < 0 ? ATTUNE_KIND_I8 : ATTUNE_KIND_U8,                 \
        signed char: ATTUNE_KIND_I8,                                          \
        unsigned char: ATTUNE_KIND_U8,                                        \
        short: ATTUNE_KIND_I16,                                               \
        unsigned short: ATTUNE_KIND_U16,                                      \
        int: ATTUNE_KIND_I32,                                                 \
        unsigned int: ATTUNE_KIND_U32,                                        \
        long: sizeof(long) == 8 ? ATTUNE_KIND_I64 : ATTUNE_KIND_I32,          \
        unsigned long: sizeof(long) == 8 ? ATTUNE_KIND_U64 : ATTUNE_KIND_U32, \
        long long: ATTUNE_KIND_I64,                                           \
        unsigned long long: ATTUNE_KIND_U64,                                  \
        float: ATTUNE_KIND_F32,                                               \
        double: ATTUNE_KIND_F64)

/* attune_register("name", &variable) */
#define attune_register(name, pointer) \
    attune_register_variable((name), (pointer), ATTUNE_KIND_OF(*(pointer)))

/* attune_register_thread_field("name", struct connection, member) */
#define attune_register_thread_field(name, type, member)            \
    attune_register_thread_variable((name), offsetof(type, member), \
                                    ATTUNE_KIND_OF(((type *)0)->member))

#endif

/* ---- Shared variables of a cluster ----
 *
 * For a process that is a node of a cluster (ATTUNE_CLUSTER, or attune_options): the variables that
 * the master's `global` declares. Each has a model. `cache` (default): reads and writes are those
 * of the process's own copy and return at once; writes merge, and go out when threads switch.
 * `request` (attune build --request NAME): the owner does what is asked, the calling thread waits
 * for the answer, and all programs see all requests in one order.
 *
 *     int tickets = attune_shared("tickets");
 *     int64_t mine;
 *     attune_shared_change_int(tickets, ATTUNE_SHARED_ADD, 1, &mine, ATTUNE_FOREVER);
 *
 * While the manager is away, requests wait for it; one that is repeated to it counts once. A
 * timeout that ends first is ETIMEDOUT, and the owner may perform the writes still. A request that
 * was answered is in the process's copy, too.
 *
 * ENOTCONN: the process is no node. EINVAL: no such variable, or it is of the other type; a time is
 * an int. */

/* The number of a variable for the calls below, or -1. ENOENT. */
int attune_shared(const char *name);

/* The copy's value under both models, for as long as the process lives: a read is a plain load.
 * The library refreshes all copies together, inside its functions. NULL with errno. */
const int64_t *attune_shared_int(int variable);
const double *attune_shared_float(int variable);

/* The value, by the variable's model. */
int attune_shared_read_int(int variable, int64_t *value, int64_t timeout);
int attune_shared_read_float(int variable, double *value, int64_t timeout);

enum attune_change {
    ATTUNE_SHARED_SET,
    ATTUNE_SHARED_ADD,
    ATTUNE_SHARED_MULTIPLY,
    ATTUNE_SHARED_DIVIDE,   /* by zero: 0 */
    ATTUNE_SHARED_REMAINDER /* by zero: as it was */
};

/* Changes a variable; *value (if value is not NULL) is its value after that. */
int attune_shared_change_int(int variable, enum attune_change change, int64_t operand,
                             int64_t *value, int64_t timeout);
int attune_shared_change_float(int variable, enum attune_change change, double operand,
                               double *value, int64_t timeout);

struct attune_write {
    int variable;
    enum attune_change change;
    int64_t integer; /* the operand for an int */
    double real;     /* the operand for a float */
};

/* Writes that take effect together: no handler and no program sees a part of them. If one of the
 * variables has the model `request`, the owner performs them all. */
int attune_shared_write(const struct attune_write *writes, int count, int64_t timeout);

/* Waits until the manager has counted all that was written to the copy: a process that ends takes
 * along what was not. ETIMEDOUT. */
int attune_shared_flush(int64_t timeout);

/* How long ago the process has heard of the manager, in nanoseconds; INT64_MAX: never. -1 with
 * errno. */
int64_t attune_shared_age(void);

/* ---- Numbers ---- */

/* The sums over all workers. */
struct attune_statistics {
    uint64_t created; /* all since the start, the main program too */
    uint64_t living;  /* have not ended */
    /* living ones but those that run; a suspended one counts twice */
    uint64_t ready, waiting;
    uint64_t suspended;
    uint64_t switches; /* times a thread was chosen */
    uint64_t handler_calls;
    uint64_t polls;             /* of descriptors, in the kernel */
    uint64_t stack_bytes;       /* address space of all stacks, cached ones included */
    uint64_t divisions_by_zero; /* in the scheduler */
    uint64_t clamped;           /* import values that did not fit their variable */
    uint64_t moves;             /* times a thread went to another worker */
};

/* size is sizeof *statistics. */
int attune_stats(struct attune_statistics *statistics, size_t size);

/* Writes what all threads do to a file, from now on until attune_trace(NULL) or the end of the
 * process; ui.perfetto.dev opens it. ATTUNE_TRACE=FILE does so from the start. After
 * attune_trace(NULL) the file is complete; other threads run meanwhile. EALREADY: a trace is being
 * written already, or (NULL) none is. EBUSY: another process writes its trace there. Errors of
 * open(2), or (NULL) of the write(2) that ended the trace before. */
int attune_trace(const char *path);

#ifdef __cplusplus
}
#endif

#endif
