/* Threads of test programs: created on a worker of their own choice, or where the caller is. */
#ifndef START_H
#define START_H

#include "attune.h"
#include "check.h"

static inline attune_t start_on(int worker, void *(*body)(void *), void *argument)
{
    attune_t thread;
    struct attune_attributes attributes = {.worker = worker};
    CHECK(attune_create(&thread, &attributes, body, argument) == 0);
    return thread;
}

static inline attune_t start(void *(*body)(void *), void *argument)
{
    return start_on(0, body, argument);
}

static inline void join(attune_t thread)
{
    CHECK(attune_join(thread, NULL) == 0);
}

#endif
