#include "http/proxy/tunnel.hpp"

#include "support/backend_test.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using http::detail::run_tunnel;

/// Ends its side at a certain time only, as TLS does whose socket is full until then.
class late_stream {
public:
    late_stream(duplex_stream stream, std::chrono::steady_clock::time_point from)
        : stream_{std::move(stream)}
        , from_{from} {}
    [[nodiscard]] auto read_some(mutable_buffer into) { return stream_.read_some(into); }
    [[nodiscard]] auto readable() { return stream_.readable(); }
    [[nodiscard]] result<received> try_receive() { return stream_.try_receive(); }
    [[nodiscard]] auto write_some(const_buffer from, write_options options = {}) {
        return stream_.write_some(from, options);
    }
    [[nodiscard]] auto write_some(std::span<const const_buffer> from, write_options options = {}) {
        return stream_.write_some(from, options);
    }
    [[nodiscard]] result<std::size_t> try_write_some(const_buffer from) {
        return stream_.try_write_some(from);
    }
    [[nodiscard]] task<result<>> shutdown_write() {
        const result<> slept = co_await async_sleep_until(from_);
        if (!slept) co_return slept;
        co_return co_await stream_.shutdown_write();
    }
    void close() noexcept { stream_.close(); }

private:
    duplex_stream stream_;
    std::chrono::steady_clock::time_point from_;
};

/// Between a client and a backend that the test plays, by a clock of its own.
class tunnel_test : public backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        remake_loop({.clock = &clock_});
    }
    void open(std::chrono::nanoseconds idle, std::chrono::nanoseconds late = 0s) {
        auto [client, far_client] = duplex(16);
        auto [backend, far_backend] = duplex(16);
        client_.emplace(std::move(far_client));
        backend_.emplace(std::move(far_backend));
        tunnel_.emplace(
            spawn(run_tunnel(any_stream{late_stream{std::move(client), clock_.now() + late}},
                             any_stream{std::move(backend)}, {}, idle)));
    }
    /// A byte of the client arrives at the backend.
    task<> pass_a_byte() {
        std::string seen(1, '\0');
        EXPECT_TRUE(co_await async_write_all(*client_, std::string_view{"y"}));
        EXPECT_TRUE(co_await async_read_exact(*backend_, seen));
    }
    /// The backend sends `body`.
    task<result<>> send(std::string body) {
        const auto sent = co_await async_write_all(*backend_, body);
        if (!sent) co_return fail(sent.error());
        co_return result<>{};
    }
    void TearDown() override {
        tunnel_.reset();
        client_.reset();
        backend_.reset();
        backend_test::TearDown();
    }

    manual_clock clock_;
    std::optional<duplex_stream> client_;
    std::optional<duplex_stream> backend_;
    std::optional<join_handle<result<>>> tunnel_;
};

// A write that was blocked for as long ended the tunnel.
TEST_P(tunnel_test, a_blocked_direction_waits_while_the_other_one_moves) {
    run([&]() -> task<> {
        open(60s);
        const std::string body(100, 'x');
        auto sending = spawn(send(body)); // the client takes nothing yet
        for (int each = 0; each < 5; ++each) {
            static_cast<void>(co_await async_sleep(50s));
            co_await pass_a_byte();
        }
        std::string all(100, '\0');

        EXPECT_TRUE(co_await async_read_exact(*client_, all));

        EXPECT_EQ(all, body);
        EXPECT_TRUE(co_await sending);
        EXPECT_TRUE(co_await client_->shutdown_write());
        EXPECT_TRUE(co_await backend_->shutdown_write());
        EXPECT_TRUE(co_await *tunnel_);
    });
}

TEST_P(tunnel_test, an_end_that_cannot_leave_waits_while_the_other_direction_moves) {
    run([&]() -> task<> {
        open(60s, 200s);
        EXPECT_TRUE(co_await backend_->shutdown_write());
        for (int each = 0; each < 5; ++each) {
            static_cast<void>(co_await async_sleep(50s));
            co_await pass_a_byte();
        }
        EXPECT_TRUE(co_await client_->shutdown_write());
        EXPECT_TRUE(co_await *tunnel_);
    });
}

TEST_P(tunnel_test, a_tunnel_in_which_nothing_moves_ends) {
    run([&]() -> task<> {
        open(60s);
        co_await pass_a_byte();
        auto sending = spawn(send(std::string(100, 'x')));

        EXPECT_FALSE(co_await *tunnel_);

        EXPECT_GE(clock_.elapsed(), 60s);
        EXPECT_FALSE(co_await sending);
    });
}

TEST_P(tunnel_test, the_longest_limit_is_none) {
    run([&]() -> task<> {
        open(std::chrono::nanoseconds::max());
        static_cast<void>(co_await async_sleep(1h));
        co_await pass_a_byte();
        EXPECT_TRUE(co_await client_->shutdown_write());
        EXPECT_TRUE(co_await backend_->shutdown_write());
        EXPECT_TRUE(co_await *tunnel_);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, tunnel_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
