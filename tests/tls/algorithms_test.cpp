// TLS under the algorithms of layer stream.

#include "tls/tls_pair.hpp"

#include "support/backend_test.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/stream/copy.hpp>
#include <simplenet/stream/send_file.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/tls/errc.hpp>

#include <array>
#include <cstdio>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace {

using testing::client;
using testing::connected;
using testing::connected_over_tcp;
using testing::memory_stream;
using testing::pattern;
using testing::read_all;
using testing::send_and_end;
using testing::server_with;
using testing::shake_hands;

class tls_algorithms_test : public testing::backend_test {};

/// A file without a name.
unique_fd file_with(std::string_view text) {
    std::FILE* const made = std::tmpfile();
    EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), made), text.size());
    EXPECT_EQ(std::fflush(made), 0);
    unique_fd file{::dup(::fileno(made))};
    std::fclose(made);
    return file;
}

// --- leases --------------------------------------------------------------------------------------

/// Sends pieces of several sizes, and receives them as leases.
template <class Ends>
task<> receive_pieces(Ends& ends) {
    const std::string text = pattern(400'000);
    const auto sending = [&]() -> task<result<>> {
        std::string_view rest = text;
        for (std::size_t size = 1; !rest.empty(); size = size * 7 + 3) {
            const auto piece = rest.substr(0, size);
            rest.remove_prefix(piece.size());
            const auto sent = co_await async_write_all(ends.client, piece);
            if (!sent) co_return fail(sent);
        }
        co_return co_await ends.client.shutdown_write();
    };
    std::string all;
    const auto receiving = [&]() -> task<std::error_code> {
        for (;;) {
            auto lease = co_await ends.server.receive();
            if (!lease) co_return lease.error();
            EXPECT_FALSE(lease->empty());
            const received front = lease->split(lease->size() / 2);
            all += front.text();
            all += lease->text();
        }
    };
    const auto [sent, end] = co_await when_all(sending(), receiving());
    EXPECT_TRUE(sent);
    EXPECT_EQ(end, errc::end_of_stream);
    EXPECT_TRUE(all == text);
}

TEST_P(tls_algorithms_test, receive_lends_what_was_decrypted) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        co_await receive_pieces(ends);
    });
}

TEST_P(tls_algorithms_test, receive_lends_what_was_decrypted_over_tcp) {
    run([&]() -> task<> {
        auto ends = co_await connected_over_tcp(server_with(), client());
        co_await receive_pieces(ends);
    });
}

TEST_P(tls_algorithms_test, try_receive_takes_what_is_there_and_never_waits) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        EXPECT_EQ(ends.server.try_receive().error(), std::errc::operation_would_block);
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        EXPECT_EQ(ends.server.try_receive().error(), std::errc::operation_would_block);

        EXPECT_TRUE(co_await async_write_all(ends.client, "one"));
        EXPECT_TRUE(co_await ends.server.readable());
        EXPECT_EQ(or_throw(ends.server.try_receive()).text(), "one");
        EXPECT_EQ(ends.server.try_receive().error(), std::errc::operation_would_block);

        // A record is missing.
        EXPECT_EQ(ends.client.try_write_some("two").value_or(0), 3U);
        auto& below = ends.server.transport();
        EXPECT_EQ(below.try_receive()->size(), 25U); // lost, so the next record is not the next
        EXPECT_TRUE(co_await async_write_all(ends.client, "three"));
        EXPECT_EQ(ends.server.try_receive().error(), tls::errc::record_invalid);
        EXPECT_EQ(ends.server.try_receive().error(), tls::errc::record_invalid);
    });
}

TEST_P(tls_algorithms_test, try_receive_reports_both_ends) {
    run([&]() -> task<> {
        auto orderly = connected(server_with(), client());
        const auto errors = co_await shake_hands(orderly);
        EXPECT_FALSE(errors.client || errors.server);
        EXPECT_TRUE(co_await orderly.client.shutdown_write());
        EXPECT_EQ(orderly.server.try_receive().error(), errc::end_of_stream);

        auto cut = connected(server_with(), client());
        const auto shaken = co_await shake_hands(cut);
        EXPECT_FALSE(shaken.client || shaken.server);
        EXPECT_TRUE(cut.client.transport().shutdown_write());
        EXPECT_EQ(cut.server.try_receive().error(), tls::errc::truncated);
        cut.server.close();
        EXPECT_EQ(cut.server.try_receive().error(), std::errc::bad_file_descriptor);
    });
}

