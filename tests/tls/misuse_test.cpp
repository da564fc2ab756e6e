// Bugs of the caller stop the program with a message that names them.

#include <simplenet/tls/stream.hpp>

#include "tls/tls_pair.hpp"

#include "support/backend_test.hpp"

#include <simplenet/runtime/run.hpp>

#include <array>
#include <optional>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace {

using testing::client;
using testing::connected;
using testing::server_with;
using testing::shake_hands;

class tls_misuse_test : public testing::backend_test {
protected:
    void SetUp() override {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        backend_test::SetUp();
    }
    /// Lets `body` use both ends, between which little fits, after their handshake.
    template <class Body>
    void with_ends(Body body) {
        run([&]() -> task<> {
            auto ends = connected(server_with(), client(), {.server_name = "localhost"}, 16384);
            const auto errors = co_await shake_hands(ends);
            EXPECT_FALSE(errors.client);
            co_await body(ends);
        });
    }
};

TEST_P(tls_misuse_test, a_second_read_is_named) {
    EXPECT_DEATH(with_ends([](testing::tls_ends& ends) -> task<> {
                     std::array<std::byte, 8> one{};
                     std::array<std::byte, 8> other{};
                     const auto both = co_await when_all(ends.client.read_some(one),
                                                         ends.client.read_some(other));
                     static_cast<void>(both);
                 }),
                 "a second read on a tls::stream that has one in flight");
}

// Used to wait for the first one.
TEST_P(tls_misuse_test, a_second_write_is_named) {
    EXPECT_DEATH(with_ends([](testing::tls_ends& ends) -> task<> {
                     const std::string much(100'000, 'x');
                     const auto both =
                         co_await when_all(ends.client.write_some(const_buffer{much}),
                                           ends.client.write_some(const_buffer{much}));
                     static_cast<void>(both);
                 }),
                 "a second write or shutdown_write\\(\\) on a tls::stream that has one in flight");
}

TEST_P(tls_misuse_test, a_shutdown_during_a_write_is_named) {
    EXPECT_DEATH(with_ends([](testing::tls_ends& ends) -> task<> {
                     const std::string much(100'000, 'x');
                     const auto both = co_await when_all(ends.client.write_some(const_buffer{much}),
                                                         ends.client.shutdown_write());
                     static_cast<void>(both);
                 }),
                 "a second write or shutdown_write\\(\\) on a tls::stream that has one in flight");
}

TEST_P(tls_misuse_test, an_operation_on_a_closed_stream_is_no_second_one) {
    with_ends([](testing::tls_ends& ends) -> task<> {
        std::array<std::byte, 8> one{};
        std::array<std::byte, 8> other{};
        const auto closes_and_reads = [&]() -> task<result<std::size_t>> {
            ends.client.close();
            co_return co_await ends.client.read_some(other);
        };
        const auto [first, second] =
            co_await when_all(ends.client.read_some(one), closes_and_reads());
        EXPECT_EQ(error_of(first), std::errc::operation_canceled);
        EXPECT_EQ(error_of(second), std::errc::bad_file_descriptor);
    });
}

// Data that had been decrypted used to be returned on any loop.
TEST_P(tls_misuse_test, a_second_loop_is_named) {
    std::optional<testing::tls_ends> ends;
    with_ends([&](testing::tls_ends& made) -> task<> {
        const auto sent = co_await made.server.write_some(const_buffer{"hello"});
        EXPECT_TRUE(sent);
        std::array<std::byte, 1> first{};
        const auto count = co_await made.client.read_some(first);
        EXPECT_TRUE(count);
        EXPECT_EQ(made.client.pending(), 4U);
        ends.emplace(std::move(made));
    });
    const auto read = [&]() -> task<> {
        std::array<std::byte, 4> rest{};
        const auto count = co_await ends->client.read_some(rest);
        EXPECT_FALSE(count);
    };
    EXPECT_DEATH(simplenet::run(read(), {.backend = GetParam()}),
                 "a tls::stream belongs to the loop that used it first");
}

TEST_P(tls_misuse_test, a_second_loop_is_named_without_waiting) {
    std::optional<testing::tls_ends> ends;
    with_ends([&](testing::tls_ends& made) -> task<> {
        EXPECT_TRUE(co_await made.server.write_some(const_buffer{"hello"}));
        EXPECT_EQ(made.client.try_receive().value_or(received{}).size(), 5U);
        ends.emplace(std::move(made));
    });
    const auto read = [&]() -> task<> {
        EXPECT_FALSE(ends->client.try_receive());
        co_return;
    };
    EXPECT_DEATH(simplenet::run(read(), {.backend = GetParam()}),
                 "a tls::stream belongs to the loop that used it first");
    const auto write = [&]() -> task<> {
        EXPECT_FALSE(ends->client.try_write_some("x"));
        co_return;
    };
    EXPECT_DEATH(simplenet::run(write(), {.backend = GetParam()}),
                 "a tls::stream belongs to the loop that used it first");
}

TEST_P(tls_misuse_test, info_before_the_handshake_is_named) {
    auto ends = connected(server_with(), client());
    EXPECT_DEATH(static_cast<void>(ends.client.info()), "before the handshake is complete");
}

TEST_P(tls_misuse_test, a_stream_that_was_moved_from_is_named) {
    auto ends = connected(server_with(), client());
    const auto moved = std::move(ends.client);
    // NOLINTNEXTLINE(bugprone-use-after-move): the subject of the test
    EXPECT_DEATH(static_cast<void>(ends.client.pending()), "after it was moved from");
}

INSTANTIATE_TEST_SUITE_P(backends, tls_misuse_test, testing::all_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
