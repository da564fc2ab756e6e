// The Unix domain datagram sockets of the blocking and nonblocking layers.

#include <simplenet/blocking/local_datagram.hpp>
#include <simplenet/nonblocking/local_datagram.hpp>

#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/temporary_directory.hpp"

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace simplenet;
using namespace simplenet::testing;

template <class Socket>
class local_datagram_test : public ::testing::Test {
protected:
    static constexpr bool nonblocking = std::is_same_v<Socket, nonblocking::local_datagram>;
    using other = std::conditional_t<nonblocking, blocking::local_datagram,
                                     simplenet::nonblocking::local_datagram>;

    std::array<char, 16> buffer_{};
};
using local_datagrams = ::testing::Types<blocking::local_datagram, nonblocking::local_datagram>;
TYPED_TEST_SUITE(local_datagram_test, local_datagrams);

TYPED_TEST(local_datagram_test, every_descriptor_is_close_on_exec_and_in_the_mode_of_its_layer) {
    const auto bound = or_throw(TypeParam::bind(local_endpoint{}));
    const auto connected = or_throw(TypeParam::connect(or_throw(bound.local_endpoint())));
    const auto open = or_throw(TypeParam::open());
    const auto [left, right] = or_throw(TypeParam::pair());

    for (const TypeParam* each : {&bound, &connected, &open, &left, &right}) {
        EXPECT_TRUE(is_close_on_exec(each->native_handle()));
        EXPECT_EQ(is_nonblocking(each->native_handle()), TestFixture::nonblocking);
    }
}

TYPED_TEST(local_datagram_test, datagrams_travel_between_names_and_within_pairs) {
    const temporary_directory directory;
    const auto path = or_throw(local_endpoint::parse(directory / "socket"));
    auto by_path = or_throw(TypeParam::bind(path));
    auto by_name = or_throw(TypeParam::bind(local_endpoint{}));

    EXPECT_EQ(by_name.send_to("hello", path), 5U);
    EXPECT_EQ(by_path.receive_from(this->buffer_),
              (local_message{.size = 5, .from = or_throw(by_name.local_endpoint())}));
    EXPECT_TRUE(by_name.connect_to(path));
    EXPECT_EQ(by_name.send(const_buffer{}), 0U);
    EXPECT_EQ(by_path.receive(this->buffer_)->size, 0U);
    EXPECT_TRUE(by_name.disconnect());
    EXPECT_EQ(error_of(by_name.send("x")), std::errc::not_connected);

    auto [left, right] = or_throw(TypeParam::pair());
    EXPECT_EQ(left.send("twenty bytes or more"), 20U);
    EXPECT_EQ(right.receive(this->buffer_),
              (local_message{.size = 16, .truncated = true, .missing = 4}));
}

TYPED_TEST(local_datagram_test, a_batch_is_sent_and_received_in_order) {
    auto [left, right] = or_throw(TypeParam::pair());
    const std::array<outgoing_message, 3> batch{{{.data = "one"}, {.data = {}}, {.data = "three"}}};
    EXPECT_EQ(left.send_batch(batch), 3U);

    std::array<std::array<char, 8>, 5> memory{};
    std::array<incoming_message, 5> places{};
    for (std::size_t at = 0; at < places.size(); ++at)
        places[at].into = memory[at];
    EXPECT_EQ(right.receive_batch(places), 3U);
    EXPECT_EQ(places[0].about.size, 3U);
    EXPECT_EQ(places[1].about.size, 0U);
    EXPECT_EQ(std::string_view(memory[2].data(), places[2].about.size), "three");
}

TYPED_TEST(local_datagram_test, an_existing_path_is_an_error_unless_it_is_to_be_removed) {
    const temporary_directory directory;
    const auto path = or_throw(local_endpoint::parse(directory / "socket"));
    {
        const auto dead = or_throw(TypeParam::bind(path));
    }

    EXPECT_EQ(error_of(TypeParam::bind(path)), std::errc::address_in_use);
    EXPECT_EQ(error_of(TypeParam::connect(path)), std::errc::connection_refused);
    auto again = or_throw(TypeParam::bind(path, {.unlink_existing = true}));
    EXPECT_TRUE(again.unlink_path());
    EXPECT_EQ(error_of(TypeParam::connect(path)), std::errc::no_such_file_or_directory);
}

TYPED_TEST(local_datagram_test, only_a_socket_of_its_kind_is_adopted_or_changes_its_mode) {
    auto [left, right] = or_throw(TypeParam::pair());
    auto other = or_throw(TestFixture::other::from(std::move(left)));
    EXPECT_EQ(is_nonblocking(other.native_handle()), !TestFixture::nonblocking);

    int streams[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, streams), 0);
    const unique_fd rest{streams[1]};
    EXPECT_EQ(error_of(TypeParam::adopt(unique_fd{streams[0]})), std::errc::invalid_argument);
    EXPECT_EQ(error_of(TypeParam::adopt(unique_fd{})), std::errc::bad_file_descriptor);
}

TEST(nonblocking_local_datagram_test, a_full_queue_and_an_empty_one_would_block) {
    auto [left, right] = or_throw(nonblocking::local_datagram::pair());
    std::array<char, 8> into;
    EXPECT_EQ(error_of(right.receive(into)), std::errc::operation_would_block);
    std::size_t sent = 0;
    while (left.send("x"))
        ++sent;
    EXPECT_EQ(error_of(left.send("x")), std::errc::operation_would_block);
    EXPECT_TRUE(right.receive(into));
    const std::vector<outgoing_message> batch(sent + 1, {.data = "x"});
    const auto more = left.send_batch(batch);
    EXPECT_EQ(error_of(more), std::errc::operation_would_block);
    EXPECT_EQ(more.error().transferred, 1U);
}

} // namespace
