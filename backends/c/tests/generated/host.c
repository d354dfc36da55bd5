/* A small engine: runs a compiled scheduler on commands from standard input, one a line.
 *
 *      thread ID                       a new thread
 *      call EVENT ID NOW CPU           a handler by its number; ID 0 is no thread
 *      remove ID                       the thread is no more
 *      link NAME WIDTH VALUE           an import of the application, with its value as a number
 *      linkthread NAME WIDTH ID VALUE  the same for one thread
 *
 * After each: what the handler answered and asked for, the containers, the globals, the linked
 * variables. A failed check prints its message and ends the program with status 3.
 */
#include "../../runtime/attune_scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct attune_scheduler attune_scheduler;

enum { THREADS = 64, LINKS = 16 };

static struct attune_thread *threads[THREADS];
static struct attune_instance *instance;

static struct {
    const char *name;
    enum attune_width width;
    union {
        int64_t number;
        double real;
        int8_t narrow;
        float single;
    } variable;
} links[LINKS];
static int link_count;

static void trap(void *engine, const struct attune_trap *trap)
{
    (void)engine;
    printf("trap %u %s:%u:%u\n%s\n", trap->check, trap->file, trap->line, trap->column,
           trap->message);
    fflush(stdout);
    _Exit(3);
}

static void alarm_at(void *engine, struct attune_thread *thread, int64_t at)
{
    (void)engine;
    printf("alarm %d at %lld; ", (int)thread->id, (long long)at);
}

static void preempt(void *engine, int64_t cpu, int64_t at)
{
    (void)engine;
    printf("preempt %lld at %lld; ", (long long)cpu, (long long)at);
}

static void update(void *engine, uint32_t global, enum attune_operation operation, int64_t operand)
{
    static const char *const names[] = {"set", "add", "multiply", "divide", "remainder"};
    double real;
    (void)engine;
    memcpy(&real, &operand, sizeof(real));
    if (attune_scheduler.globals[global].type == ATTUNE_FLOAT)
        printf("%s %s %g; ", attune_scheduler.globals[global].name, names[operation], real);
    else
        printf("%s %s %lld; ", attune_scheduler.globals[global].name, names[operation],
               (long long)operand);
}

static int visit(void *arg, struct attune_thread *thread)
{
    (void)arg;
    printf(" %d", (int)thread->id);
    return 0;
}

static void show_value(const struct attune_variable *variable, const void *at)
{
    if (variable->type == ATTUNE_FLOAT)
        printf(" %g", *(const double *)at);
    else
        printf(" %lld", (long long)*(const int64_t *)at);
}

static enum attune_width *width_of(const struct attune_variable *import)
{
    return (enum attune_width *)((char *)instance + import->width);
}

static void show(void)
{
    for (uint32_t i = 0; i < attune_scheduler.container_count; i++) {
        const struct attune_container_info *info = &attune_scheduler.containers[i];
        for (uint32_t element = 0; element < (info->length ? info->length : 1); element++) {
            printf("| %s:", info->name);
            attune_scheduler.container_each(
                (struct attune_container *)((char *)instance + info->offset +
                                            (size_t)element * info->stride),
                visit, NULL);
            printf(" ");
        }
    }
    printf("|");
    for (uint32_t i = 0; i < attune_scheduler.global_count; i++) {
        const struct attune_variable *global = &attune_scheduler.globals[i];
        printf(" %s", global->name);
        const char *at = (const char *)instance + global->offset;
        if (global->imported == 1 || global->imported == 4)
            at += offsetof(struct attune_import, value);
        for (uint32_t element = 0; element < (global->length ? global->length : 1); element++)
            show_value(global, at + element * 8);
    }
    printf(" |");
    for (int i = 0; i < link_count; i++) {
        if (links[i].width == ATTUNE_F64)
            printf(" %s=%g", links[i].name, links[i].variable.real);
        else if (links[i].width == ATTUNE_I8)
            printf(" %s=%d", links[i].name, links[i].variable.narrow);
        else
            printf(" %s=%lld", links[i].name, (long long)links[i].variable.number);
    }
    printf(" | divisions %llu clamped %llu\n", (unsigned long long)instance->divisions_by_zero,
           (unsigned long long)instance->clamped);
}

static void *new_link(const char *name, int width, double value)
{
    int i = link_count++;
    links[i].name = strdup(name);
    links[i].width = (enum attune_width)width;
    if (width == ATTUNE_F64)
        links[i].variable.real = value;
    else if (width == ATTUNE_I8)
        links[i].variable.narrow = (int8_t)value;
    else
        links[i].variable.number = (int64_t)value;
    return &links[i].variable;
}

int main(void)
{
    static struct attune_host host = {NULL, trap, alarm_at, preempt, 1, 1, update};
    char command[16], name[64];
    int a, b, cpu;
    long long now;
    double value;
    host.cpus = attune_scheduler.cpus;
    instance = calloc(1, attune_scheduler.state_size);
    attune_scheduler.attach(instance, &host);
    while (scanf("%15s", command) == 1) {
        instance->now = 0;
        instance->cpu = 0;
        instance->cpus = host.cpus;
        instance->dispatched = instance->value_thread = NULL;
        instance->slice = -1;
        instance->value = 0;
        if (!strcmp(command, "thread") && scanf("%d", &a) == 1) {
            threads[a] = calloc(1, attune_scheduler.thread_size);
            threads[a]->id = (uint64_t)a;
            attune_scheduler.thread_init(instance, threads[a]);
            continue;
        } else if (!strcmp(command, "remove") && scanf("%d", &a) == 1) {
            attune_scheduler.thread_remove(threads[a]);
        } else if (!strcmp(command, "call") && scanf("%d %d %lld %d", &a, &b, &now, &cpu) == 4) {
            instance->now = now;
            instance->cpu = (uint32_t)cpu;
            attune_scheduler.handler[a](instance, threads[b]);
            if (instance->dispatched)
                printf("dispatch %d for %lld; ", (int)instance->dispatched->id,
                       (long long)instance->slice);
            if (instance->value_thread)
                printf("thread %d; ", (int)instance->value_thread->id);
            if (instance->value)
                printf("value %lld; ", (long long)instance->value);
        } else if (!strcmp(command, "link") && scanf("%63s %d %lf", name, &a, &value) == 3) {
            for (uint32_t i = 0; i < attune_scheduler.global_count; i++) {
                const struct attune_variable *global = &attune_scheduler.globals[i];
                if (!strcmp(global->name, name)) {
                    struct attune_import *import =
                        (struct attune_import *)((char *)instance + global->offset);
                    *width_of(global) = (enum attune_width)a;
                    import->link = new_link(name, a, value);
                }
            }
        } else if (!strcmp(command, "linkthread") &&
                   scanf("%63s %d %d %lf", name, &a, &b, &value) == 4) {
            for (uint32_t i = 0; i < attune_scheduler.attribute_count; i++) {
                const struct attune_variable *attribute = &attune_scheduler.attributes[i];
                if (!strcmp(attribute->name, name)) {
                    struct attune_import *import =
                        (struct attune_import *)((char *)threads[b] + attribute->offset);
                    *width_of(attribute) = (enum attune_width)a;
                    import->link = new_link(name, a, value);
                }
            }
        } else {
            return 2;
        }
        show();
    }
    return 0;
}
