#pragma once
// epoll_state, uring_state: the state of each backend in the record of a socket. Layer io, private.

#include <simplenet/core/detail/contract.hpp>

#include <cstdint>

namespace simplenet::v0::detail {

struct epoll_state {
    std::uint32_t slot = 0;    // 0: not registered
    bool watches_room = false; // registered for room to write, too
};

/// A multishot entry of a record: it continues until it is canceled or ends by itself.
class multishot {
public:
    [[nodiscard]] bool armed() const noexcept { return at_ != state::none; }
    [[nodiscard]] bool canceling() const noexcept { return at_ == state::canceling; }

    void arm() noexcept { note(event::armed); }
    void cancel() noexcept { note(event::canceled); }
    void cancel_failed() noexcept { note(event::cancel_failed); }
    void end() noexcept { note(event::ended); }

private:
    // none       the kernel has no such entry
    // armed      it has one
    // canceling  it has one, and a cancel of it
    enum class state : std::uint8_t { none, armed, canceling };
    enum class event : std::uint8_t { armed, canceled, cancel_failed, ended };

    void note(event what) noexcept {
        [[maybe_unused]] bool possible = true; // used only by debug checks
        switch (what) {
        case event::armed:
            possible = at_ == state::none;
            at_ = state::armed;
            break;
        case event::canceled:
            possible = at_ == state::armed;
            at_ = state::canceling;
            break;
        case event::cancel_failed:
            possible = at_ == state::canceling;
            at_ = state::armed;
            break;
        case event::ended:
            possible = at_ != state::none;
            at_ = state::none;
            break;
        }
        SIMPLENET_DEBUG_EXPECTS(possible, "an impossible event of a multishot entry");
    }

    state at_ = state::none;
};

struct uring_state {
    multishot inflow;            // a receive, or an accept for a listener
    multishot edges;             // a poll
    bool polls_in_error = false; // a poll found an error instead of the events it waited for
};

} // namespace simplenet::v0::detail
