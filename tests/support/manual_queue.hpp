#pragma once
// manual_queue: a run_queue that a test turns by hand. Without clock or I/O, every run is the same.

#include <simplenet/coro/spawn.hpp>

#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace simplenet::v0::testing {

/// Runs tasks on the thread of the test, which is its loop thread as long as it lives.
///
/// Its destructor does the same as a loop's: stops everything, runs on, destroys the rest.
class manual_queue final : public detail::run_queue {
public:
    manual_queue() noexcept = default;
    ~manual_queue() { teardown(); }

    /// Runs everything that is ready; returns how much that was.
    std::size_t turn() { return run_ready(); }

    /// Turns until nothing is ready. Tasks that have not ended then wait for something.
    void turn_until_idle() {
        constexpr std::size_t too_many = 50'000'000;
        for (std::size_t ran = 0; has_ready(); ran += turn()) {
            if (ran < too_many) continue;
            ADD_FAILURE() << "the test did not come to rest";
            return;
        }
    }

    template <class... Work>
    auto spawn(Work&&... work) {
        return detail::spawn_on(*this, std::forward<Work>(work)...);
    }

    /// Runs `main` to the end, and returns or rethrows its result.
    template <class T>
    T run(task<T> main) {
        detail::result_slot<T> slot;
        bool ended = false;
        spawn(keep_result(std::move(main), slot, ended));
        turn_until_idle();
        if (!ended) throw std::logic_error{"the task waits for something that does not happen"};
        return slot.take();
    }
    /// The same for a callable that returns a task. The callable lives until the task has ended.
    template <std::invocable Body>
    auto run(Body body) {
        return run(body());
    }

    /// Chains that have not ended.
    [[nodiscard]] std::size_t live() const noexcept { return live_chains(); }

    /// Does the work of a loop's destructor, once.
    void teardown() noexcept {
        begin_teardown();
        while (live_chains() != 0 && has_ready())
            turn();
        destroy_chains();
    }

private:
    template <class T>
    static task<> keep_result(task<T> main, detail::result_slot<T>& slot, bool& ended) {
        try {
            if constexpr (std::is_void_v<T>) {
                co_await std::move(main);
                slot.return_void();
            } else {
                slot.return_value(co_await std::move(main));
            }
        } catch (...) {
            slot.unhandled_exception();
        }
        ended = true;
    }

    activation active_{*this};
};

} // namespace simplenet::v0::testing
