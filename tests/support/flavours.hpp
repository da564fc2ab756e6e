#pragma once
// The kinds of streams for which tests are repeated: TCP or Unix domain, blocking or not.

#include "support/descriptors.hpp"

#include <simplenet/blocking/local_listener.hpp>
#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/blocking/udp_socket.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/nonblocking/local_listener.hpp>
#include <simplenet/nonblocking/tcp_listener.hpp>
#include <simplenet/nonblocking/udp_socket.hpp>

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

template <class Stream, class Listener, bool Blocking>
struct tcp_flavour {
    using stream = Stream;
    using listener = Listener;
    static constexpr bool blocking = Blocking;
    static constexpr bool tcp = true;

    static listener listen(const listen_options& options = {}) {
        return or_throw(listener::bind(endpoint::loopback(0), options));
    }
    static auto address_of(const listener& at) { return or_throw(at.local_endpoint()); }
};

template <class Stream, class Listener, bool Blocking>
struct local_flavour {
    using stream = Stream;
    using listener = Listener;
    static constexpr bool blocking = Blocking;
    static constexpr bool tcp = false;

    static listener listen(const local_listen_options& options = {}) {
        // Unnamed: the kernel picks a unique abstract name.
        return or_throw(listener::bind(local_endpoint{}, options));
    }
    static auto address_of(const listener& at) { return or_throw(at.local_endpoint()); }
};

using blocking_tcp = tcp_flavour<blocking::tcp_stream, blocking::tcp_listener, true>;
using nonblocking_tcp = tcp_flavour<nonblocking::tcp_stream, nonblocking::tcp_listener, false>;
using blocking_local = local_flavour<blocking::local_stream, blocking::local_listener, true>;
using nonblocking_local =
    local_flavour<nonblocking::local_stream, nonblocking::local_listener, false>;

using all_flavours =
    ::testing::Types<blocking_tcp, nonblocking_tcp, blocking_local, nonblocking_local>;

struct flavour_name {
    template <class Flavour>
    static std::string GetName(int) {
        return std::string{Flavour::blocking ? "blocking" : "nonblocking"} +
               (Flavour::tcp ? "_tcp" : "_local");
    }
};

/// A connection to `at`, established.
template <class Flavour>
typename Flavour::stream connect_to(const typename Flavour::listener& at) {
    auto stream = or_throw(Flavour::stream::connect(Flavour::address_of(at)));
    if constexpr (Flavour::tcp && !Flavour::blocking) {
        or_throw(
            eventually(stream.native_handle(), POLLOUT, [&] { return stream.finish_connect(); }));
    }
    return stream;
}

template <class Listener>
auto accept_one(Listener& at) {
    return or_throw(eventually(at.native_handle(), POLLIN, [&] { return at.accept(); }));
}

template <class Stream>
struct connection {
    Stream client;
    Stream server;
};

template <class Flavour>
connection<typename Flavour::stream> make_connection() {
    auto listener = Flavour::listen();
    auto client = connect_to<Flavour>(listener);
    return {std::move(client), accept_one(listener)};
}

} // namespace simplenet::v0::testing
