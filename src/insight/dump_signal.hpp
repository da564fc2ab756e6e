#pragma once
// dump_signal: prints the tasks of a loop on a signal. Layer insight, private.

#include <simplenet/core/error.hpp>
#include <simplenet/threads/detail/posted.hpp>

#include <atomic>

namespace simplenet::v0::detail {

class loop;

/// Owned by its loop. Any thread may receive the signal; the handler posts this object to the loop.
class dump_signal final : private posted {
public:
    explicit dump_signal(loop& of) noexcept
        : loop_{of} {}
    ~dump_signal() { disarm(); }

    /// @par Errors
    /// - `std::errc::invalid_argument`: not a signal that can be handled.
    /// - `std::errc::not_enough_memory`: 256 loops already do so.
    [[nodiscard]] result<> arm(int signal);
    /// After this it is not posted any more; it may still be in the inbox.
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
