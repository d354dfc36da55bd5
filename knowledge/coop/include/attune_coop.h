/* Attune: cooperative polling. A program tells the scheduler when it must run next, and gets the
 * CPU then.
 *
 *     cc player.c -I knowledge/coop/include -L target/release -Wl,-rpath,$PWD/target/release \
 *         -lattune_coop -o player
 *     ATTUNE_COOP=shared ./player
 *
 * An event loop holds timer events, which are due at a time, and best-effort events, of which the
 * one with the smallest importance value matters most. Due timers come first, always. The loop
 * polls by itself whenever others should run.
 *
 * Conventions
 *   Results   0 on success; -1 (or NULL, or event 0) with errno on failure; attune_coop_error()
 *             then returns the reason as text.
 *   Times     uint64_t nanoseconds of CLOCK_MONOTONIC; ATTUNE_COOP_NEVER: no time.
 *   Names     are copied, and must be UTF-8.
 *   Threads   A loop or poller belongs to the thread that made it. Callbacks may call every
 * function but run and free. Transport "none", "kernel" (a scheduler in Linux that listens, now or
 * later), "shared" (with the programs of the same user), "shared:DIRECTORY"; NULL or "auto": what
 * the environment variable ATTUNE_COOP says, else kernel if it listens, else none. Tracing
 * attune_coop_timer(release), an empty function, is called before the callback of each timer: a
 * place for uprobes. Linking   The library holds attune_client (the import functions of attune.h)
 * too: a program links with this one only.
 */
#ifndef ATTUNE_COOP_H
#define ATTUNE_COOP_H

#include <poll.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTUNE_COOP_NEVER   UINT64_MAX
/* An importance: there is no best-effort event. */
#define ATTUNE_COOP_NOTHING INT64_MAX

/* What went wrong in this thread's last call that failed; valid until its next call. */
const char *attune_coop_error(void);

/* ---- The event loop
 * --------------------------------------------------------------------------------------------- */

typedef struct attune_coop_loop attune_coop_loop;
typedef uint64_t attune_coop_event; /* never used again for another event of the loop; 0 is none */

typedef void (*attune_coop_callback)(attune_coop_loop *loop, attune_coop_event event, void *data);
/* revents as of poll(2): POLLIN, POLLOUT, POLLERR */
typedef void (*attune_coop_descriptor_callback)(attune_coop_loop *loop, attune_coop_event event,
                                                short revents, void *data);

/* Events of one group (not 0) are compared by importance, also between programs of one user, which
 * then share one virtual time. EINVAL: no such transport; EDQUOT: all slots taken; EACCES and
 * others as the system says. */
attune_coop_loop *attune_coop_new(const char *transport, uint32_t group);
void attune_coop_free(attune_coop_loop *loop);

/* An event happens when it is submitted, once. name: for the trace. */
attune_coop_event attune_coop_event_new(attune_coop_loop *loop, const char *name,
                                        attune_coop_callback callback, void *data);

/* Yields to the other programs when it is dispatched. */
attune_coop_event attune_coop_proxy_new(attune_coop_loop *loop, const char *name);

/* Whenever fd is ready for events (POLLIN, POLLOUT), callback runs as a best-effort event of this
 * importance. Remove the event before closing the descriptor. EPERM: a plain file; EEXIST: it is
 * watched already. */
attune_coop_event attune_coop_descriptor_new(attune_coop_loop *loop, int fd, short events,
                                             int64_t importance, const char *name,
                                             attune_coop_descriptor_callback callback, void *data);

/* Not before release, and as soon after it as can be. An event that is submitted already moves.
 * ENOENT: no such event. */
int attune_coop_submit_timer(attune_coop_loop *loop, attune_coop_event event, uint64_t release);

/* When no timer is due and nothing is more important. release is the second key, and delays
 * nothing. ENOENT. */
