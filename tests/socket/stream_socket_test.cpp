#include <simplenet/socket/stream_socket.hpp>

#include "support/flavours.hpp"
#include "support/segments.hpp"
#include "support/signal_storm.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace simplenet;
using namespace simplenet::testing;

template <class Flavour>
class stream_socket_test : public ::testing::Test {
protected:
    stream_socket_test()
        : connection_{make_connection<Flavour>()} {}

    auto& client() { return connection_.client; }
    auto& server() { return connection_.server; }

    /// Writes until the kernel accepts no more. A blocking stream is told not to wait, so that the
    /// last call is a partial write.
    std::size_t fill() {
        auto filling = or_throw(nonblocking_form(client()));
        std::size_t written = 0;
        for (;;) {
            auto count = filling.write_some(block_);
            if (!count) {
                EXPECT_EQ(count.error(), std::errc::operation_would_block);
                break;
            }
            last_count_ = *count;
            written += *count;
        }
        client() = or_throw(Flavour::stream::adopt(std::move(filling).release()));
        return written;
    }

    std::size_t block_size() const { return block_.size(); }
    std::size_t last_count() const { return last_count_; }

private:
    static auto nonblocking_form(typename Flavour::stream& stream) {
        if constexpr (Flavour::tcp) {
            return nonblocking::tcp_stream::adopt(std::move(stream).release());
        } else {
            return nonblocking::local_stream::adopt(std::move(stream).release());
        }
    }

    connection<typename Flavour::stream> connection_;
    std::vector<std::byte> block_ = std::vector<std::byte>(std::size_t{3} << 20);
    std::size_t last_count_ = 0;
};

TYPED_TEST_SUITE(stream_socket_test, all_flavours, flavour_name);

TYPED_TEST(stream_socket_test, one_side_reads_what_the_other_writes) {
    EXPECT_EQ(this->client().write_some("ping"), 4U);
    EXPECT_EQ(read_text(this->server(), 4), "ping");

    EXPECT_EQ(this->server().write_some("pong!"), 5U);
    EXPECT_EQ(read_text(this->client(), 5), "pong!");
}

TYPED_TEST(stream_socket_test, read_some_returns_available_bytes_and_no_more_than_fit) {
    EXPECT_TRUE(this->client().write_some("abcdef"));
    await(this->server().native_handle(), POLLIN);
    std::array<char, 4> small{};
    std::array<char, 100> large{};

    EXPECT_EQ(this->server().read_some(small), 4U);
    EXPECT_EQ(this->server().read_some(large), 2U);
    EXPECT_EQ(std::string_view(small.data(), 4), "abcd");
    EXPECT_EQ(std::string_view(large.data(), 2), "ef");
}

TYPED_TEST(stream_socket_test, read_some_reports_end_of_stream_after_the_peer_shuts_down) {
    EXPECT_TRUE(this->client().write_some("last words"));
    EXPECT_TRUE(this->client().shutdown_write());

    EXPECT_EQ(read_text(this->server(), 100), "last words");
    EXPECT_EQ(read_to_the_end(this->server()), errc::end_of_stream);
    EXPECT_EQ(read_to_the_end(this->server()), errc::end_of_stream) << "again";
}

TYPED_TEST(stream_socket_test, read_some_reports_end_of_stream_after_the_peer_closes) {
    this->client().close();

    EXPECT_EQ(read_to_the_end(this->server()), errc::end_of_stream);
}

TYPED_TEST(stream_socket_test, a_stream_whose_write_side_is_shut_down_still_reads) {
    EXPECT_TRUE(this->client().shutdown_write());
    EXPECT_EQ(read_to_the_end(this->server()), errc::end_of_stream);

    EXPECT_TRUE(this->server().write_some("the answer"));
    EXPECT_EQ(read_text(this->client(), 10), "the answer");
}

TYPED_TEST(stream_socket_test, write_some_after_shutdown_write_reports_broken_pipe) {
    EXPECT_TRUE(this->client().shutdown_write());

    EXPECT_EQ(this->client().write_some("x").error(), std::errc::broken_pipe);
}

TYPED_TEST(stream_socket_test, shutdown_write_twice_does_no_harm) {
    EXPECT_TRUE(this->client().shutdown_write());
    EXPECT_TRUE(this->client().shutdown_write());
}

// An unhandled SIGPIPE would end the test program.
TYPED_TEST(stream_socket_test, writing_to_a_peer_that_has_closed_fails_and_raises_no_signal) {
    EXPECT_TRUE(this->server().write_some("unread")); // turns the close into a reset
    await(this->client().native_handle(), POLLIN);
    this->client().close();

    std::error_code error;
    while (!error) {
        await(this->server().native_handle(), POLLOUT);
        auto count = this->server().write_some("x");
        if (!count) error = count.error();
    }

    EXPECT_TRUE(error == std::errc::connection_reset || error == std::errc::broken_pipe) << error;
    std::array<const_buffer, 1> parts{const_buffer{"x"}};
    EXPECT_EQ(this->server().write_some(parts).error(), std::errc::broken_pipe);
}

