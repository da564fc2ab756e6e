#include <simplenet/blocking/local_listener.hpp>

#include "support/flavours.hpp"
#include "support/signal_storm.hpp"

#include <optional>

namespace {

using namespace simplenet;
using namespace simplenet::testing;

TEST(local_listener_test, accept_waits_for_a_connection_despite_signals) {
    auto listener = blocking_local::listen();
    std::optional<blocking::local_stream> client;
    const signal_storm storm{[&] { client = connect_to<blocking_local>(listener); }};

    EXPECT_TRUE(listener.accept());
}

} // namespace
