#pragma once
// stop_everywhere: a task runs undisturbed to record its suspensions, then once for each of them,
// and is stopped there. For composed operations: each suspends several times, and something could
// get lost at every suspension.

#include "backend_test.hpp"
#include "other_coroutines.hpp"
#include "resources.hpp"

#include <simplenet/coro/detail/run_queue.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/task.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

/// A short program, created anew for each run. It contains expectations, but does not end the test.
class scenario {
public:
    scenario() = default;
    scenario(const scenario&) = delete;
    scenario& operator=(const scenario&) = delete;
    virtual ~scenario() = default;

    /// The task that is stopped at each of its suspensions.
    virtual task<> subject() = 0;
    /// The other side. It is stopped as well, when the subject has ended.
    virtual task<> partner() { co_return; }
    /// Runs last and is never stopped: checks what the stop must have left intact.
    virtual task<> verify() { co_return; }

protected:
    /// For verify(): the subject was stopped, though perhaps after its last operation.
    [[nodiscard]] bool stopped() const { return stopped_; }
    /// Expects that `outcome` is a success, or the failure of a stopped operation.
    template <class Outcome>
    void expect_success_or_stop(const Outcome& outcome) const {
        if (outcome) return;
        EXPECT_TRUE(stopped_) << "failed without a stop: "
                              << std::error_code{outcome.error()}.message();
        EXPECT_EQ(std::error_code{outcome.error()}, std::errc::operation_canceled);
    }

    /// Expects that `outcome`, of an operation that was not stopped, is a success. At the end of
    /// the loop, nothing succeeds.
    template <class Outcome>
    bool expect_success(const Outcome& outcome) const {
        if (outcome || loop_ends_) return static_cast<bool>(outcome);
        ADD_FAILURE() << std::error_code{outcome.error()}.message();
        return false;
    }

private:
    friend class stop_everywhere_test;
    bool stopped_ = false;
    bool loop_ends_ = false;
};

class stop_everywhere_test : public backend_test {
protected:
    /// Runs `Scenario` once undisturbed, then stops its subject at each of its suspensions: as soon
    /// as it waits, one turn later, and by the end of the loop, the latter also below a coroutine
    /// of another library. In no case may a frame or a descriptor leak.
    template <class Scenario>
    void stop_everywhere() {
        const int suspensions = run_once<Scenario>(manner::undisturbed, 0);
        if (HasFatalFailure() || IsSkipped()) return;
        ASSERT_GT(suspensions, 0) << "the subject never waits: there is nothing to stop";

        const resources before = resources::now(); // includes what the first run opened for good
        int stops = 0;
        for (const manner how : {manner::at_once, manner::next_turn, manner::end_of_loop,
                                 manner::end_of_loop_outside}) {
            for (int at = 1; at <= suspensions; ++at) {
                const ::testing::ScopedTrace where{__FILE__, __LINE__,
                                                   std::string{name_of(how)} + " at suspension " +
                                                       std::to_string(at) + " of " +
                                                       std::to_string(suspensions)};
                run_once<Scenario>(how, at);
                stops += stopper_->has_struck ? 1 : 0;
                expect_nothing_left(before);
                if (HasFailure()) return;
            }
        }
        EXPECT_GT(stops, suspensions) << "too few runs were stopped to test anything";
    }

private:
    enum class manner { undisturbed, at_once, next_turn, end_of_loop, end_of_loop_outside };
    [[nodiscard]] static bool ends_loop(manner how) {
        return how == manner::end_of_loop || how == manner::end_of_loop_outside;
    }
    static const char* name_of(manner how) {
        switch (how) {
        case manner::undisturbed:
            return "undisturbed";
        case manner::at_once:
            return "stopped";
        case manner::next_turn:
            return "stopped one turn later";
        case manner::end_of_loop:
            return "the loop is destroyed";
        case manner::end_of_loop_outside:
            return "the loop is destroyed, below a coroutine of another library";
        }
        return "";
    }

    // Waits for the n-th suspension below the subject. It stops from the ready list, because it
    // must not act in the middle of a suspension.
    class stopper final : public detail::suspension_observer, public detail::ready_node {
    public:
        stopper() noexcept {} // not defaulted: Clang needs the members' values before it has them

        void on_suspend(const detail::scope& within) noexcept override {
            if (subject == nullptr) return; // the subject has not begun
            for (const detail::scope* each = &within; each != subject; each = each->enclosing) {
                if (each == nullptr) return;
            }
            if (++seen == strike_at) queue->push(*this);
        }
        void run() noexcept override {
            if (how == manner::next_turn && !std::exchange(has_waited, true)) {
                queue->push(*this);
                return;
            }
            if (handle == nullptr) return; // the subject was faster
            has_struck = true;
            of->stopped_ = true;
            if (ends_loop(how)) {
                of->loop_ends_ = true;
                loop->stop();
            } else {
                handle->request_stop();
            }
        }

        manner how = manner::undisturbed;
        int strike_at = 0;
        event_loop* loop = nullptr;
        scenario* of = nullptr;

        const detail::scope* subject = nullptr;
        detail::run_queue* queue = nullptr;
        join_handle<>* handle = nullptr;
        int seen = 0;
        bool has_waited = false;
        bool has_struck = false;
    };

    template <class Scenario>
    int run_once(manner how, int at) {
        remake_loop();
        if (IsSkipped()) return 0;
        Scenario scene;
        stopper_.emplace();
        stopper_->how = how;
        stopper_->strike_at = at;
        stopper_->loop = &loop();
        stopper_->of = &scene;
        bool ended = false;
        loop().spawn(conduct(scene, ended));
        const bool in_time = loop().run_for(test_limit);
        if (!stopper_->has_struck || !ends_loop(how)) {
            EXPECT_TRUE(in_time && ended) << "the scenario hangs";
        }
        destroy_loop(); // before the scenario, to which its tasks refer
        return stopper_->seen;
    }

    task<> conduct(scenario& scene, bool& ended) {
        auto& queue = detail::run_queue::require_current();
        auto partner = spawn(scene.partner());
        auto subject = stopper_->how == manner::end_of_loop_outside ? spawn(observed_outside(scene))
                                                                    : spawn(observed(scene));
        stopper_->queue = &queue;
        stopper_->handle = &subject;
        queue.observer = &*stopper_;
        const handle_guard forget{&*stopper_};
        co_await subject;
        stopper_->handle = nullptr;
        queue.observer = nullptr;
        partner.request_stop();
        co_await partner;
        if (!scene.loop_ends_) co_await scene.verify();
        ended = true;
    }
    task<> observed(scenario& scene) {
        stopper_->subject = stopper_->queue->here;
        co_await scene.subject();
    }
    task<> observed_outside(scenario& scene) { co_await from_outside(observed(scene)); }
    // The end of a loop destroys conduct() in mid-execution.
    struct handle_guard {
        stopper* of;
        ~handle_guard() { of->handle = nullptr; }
    };

    std::optional<stopper> stopper_; // outlives the loop it is queued on
};

} // namespace simplenet::v0::testing