TYPED_TEST(stream_socket_test, an_abort_by_the_peer_is_reported_as_connection_reset) {
    EXPECT_TRUE(this->server().write_some("unread"));
    await(this->client().native_handle(), POLLIN);
    this->client().close();

    EXPECT_EQ(read_to_the_end(this->server()), std::errc::connection_reset);
}

TYPED_TEST(stream_socket_test, empty_writes_succeed_with_zero) {
    EXPECT_EQ(this->client().write_some(const_buffer{}), 0U);
    EXPECT_EQ(this->client().write_some(std::span<const const_buffer>{}), 0U);
    std::array<const_buffer, 3> nothing{};
    EXPECT_EQ(this->client().write_some(nothing), 0U);
}

TYPED_TEST(stream_socket_test, reading_into_an_empty_buffer_is_a_contract_violation) {
    EXPECT_DEATH((void)this->client().read_some(mutable_buffer{}), "contract violation");
}

TYPED_TEST(stream_socket_test, write_some_takes_several_buffers_as_if_they_were_one) {
    const std::array<const_buffer, 4> parts{const_buffer{"one "}, const_buffer{},
                                            const_buffer{"two "}, const_buffer{"three"}};

    EXPECT_EQ(this->client().write_some(parts), 13U);
    EXPECT_EQ(read_text(this->server(), 13), "one two three");
}

TYPED_TEST(stream_socket_test, write_some_takes_as_many_buffers_as_the_kernel_allows) {
    const std::vector<const_buffer> parts(5000, const_buffer{"ab"});

    EXPECT_EQ(this->client().write_some(parts), 2048U);
}

TYPED_TEST(stream_socket_test, write_some_looks_past_any_number_of_empty_buffers) {
    std::vector<const_buffer> parts(5000);
    parts.push_back(const_buffer{"end"});

    EXPECT_EQ(this->client().write_some(parts), 3U);
    EXPECT_EQ(read_text(this->server(), 3), "end");
}

TYPED_TEST(stream_socket_test, a_write_with_more_leaves_together_with_the_next) {
    const std::vector<const_buffer> parts{const_buffer{"he"}, const_buffer{"ad "}};
    const segment_clock clock;
    EXPECT_EQ(this->client().write_some(parts, {.more = true}), 5U);
    EXPECT_EQ(this->client().write_some("and ", {.more = true}), 4U);
    EXPECT_EQ(this->client().write_some("body"), 4U);

    EXPECT_EQ(read_text(this->server(), 13), "head and body");
    if (!TypeParam::tcp || clock.was_slow()) return;
    EXPECT_EQ(data_segments_sent(this->client().native_handle()), 1U);
}

TYPED_TEST(stream_socket_test, a_send_buffer_takes_a_part_and_would_block_once_full) {
    const std::size_t written = this->fill();

    EXPECT_GT(written, 0U);
    EXPECT_LT(this->last_count(), this->block_size());
}

TYPED_TEST(stream_socket_test, everything_that_a_full_send_buffer_took_arrives) {
    const std::size_t written = this->fill();
    EXPECT_TRUE(this->client().shutdown_write());

    EXPECT_EQ(read_text(this->server(), written + 1).size(), written);
}

