#pragma once
// full_listener: a TCP server that never answers.

#include "support/descriptors.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/ip/endpoint.hpp>

#include <cstddef>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace simplenet::v0::testing {

/// A listener whose backlog is full: further clients get no answer at all.
class full_listener {
public:
    /// @pre `at` is an IPv4 endpoint.
    explicit full_listener(const endpoint& at = endpoint::loopback(0)) {
        checked_listen(at);
        for (;;) {
            filler_.emplace_back(
                checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
            const int fd = filler_.back().get();
            ::connect(fd, reinterpret_cast<sockaddr*>(&address_), sizeof address_);
            pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
            if (::poll(&writable, 1, 20) == 0) break; // no answer
        }
        filler_.pop_back();
    }
    [[nodiscard]] endpoint at() const {
        return {or_throw(ip_address::parse(::inet_ntoa(address_.sin_addr))),
                ntohs(address_.sin_port)};
    }

    /// Makes room, and returns when the next waiting client is connected: a SYN is sent again after
    /// about 1 s (tcp(7), RFC 6298).
    void let_the_next_in() {
        pollfd more{.fd = listening_.get(), .events = POLLIN, .revents = 0};
        while (checked(::poll(&more, 1, 0)) != 0)
            let_in_.emplace_back(
                checked(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
        await(listening_.get(), POLLIN);
    }

private:
    void checked_listen(const endpoint& at) {
        address_.sin_family = AF_INET;
        address_.sin_port = htons(at.port());
        ::inet_pton(AF_INET, at.address().to_string().c_str(), &address_.sin_addr);
        auto* const any = reinterpret_cast<sockaddr*>(&address_);
        socklen_t size = sizeof address_;
        checked(::bind(listening_.get(), any, size));
        checked(::listen(listening_.get(), 0));
        checked(::getsockname(listening_.get(), any, &size));
    }

    unique_fd listening_{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    sockaddr_in address_{};
    std::vector<unique_fd> filler_;
    std::vector<unique_fd> let_in_;
};

} // namespace simplenet::v0::testing
