#pragma once
// The addresses of a socket and of its peer, and the process behind a Unix domain socket: bases of
// the socket classes of every layer. Layer socket.

#include <simplenet/core/error.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/socket/detail/name_calls.hpp>

#include <cstdint>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

/// The process at the other end of a Unix domain connection, as it was when it connected or began
/// to listen. It may have ended since, and its number may belong to another process.
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

    /// The address of this socket, with the port that the kernel picked if it was bound to port 0.
    [[nodiscard]] result<endpoint> local_endpoint() const noexcept {
        return detail::names::ip_local(fd());
    }
    /// The address of the peer.
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

/// The addresses of a Unix domain socket. Clients are usually unnamed.
template <class Self>
class local_socket_names {
public:
    /// @name Addresses
    /// @{

    /// The name that this socket was bound to, as it was written; for an accepted connection the
    /// name of its listener.
    // Qualified: in this class `local_endpoint` is the function.
    [[nodiscard]] result<simplenet::local_endpoint> local_endpoint() const noexcept {
        return detail::names::unix_local(fd());
    }
    /// The name that the peer was bound to.
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

    /// The process at the other end: on an accepted connection the one that called `connect()`, on
    /// the client's side the one that called `listen()`; for a pair, the one that created it.
    ///
    /// @par Errors
    /// - `std::errc::bad_file_descriptor`: already closed.
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

    /// Removes the path from the file system, if there is one and it is a socket: no process can
    /// connect or send to it any more. Connections, and those that wait for `accept()`, are not
    /// affected.
    ///
    /// Nothing else removes a path, not even `close()` and the destructor: by then it may belong to
    /// the server's successor. Servers that may die without calling this should bind with the
    /// option `unlink_existing`.
    ///
    /// @par Errors
    /// - `std::errc::no_such_file_or_directory`: already gone, or relative to a directory that is
    ///   no longer the current one.
    [[nodiscard]] result<> unlink_path() noexcept { return detail::names::unlink_unix_path(fd()); }
    /// @}

private:
    [[nodiscard]] int fd() const noexcept {
        return static_cast<const Self&>(*this).native_handle();
    }
};

} // namespace simplenet::v0

#pragma GCC visibility pop
