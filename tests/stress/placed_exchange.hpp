#pragma once
// placed_writer, placed_reader: the two directions of a stream between loops, in pieces that may be
// stopped.

#include "support/placed_bytes.hpp"
#include "support/random_stop.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/transfer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

/// Writes the first `bytes` of its content.
class placed_writer {
public:
    placed_writer(std::uint64_t seed, std::uint64_t bytes)
        : content_{seed}
        , bytes_{bytes} {}

    [[nodiscard]] bool finished() const noexcept { return written_ >= bytes_; }
    [[nodiscard]] std::uint64_t written() const noexcept { return written_; }

    /// Writes one piece, which may be stopped. An error: the stream takes no more.
    task<result<>> write(tcp_stream& to, random_stops& stops) {
        const auto piece = content_.piece(written_, stops.random.size(32 * 1024));
        const transfer_result sent =
            co_await stops.perhaps_stopped(async_write_all(to, const_buffer{piece}), 30);
        written_ += sent ? *sent : sent.error().transferred;
        if (!sent && !was_stopped(sent)) co_return fail(sent.error().code);
        co_return result<>{};
    }

private:
    placed_bytes content_;
    std::uint64_t bytes_;
    std::uint64_t written_ = 0;
};

/// Reads what a placed_writer writes, and checks it.
class placed_reader {
public:
    explicit placed_reader(std::uint64_t seed)
        : content_{seed} {}

    [[nodiscard]] std::uint64_t read() const noexcept { return read_; }

    /// Reads some bytes in some way, which may be stopped. An error: the stream has no more.
    task<result<>> read(tcp_stream& from, random_stops& stops) {
        switch (stops.random.up_to(3)) {
        case 0: {
            const result<std::size_t> count =
                co_await stops.perhaps_stopped(from.read_some(memory_), 30);
            if (count) take(std::span{memory_}.first(*count));
            co_return read_ended(count);
        }
        case 1: {
            const auto into = std::span{memory_}.first(stops.random.size(memory_.size()));
            const transfer_result count =
                co_await stops.perhaps_stopped(async_read_exact(from, into), 30);
            take(into.first(count ? *count : count.error().transferred));
            co_return read_ended(count);
        }
        default: {
            const result<received> lease = co_await stops.perhaps_stopped(from.receive(), 30);
            if (lease) take(lease->bytes());
            co_return read_ended(lease);
        }
        }
    }

private:
    void take(std::span<const std::byte> bytes) {
        const auto mistake = content_.mistake(read_, bytes);
        EXPECT_FALSE(mistake) << *mistake;
        read_ += bytes.size();
    }
    template <class Outcome>
    static result<> read_ended(const Outcome& outcome) {
        if (outcome || was_stopped(outcome)) return {};
        return fail(std::error_code{outcome.error()});
    }

    placed_bytes content_;
    std::uint64_t read_ = 0;
    std::array<std::byte, 8192> memory_{};
};

} // namespace simplenet::v0::testing
