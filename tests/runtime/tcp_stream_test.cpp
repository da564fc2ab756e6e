#include <simplenet/runtime/tcp_stream.hpp>

#include "support/backend_test.hpp"
#include "support/error_of.hpp"
#include "support/raw_peer.hpp"

#include <array>
#include <string>

namespace simplenet {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;

class tcp_stream_test : public testing::backend_test {};

TEST_P(tcp_stream_test, read_some_reports_end_of_stream_after_the_peer_shuts_down) {
    auto [ours, theirs] = connect_raw();
    theirs.shutdown_write();

    run([&]() -> task<> {
        std::array<std::byte, 8> buffer{};
        auto count = co_await ours.read_some(buffer);

        EXPECT_EQ(error_of(count), errc::end_of_stream);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, tcp_stream_test, all_backends, backend_name);

} // namespace
} // namespace simplenet
