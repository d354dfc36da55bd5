/* See policy.h. */
#include "policy.h"

#include <attune.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

bool policy_register(struct policy_server *server) {
    if (attune_register("idle_handlers", &server->idle_handlers) == 0
        && attune_register("descriptors_left", &server->descriptors_left) == 0
        && attune_register_thread_field("acceptor", struct policy_thread, acceptor) == 0
        && attune_register_thread_field("remaining", struct policy_thread, remaining) == 0
        && attune_register_thread_field("started", struct policy_thread, started) == 0)
        return true;
    fprintf(stderr, "webserver: telling the scheduler about the server: %s\n", strerror(errno));
    return false;
}
