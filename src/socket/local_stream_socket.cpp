#include <simplenet/socket/local_stream_socket.hpp>

#include "socket/streams.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <array>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include <sys/socket.h>

namespace simplenet::v0 {
namespace detail::streams {

namespace {

// Linux 6.5, SO_PASSPIDFD: also a descriptor, which arrives unasked if the option is set.
constexpr int scm_pidfd = 0x04;

/// The descriptors of one message, until they are moved into a vector.
class arrivals {
public:
    explicit arrivals(msghdr& message) noexcept {
        for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
            if (at->cmsg_level != SOL_SOCKET) continue;
            if (at->cmsg_type == SCM_RIGHTS || at->cmsg_type == scm_pidfd) take(*at);
        }
    }

    [[nodiscard]] std::span<unique_fd> all() noexcept { return std::span{owned_}.first(count_); }

private:
    void take(const cmsghdr& header) noexcept {
        const auto* const data = CMSG_DATA(&header);
        const std::size_t size = header.cmsg_len - CMSG_LEN(0);
        for (std::size_t at = 0; at + sizeof(int) <= size; at += sizeof(int)) {
            int fd = -1;
            std::memcpy(&fd, data + at, sizeof fd);
            unique_fd owned{fd};
            if (header.cmsg_type == SCM_RIGHTS && count_ != owned_.size())
                owned_[count_++] = std::move(owned);
        }
    }

    std::array<unique_fd, most_descriptors> owned_;
    std::size_t count_ = 0;
};

} // namespace

std::ptrdiff_t send_descriptors(int fd, const_buffer bytes,
                                std::span<const int> descriptors) noexcept {
    SIMPLENET_EXPECTS(!bytes.empty(), "descriptors travel with at least one byte");
    SIMPLENET_EXPECTS(descriptors.size() <= most_descriptors, "callers check the number");
    iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(most_descriptors * sizeof(int))> control;
    if (!descriptors.empty()) {
        message.msg_control = control.data();
        message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    return sys::sendmsg(fd, message);
}

std::ptrdiff_t receive_descriptors(int fd, mutable_buffer bytes, std::size_t most,
                                   std::vector<unique_fd>& into,
                                   std::error_code& refused) noexcept {
    SIMPLENET_EXPECTS(!bytes.empty(), "receive_descriptors() into an empty buffer");
    // For other control messages that socket options may add: credentials, a pidfd, a security
    // label.
    constexpr std::size_t others = 1024;
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(most_descriptors * sizeof(int)) + others>
        control;
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t count = sys::recvmsg(fd, message);
    if (count <= 0) return count;

    arrivals came{message};
    const std::span<unique_fd> all = came.all();
    if ((message.msg_flags & MSG_CTRUNC) != 0) {
        // There was enough room, so the kernel could not open the descriptors (unix(7)).
        refused = std::make_error_code(std::errc::too_many_files_open);
    } else if (all.size() > most) {
        refused = make_error_code(errc::limit_exceeded);
    } else {
        try {
            into.assign(std::move_iterator{all.begin()}, std::move_iterator{all.end()});
        } catch (const std::bad_alloc&) {
            refused = std::make_error_code(std::errc::not_enough_memory);
        }
    }
    return count;
}

} // namespace detail::streams

result<std::size_t>
local_stream_socket::send_descriptors(const_buffer bytes,
                                      std::span<const int> descriptors) noexcept {
    if (descriptors.size() > most_descriptors) return fail(errc::limit_exceeded);
    return detail::sys::to_count(
        detail::streams::send_descriptors(native_handle(), bytes, descriptors));
}

std::expected<received_descriptors, transfer_error>
local_stream_socket::receive_descriptors(mutable_buffer into, std::size_t most) {
    std::vector<unique_fd> came;
    std::error_code refused;
    const std::ptrdiff_t outcome =
        detail::streams::receive_descriptors(native_handle(), into, most, came, refused);
    if (outcome == 0) return std::unexpected{transfer_error{.code = errc::end_of_stream}};
    if (outcome < 0)
        return std::unexpected{transfer_error{.code = detail::sys::error_from(outcome)}};
    const auto size = static_cast<std::size_t>(outcome);
    if (refused) return std::unexpected{transfer_error{.code = refused, .transferred = size}};
    return received_descriptors{size, std::move(came)};
}

} // namespace simplenet::v0
