// Room in a socket of which the kernel tells nobody, because it is little (tcp(7)).

#include "support/backend_test.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/time/deadline.hpp>

#include <chrono>
#include <string>
#include <utility>

#include <poll.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connect_raw;

class little_room_test : public testing::backend_test {
protected:
    /// Fills a socket, and lets its peer take so much that there is room of which no event tells.
    static void make_room(tcp_stream& ours, testing::raw_peer& theirs) {
        const std::string content(65536, 'x');
        while (ours.try_write_some(content)) {
        }
        EXPECT_EQ(theirs.receive(131072).size(), 131072U);
        ::pollfd writable{.fd = ours.native_handle(), .events = POLLOUT, .revents = 0};
        EXPECT_EQ(::poll(&writable, 1, 0), 0);
    }
};

// A client that never reads would otherwise look alive at each deadline.
TEST_P(little_room_test, the_attempt_before_a_deadline_leads_to_the_rest_of_it) {
    run([]() -> task<> {
        auto [ours, theirs] = connect_raw();
        make_room(ours, theirs);

        const result<std::size_t> first = co_await with_timeout(ours.write_some("1"), 20ms);
        EXPECT_EQ(first.value_or(0), 1U);
        const result<std::size_t> second = co_await ours.write_some("2");
        EXPECT_EQ(second.value_or(0), 1U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, little_room_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
