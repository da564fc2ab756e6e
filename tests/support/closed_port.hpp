#pragma once
// closed_port: a TCP port that refuses clients until it is opened.

#include "support/raw_peer.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <cstdint>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace simplenet::v0::testing {

/// A port of 127.0.0.1, bound by this object: nobody else gets it, but for a server that listens
/// with SO_REUSEADDR.
class closed_port {
public:
    closed_port() {
        const int on = 1;
        checked(::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        auto* const any = reinterpret_cast<sockaddr*>(&address);
        socklen_t size = sizeof address;
        checked(::bind(socket_.get(), any, size));
        checked(::getsockname(socket_.get(), any, &size));
        number_ = ntohs(address.sin_port);
    }

    [[nodiscard]] std::uint16_t number() const { return number_; }

    /// From here on the kernel accepts clients.
    void open() { checked(::listen(socket_.get(), 128)); }
    /// The next client; waits for one.
    raw_peer accept() {
        return raw_peer{
            unique_fd{checked(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC))}};
    }

private:
    unique_fd socket_{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    std::uint16_t number_ = 0;
};

} // namespace simplenet::v0::testing
