#include <simplenet/nonblocking/local_listener.hpp>

#include "support/error_of.hpp"
#include "support/flavours.hpp"

namespace {

using namespace simplenet;
using namespace simplenet::testing;

TEST(local_listener_test, accept_would_block_when_no_connection_waits) {
    auto listener = nonblocking_local::listen();
    EXPECT_EQ(error_of(listener.accept()), std::errc::operation_would_block);

    const auto client = connect_to<nonblocking_local>(listener);
    EXPECT_TRUE(accept_one(listener).is_open());
    EXPECT_EQ(error_of(listener.accept()), std::errc::operation_would_block);
}

} // namespace
