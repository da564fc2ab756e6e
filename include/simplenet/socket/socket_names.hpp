#pragma once
// Which addresses a socket has, its own and its peer's: bases of the socket classes of every layer.
// And which process is behind a Unix domain socket. Layer socket.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/socket/detail/name_calls.hpp>

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

/// The addresses of a TCP or UDP socket.
template <class Self>
class ip_socket_names {
public:
    /// @name Addresses
    /// @{

    /// Where this socket is; the port that the kernel picked, if 0 was asked for.
    [[nodiscard]] result<endpoint> local_endpoint() const noexcept {
        return detail::names::ip_local(fd());
    }
    /// Where the peer is.
    ///
    /// @par Errors
    /// - `std::errc::not_connected`: a listener, no connection yet, or none any more.
    [[nodiscard]] result<endpoint> remote_endpoint() const noexcept {
        return detail::names::ip_remote(fd());
    }
    /// @}

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

/// The addresses of a Unix domain socket. Clients are as a rule unnamed.
template <class Self>
class local_socket_names {
public:
    /// @name Addresses
    /// @{

    /// What this socket was bound to, as it was written then; on an accepted connection what its
    /// listener was bound to.
    // Qualified: in this class `local_endpoint` is the function.
    [[nodiscard]] result<simplenet::local_endpoint> local_endpoint() const noexcept {
        return detail::names::unix_local(fd());
    }
    /// What the peer was bound to.
    ///
    /// @par Errors
    /// - `std::errc::not_connected`: a listener.
    [[nodiscard]] result<simplenet::local_endpoint> remote_endpoint() const noexcept {
        return detail::names::unix_remote(fd());
    }
    /// @}

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

/// The addresses of a Unix domain stream, and the process at its other end.
template <class Self>
class local_stream_names : public local_socket_names<Self> {
public:
    /// @name Addresses
    /// @{

    /// The process that called `connect()` or, seen from there, `listen()`; for a pair, the one
    /// that made it.
    ///
    /// @par Errors
    /// - `std::errc::bad_file_descriptor`: closed before.
    [[nodiscard]] result<process_credentials> peer_credentials() const noexcept {
        return detail::names::unix_peer_credentials(fd());
    }
    /// @}

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

/// The addresses of a Unix domain socket that may be bound to a path.
template <class Self>
class local_path_names : public local_socket_names<Self> {
public:
    /// @name Addresses
    /// @{

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
    [[nodiscard]] result<> unlink_path() noexcept { return detail::names::unlink_unix_path(fd()); }
    /// @}

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

} // namespace simplenet::v0

#pragma GCC visibility pop
