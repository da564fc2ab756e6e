#include <simplenet/socket/local_stream_socket.hpp>

#include "support/descriptor_limit.hpp"
#include "support/descriptor_messages.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/pipes.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/blocking/local_stream.hpp>
#include <simplenet/nonblocking/local_stream.hpp>

#include <array>
#include <string>
#include <vector>

#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using testing::make_pipe;
using testing::open_descriptors;
using testing::receive_with;
using testing::same_file;
using testing::send_with;

template <class Stream>
class descriptor_transfers_test : public ::testing::Test {
protected:
    descriptor_transfers_test() {
        auto [one, other] = testing::local_ends();
        ours.emplace(or_throw(Stream::adopt(std::move(one))));
        theirs.emplace(std::move(other));
    }

    std::optional<Stream> ours;
    std::optional<testing::raw_peer> theirs;
    std::array<char, 64> buffer{};
};

using streams = ::testing::Types<blocking::local_stream, nonblocking::local_stream>;
TYPED_TEST_SUITE(descriptor_transfers_test, streams);

TYPED_TEST(descriptor_transfers_test, descriptors_travel_with_their_bytes) {
    auto [out, in] = make_pipe();
    const std::array fds{out.get(), in.get()};
    EXPECT_EQ(this->ours->send_descriptors("there", fds).value_or(0), 5U);
    auto there = receive_with(*this->theirs);
    EXPECT_EQ(there.text, "there");
    ASSERT_EQ(there.descriptors.size(), 2U);
    EXPECT_TRUE(same_file(there.descriptors[1].get(), in.get()));

    EXPECT_EQ(this->ours->send_descriptors("one", in.get()).value_or(0), 3U);
    auto one = receive_with(*this->theirs);
    ASSERT_EQ(one.descriptors.size(), 1U);
    EXPECT_TRUE(same_file(one.descriptors[0].get(), in.get()));

    send_with(*this->theirs, "back", fds);
    auto back = this->ours->receive_descriptors(this->buffer);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->size, 4U);
    ASSERT_EQ(back->descriptors.size(), 2U);
    EXPECT_TRUE(same_file(back->descriptors[0].get(), out.get()));
    EXPECT_TRUE(testing::is_close_on_exec(back->descriptors[0].get()));
}

TYPED_TEST(descriptor_transfers_test, an_empty_list_is_a_plain_write) {
    EXPECT_EQ(this->ours->send_descriptors("x", {}).value_or(0), 1U);
    EXPECT_TRUE(receive_with(*this->theirs).descriptors.empty());
}

TYPED_TEST(descriptor_transfers_test, invalid_arguments_are_refused_and_nothing_is_sent) {
    const std::vector<int> too_many(most_descriptors + 1, 0);
    EXPECT_EQ(error_of(this->ours->send_descriptors("x", too_many)), errc::limit_exceeded);
    const std::array bad{0, -1};
    EXPECT_EQ(error_of(this->ours->send_descriptors("x", bad)), std::errc::bad_file_descriptor);
    EXPECT_EQ(this->theirs->peek(), -EAGAIN);
    EXPECT_DEATH(static_cast<void>(this->ours->send_descriptors("", bad)), "at least one byte");
    EXPECT_DEATH(static_cast<void>(this->ours->receive_descriptors(mutable_buffer{})), "empty");
}

TYPED_TEST(descriptor_transfers_test, descriptors_that_are_not_taken_are_closed) {
    const std::size_t before = open_descriptors();
    send_with(*this->theirs, "limit", std::vector<int>(20, 0));
    const auto limited = this->ours->receive_descriptors(this->buffer, 19);
    EXPECT_EQ(error_of(limited), errc::limit_exceeded);
    EXPECT_EQ(limited.error().transferred, 5U);
    EXPECT_EQ(open_descriptors(), before);

    send_with(*this->theirs, "scarce", std::vector<int>(20, 0));
    {
        const testing::descriptor_limit few{5};
        const auto scarce = this->ours->receive_descriptors(this->buffer);
        EXPECT_EQ(error_of(scarce), std::errc::too_many_files_open);
        EXPECT_EQ(scarce.error().transferred, 6U);
    }
    EXPECT_EQ(open_descriptors(), before);

    send_with(*this->theirs, "plain", std::vector<int>(20, 0));
    EXPECT_TRUE(this->ours->read_some(this->buffer));
    EXPECT_EQ(open_descriptors(), before);
}

// An option set elsewhere makes the kernel add a descriptor, or other control data.
TYPED_TEST(descriptor_transfers_test, unexpected_control_data_does_no_harm) {
    constexpr int pass_pidfd = 76; // SO_PASSPIDFD, Linux 6.5
    const int on = 1;
    const int fd = this->ours->native_handle();
    testing::checked(::setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on));
    const bool pidfds = ::setsockopt(fd, SOL_SOCKET, pass_pidfd, &on, sizeof on) == 0;
    const std::size_t before = open_descriptors();
    send_with(*this->theirs, "x", std::vector<int>(most_descriptors, 0));
    {
        const auto got = this->ours->receive_descriptors(this->buffer);
        ASSERT_TRUE(got) << error_of(got).message();
        EXPECT_EQ(got->descriptors.size(), most_descriptors);
    }
    EXPECT_EQ(open_descriptors(), before) << (pidfds ? "with" : "without") << " SO_PASSPIDFD";
}

TYPED_TEST(descriptor_transfers_test, the_end_of_the_stream_is_its_error) {
    this->theirs->shutdown_write();
    EXPECT_EQ(error_of(this->ours->receive_descriptors(this->buffer)), errc::end_of_stream);
    this->theirs->close();
    EXPECT_EQ(error_of(this->ours->send_descriptors("x", std::array{0})), std::errc::broken_pipe);
}

TEST(nonblocking_descriptor_transfers_test, neither_direction_blocks) {
    auto [one, other] = testing::local_ends({.ours = 4096, .theirs = 4096});
    auto ours = or_throw(nonblocking::local_stream::adopt(std::move(one)));
    std::array<char, 8> buffer{};
    EXPECT_EQ(error_of(ours.receive_descriptors(buffer)), std::errc::operation_would_block);
    const std::string block(4096, 'x');
    std::size_t sent = 0;
    result<std::size_t> count;
    while ((count = ours.send_descriptors(block, std::array{0})))
        sent += *count;
    EXPECT_EQ(error_of(count), std::errc::operation_would_block);
    EXPECT_GT(sent, 0U);
}

} // namespace
} // namespace simplenet::v0