int attune_coop_submit_best_effort(attune_coop_loop *loop, attune_coop_event event,
                                   int64_t importance, uint64_t release);

/* The event does not happen after all. Not submitted, or unknown: nothing changes. */
void attune_coop_cancel(attune_coop_loop *loop, attune_coop_event event);

/* Forgets the event. Unknown: nothing changes. */
void attune_coop_remove(attune_coop_loop *loop, attune_coop_event event);

/* Runs until attune_coop_stop, or until nothing can happen any more. Fails when a watched
 * descriptor was closed. */
int attune_coop_run(attune_coop_loop *loop);
void attune_coop_stop(attune_coop_loop *loop);

uint64_t attune_coop_now(void);

/* By when a callback should be done: the others' earliest release, or the end of our slice. Falls
 * while it runs. */
uint64_t attune_coop_until(const attune_coop_loop *loop);

/* Callbacks of one name: how often, CPU time of all and of the longest in nanoseconds, when the
 * longest began. */
struct attune_coop_executions {
    uint64_t count, total, worst, worst_at;
};

/* ENOENT: no callback of that name has run. */
int attune_coop_trace(const attune_coop_loop *loop, const char *name,
                      struct attune_coop_executions *executions);

/* Prints all of them as a table. */
int attune_coop_print_trace(const attune_coop_loop *loop, int fd);

/* ---- Polling from a loop of one's own
 * --------------------------------------------------------------------------- */

typedef struct attune_coop_poller attune_coop_poller;

struct attune_coop_offer {
    uint32_t group; /* 0: alone */
    uint64_t timer; /* the next timer event's release, or ATTUNE_COOP_NEVER */
    /* importance of the most important best-effort event, or ATTUNE_COOP_NOTHING: would sleep */
    int64_t best_effort;
};

struct attune_coop_answer {
    int turn;       /* 0: only a descriptor became ready; take in what has come, and poll again */
    uint64_t until; /* poll again by then */
    /* importance of the most important event of the others in the group, or ATTUNE_COOP_NOTHING */
    int64_t others;
};

/* What a poller has done: polls; of these, that gave the CPU to another (kernel: that offered it);
 * waits; CPUs taken from members that did not answer; waits that took too long and were given up.
 */
struct attune_coop_statistics {
    uint64_t polls, yields, sleeps, takeovers, impatient;
};

/* Errors as attune_coop_new. */
attune_coop_poller *attune_coop_join(const char *transport);
void attune_coop_leave(attune_coop_poller *poller);

/* Yields, and sleeps while there is nothing to do. The descriptors are as for poll(2); they may end
 * the wait early. EINTR: a signal came; it is not our turn, poll again. */
int attune_coop_poll(attune_coop_poller *poller, const struct attune_coop_offer *offer,
                     struct pollfd *descriptors, nfds_t count, struct attune_coop_answer *answer);

/* What `until` of the last answer is now. It only falls. */
uint64_t attune_coop_poll_until(const attune_coop_poller *poller);

void attune_coop_poll_statistics(const attune_coop_poller *poller,
                                 struct attune_coop_statistics *statistics);

/* ---- Event loops of others
 * -------------------------------------------------------------------------------------- */

/* poll(2) that cooperates, by the transport that ATTUNE_COOP says; each thread that calls it is a
 *     member. In GLib: g_main_context_set_poll_func(NULL, (GPollFunc)attune_coop_poll_descriptors);
 *     In libuv, instead of uv_run(loop, UV_RUN_DEFAULT): do {
 *         struct pollfd backend = { .fd = uv_backend_fd(loop), .events = POLLIN };
 *         attune_coop_poll_descriptors(&backend, 1, uv_backend_timeout(loop));
 *     } while (uv_run(loop, UV_RUN_NOWAIT));
 * EINTR: a signal came. Others as attune_coop_new, in the first call. */
int attune_coop_poll_descriptors(struct pollfd *descriptors, unsigned int count, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
