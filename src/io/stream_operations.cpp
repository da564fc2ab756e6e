#include <simplenet/io/detail/stream_operations.hpp>

#include "io/attempts.hpp"
#include "io/socket_record.hpp"

#include <cerrno>
#include <cstddef>

namespace simplenet::v0::detail {

// An error that a peek takes from the kernel is kept for the next read: on epoll, too, that one
// then asks the backend, which tells it.
bool readable_operation::perform() noexcept {
    socket_record& of = *record;
    if (!of.ahead.empty() || of.brought || of.end != 0) return true;
    // Bytes in the socket belong to the receive that the kernel has: no read takes them before.
    if (of.uring.inflow.armed()) {
        of.readable = false;
        return false;
    }
    std::byte first{};
    const ssize_t count = sys::recv(of.fd, &first, sizeof first, MSG_PEEK);
    if (count == -EAGAIN) {
        of.readable = false;
        return false;
    }
    of.readable = true;
    if (count < 0) {
        of.end = static_cast<int>(-count);
        of.reads = reading::by_driver;
    }
    return true;
}

const char* readable_operation::name() const noexcept {
    return "readable";
}

bool is_read_directly(const socket_record& of) noexcept {
    return of.reads_directly();
}

bool is_silent(const socket_record& of, silence by) noexcept {
    if (!of.is_open() || of.brought || !of.ahead.empty() || of.end != 0 || of.read_error() != 0) {
        return false;
    }
    if (by == silence::by_last_poll && of.receiving && !of.readable) return true;
    // A receive that the kernel has may have taken bytes that no poll has seen yet; an end stays.
    std::byte first{};
    return sys::recv(of.fd, &first, sizeof first, MSG_PEEK) == -EAGAIN;
}

} // namespace simplenet::v0::detail
