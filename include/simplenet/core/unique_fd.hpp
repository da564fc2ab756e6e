#pragma once
// unique_fd: the sole owner of a file descriptor. Layer core.

#include <utility>

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

namespace detail {
/// close(2), once. Never retried on EINTR: Linux has already released the number, and by the next
/// call it could be another thread's descriptor (close(2), NOTES).
void close_descriptor(int fd) noexcept;
} // namespace detail

/// Owns one descriptor or none. Closing ignores errors: for a socket nothing can be done about
/// them, and the descriptor is gone in every case.
class [[nodiscard]] unique_fd {
public:
    constexpr unique_fd() noexcept = default;
    /// Takes ownership of `fd`; a negative number owns nothing.
    explicit constexpr unique_fd(int fd) noexcept
        : fd_{fd < 0 ? -1 : fd} {}
    unique_fd(unique_fd&& other) noexcept
        : fd_{std::exchange(other.fd_, -1)} {}
    unique_fd& operator=(unique_fd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~unique_fd() { reset(); }

    /// Closes the owned descriptor and takes ownership of `fd`.
    void reset(int fd = -1) noexcept {
        if (fd_ >= 0 && fd_ != fd) detail::close_descriptor(fd_);
        fd_ = fd < 0 ? -1 : fd;
    }
    /// Gives the descriptor away; the caller closes it.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

    /// The descriptor, or -1.
    [[nodiscard]] constexpr int get() const noexcept { return fd_; }
    explicit constexpr operator bool() const noexcept { return fd_ >= 0; }

    friend void swap(unique_fd& left, unique_fd& right) noexcept { std::swap(left.fd_, right.fd_); }

private:
    int fd_ = -1;
};

} // namespace simplenet::v0

#pragma GCC visibility pop
