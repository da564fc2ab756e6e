#pragma once
// read_ahead_test: a server whose answers pass through read_ahead, and sources for them.

#include "http/gateway/backend_set.hpp"
#include "http/gateway/read_ahead.hpp"
#include "http/server/http_test.hpp"

#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

namespace simplenet::v0::testing {

inline constexpr std::size_t kernel_buffers = 12'000'000; // those of both sides hold less

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

/// `size` of such bytes, and when it may go on, the end.
class paused_source {
public:
    paused_source(std::size_t size, const std::atomic<bool>& goes_on,
                  std::atomic<std::size_t>& taken)
        : bytes_{size, errc::end_of_stream, taken}
        , goes_on_{goes_on} {}
    task<result<std::size_t>> read_some(mutable_buffer into) {
        const result<std::size_t> count = co_await bytes_.read_some(into);
        if (count || has_ended_) co_return count;
        while (!goes_on_) {
            const result<> slept = co_await async_sleep(std::chrono::milliseconds{1});
            if (!slept) co_return fail(slept);
        }
        has_ended_ = true;
        std::memcpy(into.data(), "end", 3);
        co_return 3;
    }

private:
    counted_source bytes_;
    const std::atomic<bool>& goes_on_;
    bool has_ended_ = false;
};

inline std::string numbered(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t each = 0; each < size; ++each)
        text[each] = static_cast<char>('a' + each % 23);
    return text;
}

class read_ahead_test : public http_test {
protected:
    static constexpr std::string_view get =
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

    /// Serves `size` bytes of known length, then `end`, with at most `most` held in memory.
    void serve_source(std::size_t size, std::size_t most,
                      std::error_code end = errc::end_of_stream) {
        serve_within(size, {.memory = most}, end);
    }
    void serve_within(std::size_t size, const http::detail::ahead_limits& limits,
                      std::error_code end = errc::end_of_stream) {
        http::router routes;
        routes.get("/", [=, this](http::request&, http::response& answer) -> task<result<>> {
            counted_source source{size, end, taken_};
            http::detail::read_ahead forward{source, answer, limits};
            const result<> done = co_await forward.run();
            failed_ = forward.is_reader_failure();
            held_ = forward.is_held();
            disk_failed_ = static_cast<bool>(forward.disk_failure());
            ended_ = true;
            co_return done;
        });
        serve(std::move(routes));
    }
    raw_peer connect_and_ask() {
        raw_peer client = connect();
        client.send(get);
        return client;
    }
    template <class Condition>
    static void wait_until(Condition holds) {
        while (!holds())
            std::this_thread::yield();
    }

    /// Until nothing has come for a while.
    static std::string receive_what_comes(raw_peer& client) {
        std::string all;
        ::pollfd readable{.fd = client.fd(), .events = POLLIN, .revents = 0};
        while (::poll(&readable, 1, 100) == 1) {
            std::array<char, 65536> part{};
            const ssize_t count = ::recv(client.fd(), part.data(), part.size(), 0);
            if (count <= 0) break;
            all.append(part.data(), static_cast<std::size_t>(count));
        }
        return all;
    }

    std::atomic<std::size_t> taken_ = 0;
    /// Until the source is not read any more.
    void wait_until_full() {
        std::size_t before = 0;
        wait_until([&] { return taken_ != 0; });
        while (std::exchange(before, taken_) != taken_)
            std::this_thread::sleep_for(std::chrono::milliseconds{50}); // no event tells
    }

    std::atomic<bool> failed_ = false;
    std::atomic<bool> held_ = false;
    std::atomic<bool> disk_failed_ = false;
    std::atomic<bool> ended_ = false;
};

/// The body of an answer in chunks of read_ahead.
inline std::string body_of_chunks(std::string_view answer) {
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

} // namespace simplenet::v0::testing
