/* A function with a stack of its own that can be left in its middle and gone on with later: how a decoder that was not written to be
 * interrupted does its work in small events. Everything stays in one thread; nothing runs at the same time as anything else. */
#ifndef PLAYER_COROUTINE_H
#define PLAYER_COROUTINE_H

struct coroutine;

/* NULL: no memory. body must not return. */
struct coroutine *coroutine_new(void (*body)(void *data), void *data);

/* Whoever frees it in the middle of body loses what body holds. */
void coroutine_free(struct coroutine *coroutine);

/* Goes on with body until it pauses. */
void coroutine_resume(struct coroutine *coroutine);

/* From inside body: back to whoever resumed it. */
void coroutine_pause(struct coroutine *coroutine);

#endif
