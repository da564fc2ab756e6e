// Timers that arm themselves again when they expire, and resume nobody.

#include "support/backend_test.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <chrono>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;

class rearmed_timer_test : public testing::backend_test {};

class three_times final : public detail::timer_node {
public:
    three_times(detail::timer_wheel& in, async_event& at_the_end)
        : in_{in}
        , at_the_end_{at_the_end} {
        in_.insert_after(*this, 0ns);
    }

private:
    void expired() noexcept override {
        if (--left_ == 0) return at_the_end_.set();
        in_.insert_after(*this, 1ms);
    }
    detail::timer_wheel& in_;
    async_event& at_the_end_;
    int left_ = 3;
};

// The loop used to sleep until another timer was due: the rest of an answer, which is tried again
// at such times, stayed in the server.
TEST_P(rearmed_timer_test, the_loop_wakes_up_for_it) {
    run([]() -> task<> {
        detail::scope& within = co_await detail::own_scope{};
        async_event has_ended;
        const three_times timer{detail::timed_queue::of(within).timers, has_ended};
        EXPECT_TRUE(co_await has_ended.wait());
    });
}

INSTANTIATE_TEST_SUITE_P(backends, rearmed_timer_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
