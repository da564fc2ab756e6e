#pragma once
// transport: the connection below an exchange, TCP or TLS. Layer http, private.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/stream/any_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace simplenet::v0::http::detail {

/// What an exchange needs of a stream. Used only where something has to wait, but for try_write().
class transport {
public:
    transport(const transport&) = delete;
    transport& operator=(const transport&) = delete;
    virtual ~transport() = default;

    [[nodiscard]] virtual task<result<received>> receive() = 0;
    [[nodiscard]] virtual task<result<std::size_t>> read_some(mutable_buffer into) = 0;
    /// Takes what can leave without waiting.
    [[nodiscard]] virtual result<std::size_t> try_write(const_buffer from) = 0;
    /// With TLS: waits until everything that was taken has left. A record that is sealed leaves as
    /// a whole, so writing may take more than the socket does, also when it was stopped.
    [[nodiscard]] virtual task<result<>> settle() = 0;
    [[nodiscard]] virtual task<result<std::size_t>> write_some(std::span<const const_buffer> from,
                                                               bool more) = 0;
    [[nodiscard]] virtual task<transfer_result>
    send_file(int fd, std::uint64_t offset, std::uint64_t count, const_buffer head) = 0;
    /// Ends what is sent, as shutdown_write() does. Does nothing with TLS, where that may wait.
    virtual void end_writing() noexcept = 0;
    /// Gives the stream away, with `ahead` as the first bytes that are read from it.
    [[nodiscard]] virtual any_stream release(received ahead) = 0;

    /// The socket.
    [[nodiscard]] virtual int native_handle() const noexcept = 0;

    const bool secure;

protected:
    explicit transport(bool with_tls) noexcept
        : secure{with_tls} {}
};

} // namespace simplenet::v0::http::detail
