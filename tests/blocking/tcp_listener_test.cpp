#include <simplenet/blocking/tcp_listener.hpp>

#include "support/flavours.hpp"
#include "support/signal_storm.hpp"

#include <optional>

namespace {

using namespace simplenet;
using namespace simplenet::testing;

TEST(tcp_listener_test, accept_waits_for_a_connection_despite_signals) {
    auto listener = blocking_tcp::listen();
    std::optional<blocking::tcp_stream> client;
    const signal_storm storm{[&] { client = connect_to<blocking_tcp>(listener); }};

    EXPECT_TRUE(listener.accept());
}

} // namespace
