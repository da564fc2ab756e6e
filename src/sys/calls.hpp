#pragma once
// The system calls of sockets and loops, wrapped as thinly as possible. Layer sys, private: all
// higher layers make their calls on descriptors through these functions, and never read errno.
//
// Every function returns the result of the call, or the negated errno: the form that io_uring uses
// for its completions, so both backends share it. EINTR is retried if nothing has happened yet;
// close() and connect() document why they differ.

#include "sys/seam.hpp"

#include <simplenet/core/error.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <system_error>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

namespace simplenet::v0::detail::sys {

/// The error of a negative outcome, in `std::system_category()`.
///
/// @pre `negative_errno < 0`.
[[nodiscard]] std::error_code error_from(ssize_t negative_errno) noexcept;

/// The outcome of a call without a value.
[[nodiscard]] inline result<> to_result(int outcome) noexcept {
    if (outcome < 0) return fail(error_from(outcome));
    return {};
}

/// The outcome of a call that counts bytes.
[[nodiscard]] inline result<std::size_t> to_count(ssize_t outcome) noexcept {
    if (outcome < 0) return fail(error_from(outcome));
    return static_cast<std::size_t>(outcome);
}

/// Repeats the call while a signal handler interrupts it. For calls for which EINTR means that
/// nothing has happened.
template <class Call>
[[nodiscard]] auto uninterrupted(Call call) noexcept -> decltype(call()) {
    for (;;) {
        const auto outcome = call();
        if (outcome >= 0) return outcome;
        if (errno != EINTR) return static_cast<decltype(call())>(-errno);
    }
}

// Transfers. Inline: a round trip has hardly any other system calls, and a call across the library
// boundary gains nothing.

/// recv(2). 0 is the peer's end of stream; on a datagram socket an empty datagram.
// EAGAIN: the socket is O_NONBLOCK (or has SO_RCVTIMEO) and has no data.
// ECONNRESET: the peer aborted. Reported once; after that recv() reports the end of the stream.
[[nodiscard]] inline ssize_t recv(int fd, void* data, std::size_t size, int flags = 0) noexcept {
    return uninterrupted([&] { return made<call::recv>(::recv, fd, data, size, flags); });
}

/// send(2). Never raises SIGPIPE.
// EAGAIN: the send buffer is full, or the TCP connection is still being established.
// EPIPE: our side was shut down, or the peer's abort was already reported.
// ENOBUFS, ENOMEM: the kernel is short of memory; the bytes were not taken.
[[nodiscard]] inline ssize_t send(int fd, const void* data, std::size_t size,
                                  int flags = 0) noexcept {
    return uninterrupted(
        [&] { return made<call::send>(::send, fd, data, size, flags | MSG_NOSIGNAL); });
}

/// The outcome of a call that has just returned -1.
[[gnu::cold]] ssize_t failure() noexcept;

/// recv() and send(), once: if they return -1, failure() gives the outcome that the others return,
/// including EINTR.
// For the hottest places: a loop around the call keeps its arguments in registers that have to be
// saved, a fifth of the cost of starting a write; and one comparison finds both failures and counts
// that need more work.
[[nodiscard]] inline ssize_t recv_once(int fd, void* data, std::size_t size) noexcept {
    return made<call::recv>(::recv, fd, data, size, 0);
}
[[nodiscard]] inline ssize_t send_once(int fd, const void* data, std::size_t size,
                                       int flags = 0) noexcept {
    return made<call::send>(::send, fd, data, size, flags | MSG_NOSIGNAL);
}

/// recvmsg(2). Received descriptors are CLOEXEC.
[[nodiscard]] inline ssize_t recvmsg(int fd, msghdr& message, int flags = 0) noexcept {
    return uninterrupted(
        [&] { return made<call::recvmsg>(::recvmsg, fd, &message, flags | MSG_CMSG_CLOEXEC); });
}

/// sendmsg(2). Never raises SIGPIPE.
[[nodiscard]] inline ssize_t sendmsg(int fd, const msghdr& message, int flags = 0) noexcept {
    return uninterrupted(
        [&] { return made<call::sendmsg>(::sendmsg, fd, &message, flags | MSG_NOSIGNAL); });
}

/// sendmsg(2) of `buffers` in order, at most IOV_MAX of them.
[[nodiscard]] inline ssize_t sendv(int fd, std::span<iovec> buffers, int flags = 0) noexcept {
    msghdr message{};
    message.msg_iov = buffers.data();
    message.msg_iovlen = buffers.size();
    return sendmsg(fd, message, flags);
}

/// recvfrom(2). With MSG_TRUNC in `flags` returns the length of the datagram, even if not all of it
/// fitted.
// ECONNREFUSED on a connected UDP socket: an ICMP error for an earlier datagram. The socket stays
// usable; nothing was received.
[[nodiscard]] inline ssize_t recvfrom(int fd, void* data, std::size_t size, int flags,
                                      sockaddr* from, socklen_t& from_size) noexcept {
    return uninterrupted(
        [&] { return made<call::recvfrom>(::recvfrom, fd, data, size, flags, from, &from_size); });
}

/// sendto(2). Never raises SIGPIPE.
[[nodiscard]] inline ssize_t sendto(int fd, const void* data, std::size_t size, int flags,
                                    const sockaddr* to, socklen_t to_size) noexcept {
    return uninterrupted([&] {
        return made<call::sendto>(::sendto, fd, data, size, flags | MSG_NOSIGNAL, to, to_size);
    });
}

/// recvmmsg(2): the number of messages received. With MSG_WAITFORONE in `flags` a blocking socket
/// waits only for the first. An error after a message is kept for the next call.
[[nodiscard]] inline int recvmmsg(int fd, std::span<mmsghdr> messages, int flags = 0) noexcept {
    return uninterrupted([&] {
        return made<call::recvmmsg>(::recvmmsg, fd, messages.data(),
                                    static_cast<unsigned>(messages.size()),
                                    flags | MSG_CMSG_CLOEXEC, nullptr);
    });
}

/// sendmmsg(2): the number of messages sent. Never raises SIGPIPE. If an error ended it after some
/// messages, the error is lost: if it persists, sending the next message reports it.
[[nodiscard]] inline int sendmmsg(int fd, std::span<mmsghdr> messages, int flags = 0) noexcept {
    return uninterrupted([&] {
        return made<call::sendmmsg>(::sendmmsg, fd, messages.data(),
                                    static_cast<unsigned>(messages.size()), flags | MSG_NOSIGNAL);
    });
}

/// sendfile(2) from `offset` of `from`; the file's own offset does not move. 0: the file ends
/// there. Never raises SIGPIPE, for which it has no flag: three system calls in all for a full
/// count, four for every other outcome.
/// for every other outcome.
// EAGAIN: the send buffer is full. EINVAL, ENOSYS: `from` cannot be sent that way. ESPIPE: it has
// no offsets, like a pipe.
[[nodiscard]] ssize_t sendfile(int to, int from, off_t offset, std::size_t size) noexcept;

/// splice(2) from a socket into an empty pipe, without waiting. 0: the end of the stream.
// EAGAIN: the socket has no data (a full pipe reports this too). EINVAL: not supported for this
// kind of socket.
[[nodiscard]] ssize_t splice_into_pipe(int from, int pipe, std::size_t size) noexcept;
/// splice(2) from a pipe that holds `size` bytes into a socket, without waiting. Never raises
/// SIGPIPE, like sendfile().
[[nodiscard]] ssize_t splice_from_pipe(int pipe, int to, std::size_t size) noexcept;

/// pipe2(2), CLOEXEC and O_NONBLOCK, with room for `bytes`. If only resizing failed, both ends are
/// set.
// EPERM: this user's pipes already use fs.pipe-user-pages-soft (pipe(7)).
[[nodiscard]] int pipe(int (&ends)[2], std::size_t bytes) noexcept;

/// read(2) from a nonempty pipe.
[[nodiscard]] ssize_t read_pipe(int pipe, void* data, std::size_t size) noexcept;

/// Whether sendfile(2) or splice(2) failed because a sandbox, the kernel or the file does not
/// support it, rather than because of the socket. Nothing has moved: read and write instead.
// ENOSYS, EPERM, EACCES: seccomp(2). EINVAL, EOPNOTSUPP: not supported for this kind of file or
// socket.
[[nodiscard]] bool is_refusal(ssize_t outcome) noexcept;

/// The size of a regular file (fstat(2)); negative for any other one, or on failure.
[[nodiscard]] std::int64_t file_size(int fd) noexcept;

/// Keeps incomplete segments back until it is called with false (TCP_CORK, tcp(7)).
void cork(int fd, bool on) noexcept;
/// Sends what a TCP socket keeps back for more to come.
void push(int fd) noexcept;

/// pread(2).
[[nodiscard]] ssize_t pread(int fd, void* data, std::size_t size, off_t offset) noexcept;

// Creating sockets.

enum class mode { blocking, nonblocking };

/// socket(2), CLOEXEC.
[[nodiscard]] int socket(int domain, int type, int protocol, mode waiting) noexcept;

/// socketpair(2) of AF_UNIX, CLOEXEC.
[[nodiscard]] int socketpair(int type, mode waiting, int (&fds)[2]) noexcept;

/// bind(2).
[[nodiscard]] int bind(int fd, const sockaddr* to, socklen_t size) noexcept;

/// listen(2). The kernel silently reduces `backlog` to net.core.somaxconn.
[[nodiscard]] int listen(int fd, int backlog) noexcept;

/// accept4(2), CLOEXEC. Does not ask for the peer's address: getpeername() provides it on demand,
/// and this way a connection that was already reset is accepted instead of giving ECONNABORTED.
[[nodiscard]] int accept(int fd, mode waiting) noexcept;

/// Whether accept() failed because of the connection it took from the queue, not because of the
/// listener: then call it again. Each such error uses up a connection, so that cannot go on for
/// ever.
[[nodiscard]] bool is_error_of_the_connection(int accept_outcome) noexcept;

/// connect(2), once. EINTR is not retried here, because its meaning depends on the family. TCP
/// continues connecting (a second call would return EALREADY): wait until the socket is writable,
/// then call pending_error(). AF_UNIX has done nothing: call again.
// EINPROGRESS: like EINTR for TCP, on an O_NONBLOCK socket.
// EAGAIN: AF_UNIX: the listener's backlog is full; nothing has begun, and nothing can be waited
// for.
//         TCP: no free local port.
[[nodiscard]] int connect(int fd, const sockaddr* to, socklen_t size) noexcept;

/// Ends a TCP connection with a reset, at once, even if others use the descriptor (connect(2),
/// AF_UNSPEC; RFC 9293, 3.10.5). Operations that wait on it end.
int disconnect(int fd) noexcept;

/// SO_ERROR as a negated errno, 0 if there is none. Reading it clears it.
[[nodiscard]] int pending_error(int fd) noexcept;

/// Bytes that a stream has received and nobody has read (SIOCINQ, tcp(7)); with urgent data, those
/// before it.
[[nodiscard]] int unread_bytes(int fd) noexcept;
/// Bytes written to a stream that the peer has not acknowledged (SIOCOUTQ, tcp(7)), or not read
/// (unix(7)).
[[nodiscard]] int unsent_bytes(int fd) noexcept;

/// shutdown(2). ENOTCONN: never connected, or the peer's reset was already seen.
[[nodiscard]] int shutdown(int fd, int how) noexcept;

/// close(2), once. Never retried: Linux releases the number whatever it returns, even EINTR, and by
/// now it may be another thread's descriptor (close(2), NOTES).
int close(int fd) noexcept;

// Options and names.

/// getsockname(2).
[[nodiscard]] int getsockname(int fd, sockaddr* name, socklen_t& size) noexcept;

/// getpeername(2). ENOTCONN: not connected, or no longer.
[[nodiscard]] int getpeername(int fd, sockaddr* name, socklen_t& size) noexcept;
/// As getpeername(), but also of a connection that its peer has reset (SO_PEERNAME), as accept(2)
/// tells it. IP only.
[[nodiscard]] int getpeername_of_accepted(int fd, sockaddr* name, socklen_t& size) noexcept;

/// setsockopt(2).
[[nodiscard]] int setsockopt(int fd, int level, int name, const void* value,
                             socklen_t size) noexcept;

/// getsockopt(2). `size` returns the number of bytes that the kernel wrote.
[[nodiscard]] int getsockopt(int fd, int level, int name, void* value, socklen_t& size) noexcept;

/// setsockopt(2) with a value of the option's own type.
template <class T>
[[nodiscard]] int set_option(int fd, int level, int name, const T& value) noexcept {
    return sys::setsockopt(fd, level, name, &value, sizeof value);
}

/// getsockopt(2) with a value of the option's own type; `value` is unchanged on failure.
template <class T>
[[nodiscard]] int get_option(int fd, int level, int name, T& value) noexcept {
    socklen_t size = sizeof value;
    return sys::getsockopt(fd, level, name, &value, size);
}

/// Lets no peer of a Unix domain socket attach descriptors. False: the kernel cannot do that.
[[nodiscard]] bool refuse_descriptors(int fd) noexcept;

/// Sets or clears O_NONBLOCK. The flag belongs to the open file description, so to every duplicate.
[[nodiscard]] int set_mode(int fd, mode waiting) noexcept;

/// Sets FD_CLOEXEC.
[[nodiscard]] int set_close_on_exec(int fd) noexcept;

/// A duplicate with FD_CLOEXEC.
[[nodiscard]] int duplicate(int fd) noexcept;

/// The number that identifies the socket file at `path` while it exists; ENOTSOCK if it is
/// something else.
[[nodiscard]] int socket_file_number(const char* path, std::uint64_t& number) noexcept;

/// Removes the socket at `path`; ENOTSOCK if it is something else, such as a symbolic link.
[[nodiscard]] int unlink_socket(const char* path) noexcept;

/// CLOCK_MONOTONIC, the clock of std::chrono::steady_clock.
[[nodiscard]] inline std::chrono::steady_clock::time_point monotonic_now() noexcept {
    timespec now; // clock_gettime(2) cannot fail here
    static_cast<void>(::clock_gettime(CLOCK_MONOTONIC, &now));
    return std::chrono::steady_clock::time_point{std::chrono::seconds{now.tv_sec} +
                                                 std::chrono::nanoseconds{now.tv_nsec}};
}

// Exported from a shared library: the component http asks, too.
#pragma GCC visibility push(default)
/// RLIMIT_NOFILE of getrlimit(2): numbers of descriptors are below it. INT_MAX: it is unknown.
[[nodiscard]] int descriptor_limit() noexcept;
/// The number of open descriptors of the process (stat(2) of /proc/self/fd, since Linux 6.2); on an
/// older kernel a lower bound, the lowest free number. INT_MAX: none can be made.
[[nodiscard]] int descriptors_in_use() noexcept;
#pragma GCC visibility pop
/// By making one (open(2)). INT_MAX: none can be made.
[[nodiscard]] int lowest_free_descriptor() noexcept;

/// fcntl(2), F_GETFD: whether the descriptor exists.
[[nodiscard]] int get_descriptor_flags(int fd) noexcept;

/// Waits until `fd` has one of `events` (poll(2)) or `deadline` has passed; without a deadline for
/// ever. Returns the events, or 0 if there were none by then. A deadline in the past checks without
/// waiting. Interruptions are invisible and do not move the deadline.
[[nodiscard]] int poll(int fd, short events,
                       std::optional<std::chrono::steady_clock::time_point> deadline) noexcept;

// For loops.

/// eventfd(2), CLOEXEC and O_NONBLOCK.
[[nodiscard]] int eventfd(unsigned count) noexcept;
/// Makes an eventfd readable. Safe in signal handlers (signal-safety(7)).
void signal_eventfd(int fd) noexcept;
/// Makes it unreadable again.
void drain_eventfd(int fd) noexcept;

/// signalfd(2) with a new descriptor, CLOEXEC and O_NONBLOCK.
[[nodiscard]] int signalfd(const sigset_t& signals) noexcept;
/// Reads the number of the next signal of a signalfd.
// EAGAIN: none is pending.
[[nodiscard]] int read_signal(int fd) noexcept;

/// mmap(2) of fresh private memory; on failure null, and `error` is the errno.
[[nodiscard]] void* map_memory(std::size_t bytes, int flags, int& error) noexcept;
void unmap_memory(void* memory, std::size_t bytes) noexcept;

} // namespace simplenet::v0::detail::sys
