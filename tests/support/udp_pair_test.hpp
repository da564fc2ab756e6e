#pragma once
// udp_pair_test: the fixture of tests that exchange datagrams between two sockets.

#include "support/backend_test.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/net/udp_socket.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace simplenet::v0::testing {

/// Memory for a batch, and the batch that points to it.
template <class Slot>
class places {
public:
    places(std::size_t count, std::size_t size)
        : memory_(count * size) {
        for (std::size_t at = 0; at < count; ++at)
            slots.push_back({.into = mutable_buffer{memory_.data() + at * size, size}});
    }
    std::vector<Slot> slots;

private:
    std::vector<std::byte> memory_;
};

/// Two sockets on the loopback interface, and a small buffer.
class udp_pair_test : public backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        one_.emplace(or_throw(udp_socket::bind(endpoint::loopback(0))));
        two_.emplace(or_throw(udp_socket::bind(endpoint::loopback(0))));
    }
    void TearDown() override {
        one_.reset();
        two_.reset();
        backend_test::TearDown();
    }

    udp_socket& one() { return *one_; }
    udp_socket& two() { return *two_; }
    static endpoint address_of(const udp_socket& socket) {
        return or_throw(socket.local_endpoint());
    }
    /// A port without a socket.
    static endpoint nobody() {
        return address_of(or_throw(udp_socket::bind(endpoint::loopback(0))));
    }

    std::optional<udp_socket> one_;
    std::optional<udp_socket> two_;
    std::array<char, 16> buffer_{};
};

} // namespace simplenet::v0::testing
