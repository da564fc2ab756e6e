#pragma once
// main_signals: how run() handles SIGINT and SIGTERM on the main thread. Layer runtime, private.

#include <simplenet/coro/spawn.hpp>
#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/threads/detail/posted.hpp>

#include <array>
#include <atomic>

#include <csignal>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Stops the main task of a run() at the first of these signals, and lets the second one kill.
///
/// Leaves alone signals that the program handles, ignores or blocks. Does nothing at all on other
/// threads than the main one.
///
/// Encloses the loop. Its destructor restores the previous actions, and raises a signal that came
/// when there was no main task left to stop.
class main_signals final : private posted {
public:
    explicit main_signals(bool wanted) noexcept;
    ~main_signals();

    /// From here on a signal stops `main`, which runs on `loop`.
    void begin(event_loop& loop, join_handle<> main) noexcept;
    /// The loop may be destroyed now.
    void end() noexcept;

private:
    struct installed {
        int number;
        bool active = false;
        struct sigaction before{};
    };

    static void handle(int number) noexcept;
    /// In a signal handler. False: not the first signal.
    [[nodiscard]] bool take(int number) noexcept;

    void run() noexcept override;
    void drop() noexcept override {} // part of this

    std::array<installed, 2> signals_{{{SIGINT}, {SIGTERM}}};
    std::atomic<event_loop*> loop_ = nullptr; // while it can be posted to
    std::atomic<int> first_ = 0;              // the first signal
    bool heeded_ = false;                     // it stopped main
    join_handle<> main_;
};

} // namespace simplenet::v0::detail

#pragma GCC visibility pop
