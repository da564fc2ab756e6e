#pragma once
// dump_signal: prints the tasks of a loop when a signal comes. Layer insight, private.

#include <simplenet/core/error.hpp>
#include <simplenet/threads/detail/posted.hpp>

#include <atomic>

namespace simplenet::v0::detail {

class loop;

/// Owned by its loop. The signal may come to any thread; its handler posts this to the loop.
class dump_signal final : private posted {
public:
    explicit dump_signal(loop& of) noexcept
        : loop_{of} {}
    ~dump_signal() { disarm(); }

    /// @par Errors
    /// - `std::errc::invalid_argument`: no signal that can be handled.
    /// - `std::errc::not_enough_memory`: 256 loops do so already.
    [[nodiscard]] result<> arm(int signal);
    /// From here on it is not posted any more; it may be in the inbox still.
    void disarm() noexcept;

private:
    static void handle(int signal) noexcept;
    void run() noexcept override;
    void drop() noexcept override { posted_ = false; }

    loop& loop_;
    int signal_ = 0; // 0: not armed
    std::size_t slot_ = 0;
    std::atomic<bool> posted_ = false; // it is in the inbox
};

} // namespace simplenet::v0::detail