// --- copies --------------------------------------------------------------------------------------

/// What a client gets through a proxy that has TLS on one side and echoes.
TEST_P(tls_algorithms_test, a_proxy_with_tls_on_one_side_passes_data_and_the_end_on) {
    run([&]() -> task<> {
        auto [client_side, asking] = [] {
            auto ends = connected(server_with(), client());
            return std::pair{std::move(ends.server), std::move(ends.client)};
        }();
        auto [plain_side, serving] = duplex();
        const std::string text = pattern(500'000);
        std::error_code end_of_asking;
        std::error_code end_of_serving;
        const auto [proxied, asked, answered, at_asking, at_serving] =
            co_await when_all(async_copy_bidirectional(client_side, plain_side),
                              send_and_end(asking, text), send_and_end(serving, text),
                              read_all(asking, end_of_asking), read_all(serving, end_of_serving));
        EXPECT_EQ(proxied.value_or(copy_counts{}), (copy_counts{text.size(), text.size()}));
        EXPECT_TRUE(asked && answered);
        EXPECT_EQ(end_of_asking, errc::end_of_stream);
        EXPECT_EQ(end_of_serving, errc::end_of_stream);
        EXPECT_TRUE(at_asking == text);
        EXPECT_TRUE(at_serving == text);
    });
}

TEST_P(tls_algorithms_test, a_proxy_does_not_make_an_end_out_of_a_truncation) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        const auto errors = co_await shake_hands(ends);
        EXPECT_FALSE(errors.client || errors.server);
        auto [plain_side, serving] = duplex();
        EXPECT_TRUE(co_await async_write_all(ends.client, "half of"));
        EXPECT_TRUE(ends.client.transport().shutdown_write());
        const auto proxied = co_await async_copy_bidirectional(ends.server, plain_side);
        EXPECT_EQ(error_of(proxied), tls::errc::truncated);
        // The caller resets the other side; nothing has told it that this was the end.
        EXPECT_EQ(or_throw(serving.try_receive()).text(), "half of");
        EXPECT_EQ(serving.try_receive().error(), std::errc::operation_would_block);
    });
}

// --- others --------------------------------------------------------------------------------------

TEST_P(tls_algorithms_test, a_file_is_read_and_sealed) {
    run([&]() -> task<> {
        const std::string text = pattern(300'000);
        const unique_fd file = file_with(text);
        auto ends = connected(server_with(), client());
        const auto sending = [&]() -> task<transfer_result> {
            const auto sent = co_await async_send_file(
                ends.server, file.get(), 100, 1'000'000,
                {.head = const_buffer{"head"}, .tail = const_buffer{"tail"}});
            EXPECT_TRUE(co_await ends.server.shutdown_write());
            co_return sent;
        };
        std::error_code end;
        const auto [sent, got] = co_await when_all(sending(), read_all(ends.client, end));
        EXPECT_EQ(sent.value_or(0), text.size() - 100 + 8);
        EXPECT_TRUE(got == "head" + text.substr(100) + "tail");
        EXPECT_EQ(end, errc::end_of_stream);
    });
}

TEST_P(tls_algorithms_test, the_halves_of_a_stream_have_their_own_owners) {
    run([&]() -> task<> {
        auto ends = connected(server_with(), client());
        auto [reads, writes] = split(std::move(ends.server));
        const std::string text = pattern(100'000);
        std::error_code end_of_half;
        std::error_code end;
        const auto [sent, answered, got, back] =
            co_await when_all(send_and_end(writes, text), send_and_end(ends.client, text),
                              read_all(reads, end_of_half), read_all(ends.client, end));
        EXPECT_TRUE(sent && answered);
        EXPECT_TRUE(got == text && back == text);
        EXPECT_EQ(end, errc::end_of_stream);
        EXPECT_EQ(end_of_half, errc::end_of_stream);
    });
}

TEST_P(tls_algorithms_test, a_unix_socket_carries_it) {
    run([&]() -> task<> {
        auto [left, right] = or_throw(local_stream::pair());
        tls::stream<local_stream> one{std::move(left), server_with()};
        tls::stream<local_stream> other{std::move(right), client(), {.server_name = "localhost"}};
        co_await testing::exchange(one, other, pattern(1'000'000));
    });
}

INSTANTIATE_TEST_SUITE_P(backends, tls_algorithms_test, testing::all_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
