// Answers that pass through a gateway, with clients of all speeds.

#include "http/gateway/read_ahead.hpp"
#include "http/server/http_test.hpp"
#include "support/error_of.hpp"

#include <simplenet/http/errc.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using http::detail::read_ahead;

constexpr std::string_view get = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

/// Bytes that tell where they stand, counted as they are taken.
class counted_source {
public:
    counted_source(std::size_t size, std::error_code end, std::atomic<std::size_t>& taken)
        : size_{size}
        , end_{end}
        , taken_{taken} {}
    task<result<std::size_t>> read_some(mutable_buffer into) {
        const std::size_t count = std::min(into.size(), size_ - at_);
        if (count == 0) co_return fail(end_);
        for (std::size_t each = 0; each < count; ++each)
            into.data()[each] = static_cast<std::byte>('a' + (at_ + each) % 23);
        at_ += count;
        taken_ = at_;
        co_return count;
    }

private:
    std::size_t size_;
    std::size_t at_ = 0;
    std::error_code end_;
    std::atomic<std::size_t>& taken_;
};

std::string numbered(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t each = 0; each < size; ++each)
        text[each] = static_cast<char>('a' + each % 23);
    return text;
}

class read_ahead_test : public http_test {
protected:
    /// Serves `size` bytes of known length, then `end`, with at most `most` held.
    void serve_source(std::size_t size, std::size_t most,
                      std::error_code end = errc::end_of_stream) {
        http::router routes;
        routes.get("/", [=, this](http::request&, http::response& answer) -> task<result<>> {
            counted_source source{size, end, taken_};
            read_ahead forward{source, answer, most};
            const result<> done = co_await forward.run();
            failed_ = forward.is_reader_failure();
            ended_ = true;
            co_return done;
        });
        serve(std::move(routes));
    }
    template <class Condition>
    static void wait_until(Condition holds) {
        while (!holds())
            std::this_thread::yield();
    }

    std::atomic<std::size_t> taken_ = 0;
    std::atomic<bool> failed_ = false;
    std::atomic<bool> ended_ = false;
};

std::string body_of_chunks(std::string_view answer) {
    std::string body;
    answer.remove_prefix(answer.find("\r\n\r\n") + 4);
    for (;;) {
        const std::size_t size = std::stoul(std::string{answer.substr(0, 8)}, nullptr, 16);
        answer.remove_prefix(answer.find("\r\n") + 2);
        if (size == 0) return body;
        body.append(answer.substr(0, size));
        answer.remove_prefix(size + 2);
    }
}

TEST_P(read_ahead_test, every_byte_arrives_in_order) {
    for (const std::size_t size : {1, 16384, 16385, 3'000'000}) {
        serve_source(size, 65536);

        EXPECT_EQ(body_of_chunks(ask(get)), numbered(size));

        end_loops();
    }
}

TEST_P(read_ahead_test, an_empty_body_is_an_empty_answer) {
    serve_source(0, 65536);

    EXPECT_TRUE(ask(get).ends_with("Content-Length: 0\r\nConnection: close\r\n\r\n"));
}

TEST_P(read_ahead_test, the_source_is_read_to_its_end_although_the_client_reads_nothing) {
    constexpr std::size_t size = 12'000'000; // more than the buffers of both kernels
    serve_source(size, size);
    raw_peer client = connect();
    client.send(get);

    wait_until([&] { return taken_ == size; });

    EXPECT_FALSE(ended_);
    EXPECT_EQ(body_of_chunks(rest_of(client)).size(), size);
}

TEST_P(read_ahead_test, a_client_that_reads_nothing_costs_no_more_than_the_limit) {
    constexpr std::size_t size = 50'000'000;
    serve_source(size, 65536);
    raw_peer client = connect();
    client.send(get);
    std::size_t before = 0;
    wait_until([&] { return taken_ > 65536; });
    while (std::exchange(before, taken_) != taken_)
        std::this_thread::sleep_for(50ms);

    EXPECT_LT(taken_, size);
    EXPECT_EQ(body_of_chunks(rest_of(client)), numbered(size));
}

TEST_P(read_ahead_test, a_source_that_fails_makes_an_answer_that_does_not_look_complete) {
    serve_source(100'000, 65536, std::make_error_code(std::errc::connection_reset));
    raw_peer client = connect();
    client.send(get);

    EXPECT_EQ(client.receive_to_the_end(), std::errc::connection_reset);
    EXPECT_TRUE(failed_);
}

TEST_P(read_ahead_test, a_client_that_goes_away_ends_the_reading) {
    serve_source(std::size_t{1} << 40U, 65536);
    {
        raw_peer client = connect();
        client.send(get);
        wait_until([&] { return taken_ != 0; });
    }

    wait_until([&] { return ended_.load(); });

    EXPECT_FALSE(failed_);
}

/// A piece for each time that the test lets one through.
class gated_source {
public:
    explicit gated_source(std::atomic<int>& gate)
        : gate_{gate} {}
    task<result<std::size_t>> read_some(mutable_buffer into) {
        while (gate_ == 0) {
            const auto slept = co_await async_sleep(1ms);
            if (!slept) co_return fail(slept);
        }
        --gate_;
        if (++count_ == 4) co_return fail(errc::end_of_stream);
        std::memcpy(into.data(), "event\n", 6);
        co_return std::size_t{6};
    }

private:
    std::atomic<int>& gate_;
    int count_ = 0;
};

TEST_P(read_ahead_test, each_piece_leaves_at_once) {
    std::atomic<int> gate = 0;
    http::router routes;
    routes.get("/", [&](http::request&, http::response& answer) -> task<result<>> {
        gated_source source{gate};
        read_ahead forward{source, answer};
        co_return co_await forward.run();
    });
    serve(std::move(routes));
    raw_peer client = connect();
    client.send(get);

    for (int each = 0; each < 3; ++each) {
        gate = 1;
        EXPECT_TRUE(receive_until(client, "event\n\r\n").ends_with("6\r\nevent\n\r\n"));
    }
    gate = 1;

    EXPECT_EQ(rest_of(client), "0\r\n\r\n");
}

INSTANTIATE_TEST_SUITE_P(backends, read_ahead_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
