#pragma once
// background_loop: a loop on another thread, for tests that cross threads.

#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <latch>
#include <thread>
#include <utility>

namespace simplenet::v0::testing {

/// A loop on a thread of its own, until it is ended.
class background_loop {
public:
    explicit background_loop(loop_options options) {
        std::latch made{1};
        thread_ = std::jthread{[this, options, &made] {
            event_loop loop = or_throw(event_loop::create(options));
            auto for_ever = []() -> task<> {
                static_cast<void>(co_await async_sleep(std::chrono::hours{24}));
            };
            loop.spawn(for_ever());
            loop_ = &loop;
            made.count_down();
            loop.run();
        }};
        made.wait();
    }
    background_loop(const background_loop&) = delete;
    background_loop& operator=(const background_loop&) = delete;
    ~background_loop() { end(); }

    /// Stops and destroys the loop with everything on it.
    void end() {
        if (loop_ == nullptr) return;
        std::exchange(loop_, nullptr)->stop();
        thread_.join();
    }
    event_loop& operator*() const { return *loop_; }
    event_loop* operator->() const { return loop_; }

private:
    event_loop* loop_ = nullptr;
    std::jthread thread_;
};

} // namespace simplenet::v0::testing
