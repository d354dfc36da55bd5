/* See imports.h. */
#include "imports.h"

#include <attune.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

bool imports_register(struct server_imports *server)
{
    if (attune_register("idle_handlers", &server->idle_handlers) == 0 &&
        attune_register("descriptors_left", &server->descriptors_left) == 0 &&
        attune_register_thread_field("acceptor", struct thread_imports, acceptor) == 0 &&
        attune_register_thread_field("remaining", struct thread_imports, remaining) == 0 &&
        attune_register_thread_field("miss", struct thread_imports, miss) == 0 &&
        attune_register_thread_field("started", struct thread_imports, started) == 0)
        return true;
    fprintf(stderr, "webserver: telling the scheduler about the server: %s\n", strerror(errno));
    return false;
}
