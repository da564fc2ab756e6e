#include "simulation/simulated_calls.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <optional>
#include <span>

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

namespace simplenet::v0::simulation {

namespace {

using detail::sys::call;
using detail::sys::pending_call;

/// Calls that a signal handler can interrupt before they have any effect, and that the library then
/// repeats.
bool is_interruptible(call which) noexcept {
    switch (which) {
    case call::accept:
    case call::recv:
    case call::recvmsg:
    case call::send:
    case call::sendmsg:
    case call::sendto:
        return true;
    default:
        return false;
    }
}

/// A call for several messages, made of calls for one.
template <class One>
long for_messages(const pending_call& asked, One one) {
    auto* const messages = asked.argument<mmsghdr*>(1);
    const auto count = asked.argument<unsigned>(2);
    long done = 0;
    for (mmsghdr& each : std::span{messages, count}) {
        const ssize_t outcome = one(each.msg_hdr);
        if (outcome < 0) return done == 0 ? outcome : done;
        each.msg_len = static_cast<unsigned>(outcome);
        ++done;
    }
    return done;
}

/// A message for calls that have an address beside the bytes.
msghdr message_of(iovec& bytes, sockaddr* name, socklen_t size) noexcept {
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_name = name;
    message.msg_namelen = size;
    return message;
}

iovec bytes_of(const pending_call& asked) noexcept {
    return {.iov_base = asked.argument<void*>(1), .iov_len = asked.argument<std::size_t>(2)};
}

} // namespace

long simulated_calls::on_call(pending_call& asked) noexcept {
    if (std::this_thread::get_id() != thread_) return asked.make();
    return answer(asked);
}

long simulated_calls::answer(pending_call& asked) {
    const auto fd = [&] { return asked.descriptor(); };
    switch (asked.which()) {
    case call::socket:
        return net_.socket(asked.argument<int>(0), asked.argument<int>(1));
    case call::socketpair: {
        int ends[2] = {-1, -1};
        const int outcome = net_.socketpair(asked.argument<int>(1), ends);
        std::copy(ends, ends + 2, asked.argument<int*>(3));
        return outcome;
    }
    case call::close:
        return net_.owns(fd()) ? net_.close(fd()) : (net_.closed_elsewhere(fd()), asked.make());
    case call::epoll_ctl:
        return net_.epoll_control(fd(), asked.argument<int>(1), asked.argument<int>(2),
                                  asked.argument<epoll_event*>(3));
    case call::epoll_wait:
    case call::epoll_pwait2: {
        const std::span events{asked.argument<epoll_event*>(1),
                               static_cast<std::size_t>(asked.argument<int>(2))};
        std::optional<nanoseconds> timeout;
        if (asked.which() == call::epoll_pwait2) {
            if (const auto* const time = asked.argument<const timespec*>(3); time != nullptr) {
                timeout = std::chrono::seconds{time->tv_sec} + nanoseconds{time->tv_nsec};
            }
        } else if (const int ms = asked.argument<int>(3); ms >= 0) {
            timeout = std::chrono::milliseconds{ms};
        }
        return net_.epoll_wait(fd(), events, timeout);
    }
    case call::poll: {
        auto& waited = *asked.argument<pollfd*>(0);
        if (!net_.owns(waited.fd)) return asked.make();
        waited.revents = static_cast<short>(net_.poll(waited.fd, waited.events));
        return waited.revents == 0 ? 0 : 1;
    }
    case call::lstat: {
        if (!net_.has_path(asked.argument<const char*>(0))) return asked.make();
        auto& found = *asked.argument<struct stat*>(1);
        found = {};
        found.st_mode = S_IFSOCK;
        return 0;
    }
    case call::unlink: {
        const int outcome = net_.unlink(asked.argument<const char*>(0));
        return outcome == 0 ? 0 : asked.make();
    }
    case call::splice:
        // Like sockets that cannot: async_copy() then does without.
        if (net_.owns(fd()) || net_.owns(asked.argument<int>(2))) return -EINVAL;
        return asked.make();
    default:
        break;
    }

    if (!net_.owns(fd())) return asked.make();
    if (is_interruptible(asked.which()) && net_.interrupts()) return -EINTR;
    switch (asked.which()) {
    case call::bind:
        return net_.bind(fd(), asked.argument<const sockaddr*>(1), asked.argument<socklen_t>(2));
    case call::listen:
        return net_.listen(fd(), asked.argument<int>(1));
    case call::accept:
        return net_.accept(fd());
    case call::connect:
        return net_.connect(fd(), asked.argument<const sockaddr*>(1), asked.argument<socklen_t>(2));
    case call::shutdown:
        return net_.shutdown(fd(), asked.argument<int>(1));
    case call::getsockname:
        return net_.getsockname(fd(), asked.argument<sockaddr*>(1), *asked.argument<socklen_t*>(2));
    case call::getpeername:
        return net_.getpeername(fd(), asked.argument<sockaddr*>(1), *asked.argument<socklen_t*>(2));
    case call::setsockopt:
        return net_.setsockopt(fd(), asked.argument<int>(1), asked.argument<int>(2),
                               asked.argument<const void*>(3), asked.argument<socklen_t>(4));
    case call::getsockopt:
        return net_.getsockopt(fd(), asked.argument<int>(1), asked.argument<int>(2),
                               asked.argument<void*>(3), *asked.argument<socklen_t*>(4));
    case call::recv:
        return net_.recv(fd(), asked.argument<void*>(1), asked.argument<std::size_t>(2),
                         asked.argument<int>(3));
    case call::send:
        return net_.send(fd(), asked.argument<const void*>(1), asked.argument<std::size_t>(2),
                         asked.argument<int>(3));
    case call::recvfrom: {
        iovec bytes = bytes_of(asked);
        auto& size = *asked.argument<socklen_t*>(5);
        msghdr message = message_of(bytes, asked.argument<sockaddr*>(4), size);
        const ssize_t outcome = net_.recvmsg(fd(), message, asked.argument<int>(3));
        size = message.msg_namelen;
        return outcome;
    }
    case call::sendto: {
        iovec bytes = bytes_of(asked);
        const msghdr message =
            message_of(bytes, asked.argument<sockaddr*>(4), asked.argument<socklen_t>(5));
        return net_.sendmsg(fd(), message, asked.argument<int>(3));
    }
    case call::recvmsg:
        return net_.recvmsg(fd(), *asked.argument<msghdr*>(1), asked.argument<int>(2));
    case call::sendmsg:
        return net_.sendmsg(fd(), *asked.argument<const msghdr*>(1), asked.argument<int>(2));
    case call::recvmmsg:
        return for_messages(
            asked, [&](msghdr& each) { return net_.recvmsg(fd(), each, asked.argument<int>(3)); });
    case call::sendmmsg:
        return for_messages(asked, [&](const msghdr& each) {
            return net_.sendmsg(fd(), each, asked.argument<int>(3));
        });
    case call::ioctl: {
        auto& answer = *asked.argument<int*>(2);
        const bool unread = asked.argument<unsigned long>(1) == SIOCINQ;
        answer = static_cast<int>(unread ? net_.waiting_at(fd()) : net_.unsent_at(fd()));
        return 0;
    }
    case call::sendfile:
        return net_.sendfile(fd(), asked.argument<int>(1), *asked.argument<off_t*>(2),
                             asked.argument<std::size_t>(3));
    default:
        return asked.make(); // fcntl(2) of the real descriptor
    }
}

} // namespace simplenet::v0::simulation
