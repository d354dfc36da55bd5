/* Boost.Fiber (libboost-fiber-dev) with an algorithm of the program's own: first in, first out. */
#include <boost/fiber/all.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "bench.h"

namespace fibers = boost::fibers;

/* As the library's manual writes algorithms. */
class first_come : public fibers::algo::algorithm
{
    fibers::scheduler::ready_queue_type ready;
    std::mutex mutex;
    std::condition_variable wakes;
    bool woken = false;

  public:
    void awakened(fibers::context *fiber) noexcept override
    {
        fiber->ready_link(ready);
    }

    fibers::context *pick_next() noexcept override
    {
        if (ready.empty())
            return nullptr;
        fibers::context *fiber = &ready.front();
        ready.pop_front();
        return fiber;
    }

    bool has_ready_fibers() const noexcept override
    {
        return !ready.empty();
    }

    void suspend_until(std::chrono::steady_clock::time_point const &until) noexcept override
    {
        std::unique_lock<std::mutex> lock(mutex);
        if (until == (std::chrono::steady_clock::time_point::max)())
            wakes.wait(lock, [this] { return woken; });
        else
            wakes.wait_until(lock, until, [this] { return woken; });
        woken = false;
    }

    void notify() noexcept override
    {
        std::unique_lock<std::mutex> lock(mutex);
        woken = true;
        wakes.notify_all();
    }
};

static std::vector<fibers::fiber> handles;
#ifdef POOLED
static std::optional<fibers::pooled_fixedsize_stack> stacks;
#endif

static void prepare(long count)
{
    fibers::use_scheduling_algorithm<first_come>();
    handles.resize((size_t)count);
#ifdef POOLED
    stacks.emplace();
#endif
}

static void create(long number)
{
#ifdef POOLED
    handles[number] = fibers::fiber(std::allocator_arg, *stacks, [number] { body(number); });
#else
    handles[number] = fibers::fiber([number] { body(number); });
#endif
}

static void join(long number)
{
    handles[number].join();
}

static void give_way(void)
{
    boost::this_fiber::yield();
}
