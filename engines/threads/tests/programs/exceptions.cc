/* C++ threads that give way while they handle an exception, or while one unwinds them: at safe
 * points, or with the argument `yield` by yielding. Prints `ok` and exits with 0, or says what went
 * wrong. */
#include <exception>
#include <stdexcept>
#include <string>
#include "attune.h"
#include "check.h"

static int (*gives_way)();
static const int ROUNDS = 5;

/* What the exception says that is being handled. */
static std::string handled()
{
    try {
        throw;
    } catch (const std::exception &again) {
        CHECK(gives_way() == 0);
        return again.what();
    }
}

static void *catches(void *name)
{
    for (int i = 0; i < ROUNDS; i++) {
        std::string own = static_cast<const char *>(name) + std::to_string(i);
        try {
            throw std::runtime_error(own);
        } catch (const std::exception &caught) {
            CHECK(gives_way() == 0);
            CHECK(handled() == own);
            CHECK(gives_way() == 0);
            CHECK(own == caught.what());
        }
        CHECK(!std::current_exception());
    }
    return nullptr;
}

struct Checks {
    ~Checks()
    {
        CHECK(std::uncaught_exceptions() == 1);
        CHECK(gives_way() == 0);
        CHECK(std::uncaught_exceptions() == 1);
    }
};

static void *unwinds(void *name)
{
    for (int i = 0; i < ROUNDS; i++) {
        try {
            Checks checks;
            throw std::runtime_error(static_cast<const char *>(name));
        } catch (const std::exception &caught) {
            CHECK(std::uncaught_exceptions() == 0);
            CHECK(caught.what() == std::string(static_cast<const char *>(name)));
        }
    }
    return nullptr;
}

static void *computes(void *)
{
    for (int i = 0; i < 4 * ROUNDS; i++) {
        CHECK(std::uncaught_exceptions() == 0 && !std::current_exception());
        CHECK(gives_way() == 0);
    }
    return nullptr;
}

static void *ends_inside(void *name)
{
    try {
        throw std::runtime_error(static_cast<const char *>(name));
    } catch (const std::exception &) {
        CHECK(gives_way() == 0);
        attune_exit(name);
    }
}

int main(int count, char **)
{
    struct attune_options options = {};
    options.size = sizeof options;
    options.ignore_unknown_imports = 1;
    options.preempt = count == 1;
    gives_way = count == 1 ? attune_check : attune_yield;
    CHECK(attune_init(&options) == 0);

    void *(*bodies[])(void *) = {catches, unwinds, computes, catches, unwinds, ends_inside};
    const char *names[] = {"first", "second", "third", "fourth", "fifth", "sixth"};
    attune_t threads[6];
    for (int i = 0; i < 6; i++)
        CHECK(attune_create(&threads[i], nullptr, bodies[i], const_cast<char *>(names[i])) == 0);
    catches(const_cast<char *>("main"));
    for (attune_t thread : threads)
        CHECK(attune_join(thread, nullptr) == 0);
    puts("ok");
}
