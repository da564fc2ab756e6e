#include "http/acknowledged_bytes.hpp"

#include "support/raw_peer.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::http::detail {
namespace {

using testing::raw_peer;

/// Two ends of a connection.
struct ends {
    explicit ends(std::pair<unique_fd, unique_fd> of)
        : sends{std::move(of.first)}
        , reads{std::move(of.second)} {}

    raw_peer sends;
    raw_peer reads;
};

/// The reader's kernel hardly takes anything for it.
constexpr testing::buffer_sizes small{.ours = 65'536, .theirs = 4096};

/// The peer's kernel acknowledges when it likes.
bool becomes_more_than(std::int64_t before, int socket, std::int64_t sent) {
    for (int each = 0; each < 10'000; ++each) {
        if (acknowledged_bytes(socket, sent) > before) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds{1}); // nothing reports it
    }
    return false;
}

TEST(acknowledged_bytes_test, nothing_is_acknowledged_of_a_new_connection) {
    const ends of{testing::tcp_ends()};

    EXPECT_EQ(acknowledged_bytes(of.reads.fd()), 0);
}

// It enlarges its buffer while the peer reads nothing.
TEST(acknowledged_bytes_test, what_our_kernel_takes_is_not_acknowledged) {
    ends of{testing::tcp_ends(small)};
    const std::size_t before = of.sends.send_until_full(std::string(4096, 'x'));

    testing::set_buffers(of.sends.fd(), 1 << 20);
    const std::size_t more = of.sends.send_until_full(std::string(4096, 'x'));

    EXPECT_GT(more, 100'000U);
    EXPECT_LT(acknowledged_bytes(of.sends.fd()), static_cast<std::int64_t>(before));
}

TEST(acknowledged_bytes_test, what_the_peer_reads_is_acknowledged) {
    for (auto make : {testing::tcp_ends, testing::local_ends}) {
        ends of{make(small)};
        const auto sent =
            static_cast<std::int64_t>(of.sends.send_until_full(std::string(4096, 'x')));
        const std::int64_t before = acknowledged_bytes(of.sends.fd(), sent);

        ASSERT_EQ(of.reads.receive(40'000).size(), 40'000U);

        EXPECT_TRUE(becomes_more_than(before, of.sends.fd(), sent));
    }
}

} // namespace
} // namespace simplenet::v0::http::detail
