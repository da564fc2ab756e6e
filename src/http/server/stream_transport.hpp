#pragma once
// stream_transport: the transport over a stream of a known type. Layer http, private.

#include "http/server/transport.hpp"

#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/send_file.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstring>
#include <span>
#include <utility>

namespace simplenet::v0::http::detail {

template <class Stream>
inline constexpr bool is_plain = std::same_as<Stream, tcp_stream>;

/// The socket of a stream.
template <class Stream>
[[nodiscard]] tcp_stream& socket_of(Stream& stream) noexcept {
    if constexpr (is_plain<Stream>) {
        return stream;
    } else {
        return stream.transport();
    }
}

/// Resets the connection, so that the peer does not take what it has for complete: with TLS not
/// even a close_notify leaves.
template <class Stream>
void abort_connection(Stream& stream) noexcept {
    tcp_stream& socket = socket_of(stream);
    if (socket.native_handle() < 0) return; // it was already
    static_cast<void>(socket.set_linger(std::chrono::seconds{0}));
    socket.close();
}

/// A stream whose first bytes have been received already.
template <class Stream>
class stream_with_ahead {
public:
    stream_with_ahead(Stream stream, received ahead) noexcept
        : stream_{std::move(stream)}
        , ahead_{std::move(ahead)} {}

    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into) {
        if (!ahead_.empty()) {
            const received part = ahead_.split(std::min(into.size(), ahead_.size()));
            std::memcpy(into.data(), part.data(), part.size());
            co_return part.size();
        }
        co_return co_await stream_.read_some(into);
    }
    [[nodiscard]] task<result<>> readable() {
        if (!ahead_.empty()) co_return result<>{};
        co_return co_await stream_.readable();
    }
    [[nodiscard]] result<received> try_receive() {
        if (!ahead_.empty()) return std::move(ahead_);
        return stream_.try_receive();
    }
    [[nodiscard]] auto write_some(const_buffer from, write_options options = {}) {
        return stream_.write_some(from, options);
    }
    [[nodiscard]] auto write_some(std::span<const const_buffer> from, write_options options = {}) {
        return stream_.write_some(from, options);
    }
    [[nodiscard]] result<std::size_t> try_write_some(const_buffer from) {
        return stream_.try_write_some(from);
    }
    [[nodiscard]] auto shutdown_write() { return stream_.shutdown_write(); }
    void close() noexcept { stream_.close(); }

private:
    Stream stream_;
    received ahead_;
};

template <class Stream>
class stream_transport final : public transport {
public:
    explicit stream_transport(Stream& stream) noexcept
        : transport{!is_plain<Stream>}
        , stream_{stream} {}

    [[nodiscard]] task<result<received>> receive() override {
        co_return co_await stream_.receive();
    }
    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into) override {
        co_return co_await stream_.read_some(into);
    }
    [[nodiscard]] result<std::size_t> try_write(const_buffer from) override {
        return stream_.try_write_some(from);
    }
    [[nodiscard]] task<result<>> settle() override {
        const result<std::size_t> settled = co_await stream_.write_some(const_buffer{});
        if (!settled) co_return fail(settled);
        co_return result<>{};
    }
    [[nodiscard]] task<result<std::size_t>> write_some(std::span<const const_buffer> from,
                                                       bool more) override {
        co_return co_await stream_.write_some(from, write_options{.more = more});
    }
    [[nodiscard]] task<transfer_result> send_file(int fd, std::uint64_t offset, std::uint64_t count,
                                                  const_buffer head) override {
        const send_file_options around{.head = head, .tail = {}};
        co_return co_await async_send_file(stream_, fd, offset, count, around);
    }
    void end_writing() noexcept override {
        if constexpr (is_plain<Stream>) static_cast<void>(stream_.shutdown_write());
    }
    [[nodiscard]] int native_handle() const noexcept override {
        return socket_of(stream_).native_handle();
    }
    [[nodiscard]] Stream& stream() const noexcept { return stream_; }
    [[nodiscard]] any_stream release(received ahead) override {
        if (ahead.empty()) return any_stream{std::move(stream_)};
        return any_stream{stream_with_ahead<Stream>{std::move(stream_), std::move(ahead)}};
    }

private:
    Stream& stream_;
};

} // namespace simplenet::v0::http::detail