TYPED_TEST(stream_socket_test, operations_on_a_closed_stream_fail_with_bad_file_descriptor) {
    std::array<char, 1> one;
    const std::array<const_buffer, 1> parts{const_buffer{"x"}};
    auto& stream = this->client();
    stream.close();

    EXPECT_EQ(stream.read_some(one).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(stream.write_some("x").error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(stream.write_some(parts).error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(stream.shutdown_write().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(stream.local_endpoint().error(), std::errc::bad_file_descriptor);
    EXPECT_EQ(stream.remote_endpoint().error(), std::errc::bad_file_descriptor);
}

TYPED_TEST(stream_socket_test, read_some_without_data_waits_only_if_the_stream_is_blocking) {
    std::array<char, 1> one{};

    if constexpr (TypeParam::blocking) {
        const signal_storm storm{[this] { EXPECT_TRUE(this->server().write_some("!")); }};
        EXPECT_EQ(this->client().read_some(one), 1U);
        EXPECT_EQ(one[0], '!');
    } else {
        EXPECT_EQ(this->client().read_some(one).error(), std::errc::operation_would_block);
    }
}

template <class Flavour>
class whole_transfers_test : public stream_socket_test<Flavour> {};

using blocking_flavours = ::testing::Types<blocking_tcp, blocking_local>;
TYPED_TEST_SUITE(whole_transfers_test, blocking_flavours, flavour_name);

TYPED_TEST(whole_transfers_test, read_exact_waits_until_the_buffer_is_full) {
    std::string text(9, '?');
    EXPECT_TRUE(this->server().write_some("one "));

    // The rest is written after the reader has waited, with interruptions, for a while.
    const signal_storm storm{[this] {
        EXPECT_TRUE(this->server().write_some("two "));
        EXPECT_TRUE(this->server().write_some("!rest"));
    }};

    EXPECT_EQ(this->client().read_exact(text), 9U);
    EXPECT_EQ(text, "one two !");
    EXPECT_EQ(read_text(this->client(), 4), "rest");
}

TYPED_TEST(whole_transfers_test, read_exact_says_how_many_bytes_preceded_the_end) {
    std::string text(9, '?');
    EXPECT_TRUE(this->server().write_some("abc"));
    this->server().close();

    const auto outcome = this->client().read_exact(text);

    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error(), make_error_code(errc::end_of_stream));
    EXPECT_EQ(outcome.error().transferred, 3U);
    EXPECT_EQ(text.substr(0, 3), "abc");
}

TYPED_TEST(whole_transfers_test, empty_whole_transfers_succeed_with_zero) {
    EXPECT_EQ(this->client().read_exact(mutable_buffer{}), 0U);
    EXPECT_EQ(this->client().write_all(const_buffer{}), 0U);
    EXPECT_EQ(this->client().write_all(std::span<const const_buffer>{}), 0U);
    this->client().close();
    EXPECT_EQ(this->client().write_all(const_buffer{}), 0U) << "there was nothing to do";
}

TYPED_TEST(whole_transfers_test, write_all_with_more_leaves_together_with_the_next) {
    auto [client, server] = make_connection<TypeParam>();
    const std::vector<const_buffer> parts{const_buffer{"he"}, const_buffer{"ad "}};
    const segment_clock clock;
    EXPECT_EQ(client.write_all(parts, {.more = true}), 5U);
    EXPECT_EQ(client.write_all("and ", {.more = true}), 4U);
    EXPECT_EQ(client.write_all("body"), 4U);

    EXPECT_EQ(read_text(server, 13), "head and body");
    if (!TypeParam::tcp || clock.was_slow()) return;
    EXPECT_EQ(data_segments_sent(client.native_handle()), 1U);
}

TYPED_TEST(whole_transfers_test, write_all_waits_for_a_slow_reader) {
    this->fill();
    const std::string large(std::size_t{4} << 20, 'x');

    // Reading begins after the writer has waited, with interruptions, for a while.
    const signal_storm storm{[this] { read_to_the_end(this->server()); }};

    EXPECT_EQ(this->client().write_all(large), large.size());
    this->client().close();
}

TYPED_TEST(whole_transfers_test, write_all_of_many_buffers_keeps_their_order) {
    std::string whole(std::size_t{6} << 20, ' ');
    std::vector<const_buffer> parts;
    for (std::size_t at = 0, size = 0; at < whole.size(); at += size, size = (size + 7) % 5003) {
        const std::size_t count = std::min(size, whole.size() - at);
        std::memset(whole.data() + at, static_cast<int>('a' + parts.size() % 26), count);
        parts.push_back(const_buffer{whole}.subspan(at).first(count));
    }
    parts.push_back(const_buffer{whole}.subspan(whole.size()));

    std::string received;
    std::thread reader{[&] { received = read_text(this->server(), whole.size()); }};
    EXPECT_EQ(this->client().write_all(parts), whole.size());
    reader.join();

    EXPECT_TRUE(received == whole);
}

TYPED_TEST(whole_transfers_test, write_all_says_how_much_was_written_before_the_reset) {
    const std::string large(std::size_t{64} << 20, 'x');
    std::thread reader{[this] {
        EXPECT_EQ(read_text(this->server(), 1000).size(), 1000U);
        this->server().close(); // a reset, because input is unread
    }};

    const auto outcome = this->client().write_all(large);
    reader.join();

    ASSERT_FALSE(outcome);
    const std::error_code error = outcome.error();
    EXPECT_TRUE(error == std::errc::connection_reset || error == std::errc::broken_pipe) << error;
    EXPECT_GE(outcome.error().transferred, 1000U);
    EXPECT_LT(outcome.error().transferred, large.size());
}

TYPED_TEST(whole_transfers_test, write_all_of_buffers_says_how_much_was_written_before_the_reset) {
    const std::string block(std::size_t{1} << 20, 'x');
    const std::vector<const_buffer> parts(64, const_buffer{block});
    std::thread reader{[this] {
        EXPECT_EQ(read_text(this->server(), 1000).size(), 1000U);
        this->server().close();
    }};

    const auto outcome = this->client().write_all(parts);
    reader.join();

    ASSERT_FALSE(outcome);
    EXPECT_GE(outcome.error().transferred, 1000U);
    EXPECT_LT(outcome.error().transferred, 64 * block.size());
}

} // namespace
