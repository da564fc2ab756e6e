#pragma once
// upload: a request that is leaving. Layer http, private.

#include "http/client/exchange_request.hpp"
#include "http/client/send_limit.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/async_reader_ref.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/stream/any_stream.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace simplenet::v0::http::detail {

/// Sends a head and a body, in as many calls of run() as it takes.
///
/// Nothing is in flight between the calls, so the body is borrowed only by an exchange that is
/// being worked on.
class upload {
public:
    /// @param idle  How long the server may take nothing that is sent to it. 0: no limit.
    upload(exchange_request asked, std::chrono::nanoseconds idle);
    upload(const upload&) = delete;
    upload& operator=(const upload&) = delete;
    ~upload() = default;

    /// Sends what the kernel takes without waiting. Nearly always that is all of a request without
    /// a stream, which then costs no wait at all.
    void try_send(any_stream& to);
    /// Sends until everything has left, or the server has to be waited for, or it cannot go on. A
    /// stop loses nothing.
    [[nodiscard]] task<result<>> run(any_stream& to);
    /// Whether run() has something to do.
    [[nodiscard]] bool can_run() const noexcept { return !over_ && !is_held(); }

    /// Whether the head has left and the body waits for `100 Continue`.
    [[nodiscard]] bool is_held() const noexcept {
        return !over_ && awaits_continue_ && front_.empty() && !may_be_unsent_;
    }
    /// The server waits for the body.
    void go_on() noexcept { awaits_continue_ = false; }
    /// What has not left stays.
    void give_up() noexcept { over_ = true; }

    /// Whether all of it has left.
    [[nodiscard]] bool is_complete() const noexcept { return complete_; }
    /// Why the body could not be read to its end; zero if it could.
    [[nodiscard]] std::error_code source_failure() const noexcept { return source_failure_; }
    /// Why the connection took no more; zero if it did.
    [[nodiscard]] std::error_code write_failure() const noexcept { return write_failure_; }
    /// Bytes that have left.
    [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }
    /// Whether the server has taken nothing for too long. Then run() has failed.
    [[nodiscard]] bool is_late() const noexcept { return limit_.is_exceeded(); }

private:
    [[nodiscard]] std::array<const_buffer, 2> parts() const noexcept {
        return {front_, awaits_continue_ ? const_buffer{} : body_};
    }
    void took(std::size_t count) noexcept;
    [[nodiscard]] bool has_taken_all() const noexcept {
        return front_.empty() && body_.empty() && source_ended_;
    }
    void complete() noexcept;
    [[nodiscard]] task<result<>> send_some(any_stream& to);
    [[nodiscard]] task<result<>> read_source();

    const std::string head_;
    const_buffer front_; // what leaves first: of the head, of the block
    const_buffer body_;  // what follows it
    async_reader_ref source_;
    std::optional<std::uint64_t> source_left_; // none: it leaves in chunks
    scratch block_;                            // of the source
    bool source_ended_;
    const bool is_secure_;
    bool awaits_continue_;
    bool may_be_unsent_ = false; // TLS has taken all, and perhaps only sealed it
    bool over_ = false;
    bool complete_ = false;
    send_limit limit_;
    std::error_code source_failure_;
    std::error_code write_failure_;
    std::uint64_t moved_ = 0;
};

} // namespace simplenet::v0::http::detail
