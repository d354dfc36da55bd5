/* A function with a stack of its own that pauses in its middle and goes on later. So a decoder that
 * was not written to be interrupted does its work in small events. All of it runs in one thread,
 * one coroutine at a time. */
#ifndef PLAYER_COROUTINE_H
#define PLAYER_COROUTINE_H

struct coroutine;

/* NULL: no memory. body must not return. */
struct coroutine *coroutine_new(void (*body)(void *data), void *data);

/* Freed in the middle of body, it leaks what body holds. */
void coroutine_free(struct coroutine *coroutine);

/* Goes on with body until it pauses. */
void coroutine_resume(struct coroutine *coroutine);

/* Called from inside body: returns to the caller of coroutine_resume. */
void coroutine_pause(struct coroutine *coroutine);

#endif
