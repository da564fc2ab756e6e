#pragma once
// Which addresses a socket has: its own and its peer's, for IP and for Unix domain sockets, and who
// is behind the latter. Layer socket; also for the sockets of the runtime.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>

#include <cstdint>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// The process at the other end of a Unix domain connection, as it was when it connected or
/// began to listen. The process may be gone by now and its number be another's.
struct process_credentials {
    std::int32_t pid = 0;
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;

    friend bool operator==(const process_credentials&,
                           const process_credentials&) noexcept = default;
};

namespace detail::names {

// Each is one system call, unless it says otherwise. The members below have the documentation.

[[nodiscard]] result<endpoint> ip_local(int fd) noexcept;
[[nodiscard]] result<endpoint> ip_remote(int fd) noexcept;
[[nodiscard]] result<local_endpoint> unix_local(int fd) noexcept;
[[nodiscard]] result<local_endpoint> unix_remote(int fd) noexcept;
[[nodiscard]] result<process_credentials> unix_peer_credentials(int fd) noexcept;
[[nodiscard]] result<> unlink_unix_path(int fd) noexcept; // three system calls

} // namespace detail::names

namespace detail {

/// The addresses of a TCP or UDP socket.
template <class Base>
class with_ip_names : public Base {
public:
    using Base::Base;

    /// Where this socket is; the port that the kernel picked, if 0 was asked for.
    [[nodiscard]] result<endpoint> local_endpoint() const noexcept {
        return names::ip_local(this->native_handle());
    }
    /// Where the peer is.
    ///
    /// @par Errors
    /// - `std::errc::not_connected`: a listener, no connection yet, or none any more.
    [[nodiscard]] result<endpoint> remote_endpoint() const noexcept {
        return names::ip_remote(this->native_handle());
    }
};

/// The addresses of a Unix domain socket. Clients are as a rule unnamed.
template <class Base>
class with_local_names : public Base {
public:
    using Base::Base;

    /// What this socket was bound to, as it was written then; on an accepted connection what its
    /// listener was bound to.
    // Qualified: in this class `local_endpoint` is the function.
    [[nodiscard]] result<simplenet::local_endpoint> local_endpoint() const noexcept {
        return names::unix_local(this->native_handle());
    }
    /// What the peer was bound to.
    ///
    /// @par Errors
    /// - `std::errc::not_connected`: a listener.
    [[nodiscard]] result<simplenet::local_endpoint> remote_endpoint() const noexcept {
        return names::unix_remote(this->native_handle());
    }
};

/// Of a Unix domain socket that others find by its name.
template <class Base>
class with_local_path : public Base {
public:
    using Base::Base;

    /// Removes the path from the file system, if there is one and it is a socket: nobody can
    /// connect or send by it any more. What is connected, or waits for `accept()`, is not
    /// affected.
    ///
    /// Nothing else removes a path, `close()` and the destructor included: by then it may belong
    /// to the server's successor. Servers that expect to die without calling this bind with the
    /// option `unlink_existing`.
    ///
    /// @par Errors
    /// - `std::errc::no_such_file_or_directory`: gone already, or relative to a directory that is
    ///   not the current one any more.
    [[nodiscard]] result<> unlink_path() noexcept {
        return names::unlink_unix_path(this->native_handle());
    }
};

} // namespace detail

} // namespace simplenet::v0

#pragma GCC visibility pop
