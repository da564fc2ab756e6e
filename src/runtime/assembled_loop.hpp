#pragma once
// assembled_loop: a loop with its backend and its observers. Layer runtime, private.

#include "insight/dump_signal.hpp"
#include "insight/loop_survey.hpp"
#include "insight/watchdog.hpp"
#include "loop/loop.hpp"

#include <memory>
#include <utility>

namespace simplenet::v0::detail {

/// The loop inside an event_loop.
class assembled_loop final : public loop {
public:
    [[nodiscard]] static result<std::unique_ptr<assembled_loop>>
    create(const loop_options& options);
    explicit assembled_loop(const loop_options& options) noexcept
        : loop{options} {}
    ~assembled_loop() { tear_down(); }

    /// Any thread, also after the end.
    [[nodiscard]] backend kind() const noexcept { return kind_; }

    /// `owner` is about to run it, on this thread.
    void enter(event_loop& owner) {
        facade = &owner;
        if (options().stall_threshold > nanoseconds::zero() && !watched_ && !is_inherited()) {
            watch(*this);
            watched_ = true;
        }
    }

    /// Among the loops of the process.
    [[nodiscard]] const survey_place& place() const noexcept { return survey_place_; }

    /// See loop::tear_down(). `owner` must be complete meanwhile.
    void tear_down() noexcept {
        dump_signal_.disarm();
        survey_place_.leave();
        loop::tear_down();
        if (std::exchange(watched_, false)) unwatch(*this);
    }

private:
    dump_signal dump_signal_{*this};
    survey_place survey_place_;
    backend kind_ = backend::automatic; // before it has a driver
    bool watched_ = false;
};

} // namespace simplenet::v0::detail
