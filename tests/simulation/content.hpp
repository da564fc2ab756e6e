#pragma once
// content: bytes that tell their position in their stream, and tasks that move them.

#include "simulation/simulation.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

namespace simplenet::v0::simulation {

/// One direction of one stream.
struct flow {
    std::uint32_t key = 0;
    std::size_t sent = 0;     // bytes reported by ended writes
    std::size_t received = 0; // bytes

    [[nodiscard]] static std::byte at(std::uint32_t key, std::size_t offset) noexcept {
        const auto place = static_cast<std::uint32_t>(offset);
        return static_cast<std::byte>(((place ^ key) * 0x9e3779b1U + key) >> 24U);
    }
    void fill(std::span<std::byte> into, std::size_t offset) const noexcept {
        for (std::byte& each : into)
            each = at(key, offset++);
    }
    /// Takes the next bytes. False: they are not the expected ones.
    [[nodiscard]] bool take(const_buffer bytes) noexcept {
        for (std::size_t place = 0; place < bytes.size(); ++place) {
            if (bytes.data()[place] != at(key, received + place)) return false;
        }
        received += bytes.size();
        return true;
    }
};

/// How a transfer behaves.
struct manners {
    unsigned limited = 0; // per thousand operations: with a deadline
    std::chrono::nanoseconds longest_limit{1'000'000};
    unsigned pauses = 0; // per thousand
    std::chrono::nanoseconds longest_pause{2'000'000};
    std::size_t piece = 4000; // bytes, at most

    [[nodiscard]] static manners drawn_from(random_source& source) {
        manners drawn;
        drawn.limited = source.chance(500) ? static_cast<unsigned>(source.below(700)) : 0;
        drawn.longest_limit = std::chrono::microseconds{1 + source.size_up_to(20'000)};
        drawn.pauses = source.chance(300) ? static_cast<unsigned>(source.below(300)) : 0;
        drawn.piece = 1 + source.size_up_to(30'000);
        return drawn;
    }
};

/// A deadline that passed is not an end: the stream is unchanged.
[[nodiscard]] inline bool ends(std::error_code error) {
    return error && error != errc::deadline_exceeded;
}

/// With a deadline, if there is a `limit`.
// Not with the conditional operator: GCC 12 destroys operands of co_await in its branches twice.
template <class Operation>
task<detail::await_result<Operation>>
limited_or_not(Operation what, std::optional<std::chrono::nanoseconds> limit) {
    if (limit) co_return co_await with_timeout(std::move(what), *limit);
    co_return co_await std::move(what);
}

/// A read that ended by its deadline left nothing unread, provided that the network does not hide
/// available bytes.
template <class Stream>
void expect_nothing_there(world& in, const Stream& from, std::error_code error) {
    const conditions& like = in.net.like();
    if (error != errc::deadline_exceeded || like.not_yet != 0 || like.cut != 0) return;
    const int fd = from.native_handle();
    in.expect(fd < 0 || in.net.waiting_at(fd) == 0, "available data beats a deadline");
}

/// Sends the bytes of `what` up to the offset `to`. Returns the reason of an earlier end, if any.
template <class Stream>
task<std::error_code> send_content(world& in, Stream& through, flow& what, std::size_t to,
                                   manners how) {
    std::vector<std::byte> bytes;
    for (std::size_t writes = 1; what.sent < to; ++writes) {
        // Otherwise a large amount would be sent byte by byte.
        if (writes % 1000 == 0 && how.piece < 16'000) how.piece *= 2;
        if (in.random.chance(how.pauses)) {
            const auto paused = co_await async_sleep(in.some_time(how.longest_pause));
            if (!paused) co_return paused.error();
        }
        bytes.resize(std::min(to - what.sent, in.random.size_up_to(how.piece)));
        what.fill(bytes, what.sent);
        const const_buffer whole{bytes};
        const bool limited = in.random.chance(how.limited);
        const auto limit = limited ? std::optional{in.some_time(how.longest_limit)} : std::nullopt;
        std::error_code error;
        std::size_t moved = 0;
        switch (in.random.below(3)) {
        case 0: {
            const auto count = co_await limited_or_not(through.write_some(whole), limit);
            if (count) moved = *count;
            if (!count) error = count.error();
            in.expect(!count || (moved != 0 && moved <= bytes.size()),
                      "write_some() moves at least one byte");
            break;
        }
        case 1: {
            const auto count = co_await limited_or_not(async_write_all(through, whole), limit);
            moved = count ? *count : count.error().transferred;
            if (!count) error = count.error();
            in.expect(moved <= bytes.size() && (!count || moved == bytes.size()),
                      "async_write_all() moves everything or reports how much");
            break;
        }
        default: {
            const std::size_t cut = in.random.below(bytes.size() + 1);
            const std::array<const_buffer, 3> pieces{whole.first(cut), const_buffer{},
                                                     whole.subspan(cut)};
            const std::span<const const_buffer> all{pieces};
            const auto count = co_await limited_or_not(async_write_all(through, all), limit);
            moved = count ? *count : count.error().transferred;
            if (!count) error = count.error();
            in.expect(moved <= bytes.size() && (!count || moved == bytes.size()),
                      "async_write_all() moves everything or reports how much");
            break;
        }
        }
        what.sent += moved;
        if (ends(error)) co_return error;
    }
    co_return std::error_code{};
}

/// Receives until the offset `to` of `what`. Returns the reason of an earlier end, if any.
template <class Stream>
task<std::error_code> receive_content(world& in, Stream& from, flow& what, std::size_t to,
                                      manners how) {
    std::vector<std::byte> bytes;
    while (what.received < to) {
        if (in.random.chance(how.pauses)) {
            const auto paused = co_await async_sleep(in.some_time(how.longest_pause));
            if (!paused) co_return paused.error();
        }
        bytes.resize(std::min(to - what.received, in.random.size_up_to(how.piece)));
        const mutable_buffer place{bytes};
        const bool limited = in.random.chance(how.limited);
        const auto limit = limited ? std::optional{in.some_time(how.longest_limit)} : std::nullopt;
        std::error_code error;
        bool right = true;
        const auto kind = in.random.below(3);
        switch (kind) {
        case 0: {
            const auto count = co_await limited_or_not(from.read_some(place), limit);
            if (count) right = *count != 0 && what.take(const_buffer{place.first(*count)});
            if (!count) error = count.error();
            break;
        }
        case 1: {
            const auto count = co_await limited_or_not(async_read_exact(from, place), limit);
            const std::size_t moved = count ? *count : count.error().transferred;
            right =
                what.take(const_buffer{place.first(moved)}) && (!count || moved == bytes.size());
            if (!count) error = count.error();
            break;
        }
        default: {
            const auto lease = co_await limited_or_not(from.receive(), limit);
            if (lease) right = lease->size() != 0 && what.take(const_buffer{*lease});
            if (!lease) error = lease.error();
            break;
        }
        }
        in.expect(right, "no byte is lost, duplicated or reordered");
        if (!right) co_return make_error_code(std::errc::illegal_byte_sequence);
        // A receive() may have waited for a buffer that others held.
        if (kind < 2) expect_nothing_there(in, from, error);
        if (ends(error)) co_return error;
    }
    co_return std::error_code{};
}

/// Receives to the end of the stream, which is not an error.
template <class Stream>
task<std::error_code> receive_to_the_end(world& in, Stream& from, flow& what, manners how) {
    auto error = co_await receive_content(in, from, what, static_cast<std::size_t>(-1), how);
    if (error == errc::end_of_stream) error.clear();
    co_return error;
}

} // namespace simplenet::v0::simulation
