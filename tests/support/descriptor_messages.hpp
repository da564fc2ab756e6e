#pragma once
// A peer that passes descriptors with plain system calls.

#include "support/raw_peer.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace simplenet::v0::testing {

/// Sends `text` and descriptors with one plain sendmsg(2); returns its errno, or 0.
inline int try_to_send_with(int from, std::string_view text, std::span<const int> fds) {
    iovec bytes{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(253 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    const ssize_t sent = ::sendmsg(from, &message, MSG_NOSIGNAL);
    if (sent < 0) return errno;
    EXPECT_EQ(sent, static_cast<ssize_t>(text.size()));
    return 0;
}
inline int try_to_send_with(const raw_peer& from, std::string_view text, std::span<const int> fds) {
    return try_to_send_with(from.fd(), text, fds);
}
/// Sends all of it.
inline void send_with(int from, std::string_view text, std::span<const int> fds) {
    EXPECT_EQ(try_to_send_with(from, text, fds), 0);
}
inline void send_with(const raw_peer& from, std::string_view text, std::span<const int> fds) {
    send_with(from.fd(), text, fds);
}

struct message_with_descriptors {
    std::string text;
    std::vector<unique_fd> descriptors;
};

/// Receives once with plain recvmsg(2).
inline message_with_descriptors receive_with(const raw_peer& at) {
    message_with_descriptors got;
    got.text.resize(65536);
    iovec bytes{.iov_base = got.text.data(), .iov_len = got.text.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(253 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    got.text.resize(
        static_cast<std::size_t>(checked(::recvmsg(at.fd(), &message, MSG_CMSG_CLOEXEC))));
    if (const cmsghdr* const header = CMSG_FIRSTHDR(&message)) {
        const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t each = 0; each < count; ++each) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(header) + each * sizeof fd, sizeof fd);
            got.descriptors.emplace_back(fd);
        }
    }
    return got;
}

/// Whether both descriptors refer to the same file.
inline bool same_file(int one, int other) {
    struct stat left{};
    struct stat right{};
    return ::fstat(one, &left) == 0 && ::fstat(other, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

} // namespace simplenet::v0::testing
