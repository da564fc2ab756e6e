#pragma once
// fastcgi_exchange: a request and its answer on one connection to a backend. Layer http, private.

#include "http/fastcgi/cgi_head.hpp"
#include "http/fastcgi/message_lines.hpp"
#include "http/fastcgi/record.hpp"
#include "http/fastcgi/request_sender.hpp"
#include "http/fastcgi/settings.hpp"
#include "http/gateway/backend_connections.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/io/scratch.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace simplenet::v0::http::detail {

/// Begins with open(), which sends the request and reads the head of the answer. Then it is an
/// async_reader of the answer's body.
///
/// The request leaves while the answer is awaited, so a backend may answer before it has read the
/// request, or without reading it. The connection is kept once the end of the answer and its
/// padding have been read, if the whole request has left; in every other case it is closed.
///
/// Loop thread only.
class fastcgi_exchange {
    using clock = std::chrono::steady_clock;

public:
    // none        it goes on
    // ended       the connection ended, or could not be written to
    // timed_out   a time limit of the backend
    // overloaded  the backend has refused the request, and not begun with it
    // nonsense    this is no answer, or not a complete one
    // source      the body of the request could not be read
    // stopped     by the caller
    enum class failure : std::uint8_t {
        none,
        ended,
        timed_out,
        overloaded,
        nonsense,
        source,
        stopped
    };

    /// What is borrowed outlives this object. The lease ends with the answer.
    fastcgi_exchange(const fastcgi_settings& with, backend_connections& keeper, backend_lease& at,
                     backend_connection over, request_sender& sender,
                     message_lines& messages) noexcept
        : settings_{with}
        , keeper_{keeper}
        , at_{at}
        , connection_{std::move(over)}
        , is_reused_{connection_->is_reused()}
        , sender_{sender}
        , messages_{messages} {}
    fastcgi_exchange(const fastcgi_exchange&) = delete;
    fastcgi_exchange& operator=(const fastcgi_exchange&) = delete;
    ~fastcgi_exchange() = default;

    /// Called once. After an error that is no stop the connection is closed.
    ///
    /// @par Errors
    /// That of the connection; `http::errc::gateway_failed`; `errc::deadline_exceeded`; that of the
    /// body of the request. See why_failed().
    [[nodiscard]] task<result<>> open();

    [[nodiscard]] failure why_failed() const noexcept { return failure_; }
    /// Whether a byte of an answer, or of a message for people, has come.
    [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }
    /// Whether the connection had been used before.
    [[nodiscard]] bool is_reused() const noexcept { return is_reused_; }

    /// @pre open() has succeeded; for the following ones too.
    [[nodiscard]] const cgi_head& head() const noexcept { return head_; }
    /// The text of the head. Until the first read.
    [[nodiscard]] const char* head_text() const noexcept { return text_begin(); }
    /// The bytes of the body that have been read with the head. Until the first read.
    [[nodiscard]] const_buffer first_bytes() const noexcept {
        return {memory_.data() + taken_, text_ - taken_};
    }
    /// Whether the answer is complete with the bytes that have been read.
    [[nodiscard]] bool has_ended() const noexcept { return ended_; }

    /// What read_some() has returned in all.
    [[nodiscard]] std::uint64_t body_bytes() const noexcept { return body_bytes_; }

    /// Reads at least one byte of the answer's body.
    ///
    /// @par Errors
    /// - `end_of_stream`: the backend has told that the answer is complete.
    /// - As open().
    /// @par Cancellation
    /// Nothing is lost.
    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into);

private:
    enum class part : std::uint8_t { head, body };

    [[nodiscard]] const char* text_begin() const noexcept {
        return reinterpret_cast<const char*>(memory_.data());
    }
    /// Moves what there is of the answer behind the text. False: this is no answer.
    [[nodiscard]] bool gather();
    /// Room for input behind what is there.
    [[nodiscard]] mutable_buffer room();
    /// Until when the next bytes of the answer have to come, once nothing is left to send.
    [[nodiscard]] clock::time_point answer_until(part of);
    /// Waits for bytes, while the request leaves. An error is final unless the caller was stopped.
    [[nodiscard]] task<result<>> receive(part of);
    /// The end of the answer has been read.
    void complete();
    std::error_code end_with(failure what, std::error_code why) noexcept;

    const fastcgi_settings& settings_;
    backend_connections& keeper_;
    backend_lease& at_;
    std::optional<backend_connection> connection_; // none: given back, or closed
    const bool is_reused_;
    request_sender& sender_;
    message_lines& messages_;

    fastcgi::answer_reader records_;
    cgi_head head_;
    // [0, text_) is what the records carried, from taken_ on not passed on; [begin_, end_) are
    // records that have not been read. Records are read in place: what they carry moves forward.
    scratch memory_;
    std::size_t taken_ = 0;
    std::size_t text_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::uint64_t body_bytes_ = 0;
    bool has_begun_ = false;
    bool ended_ = false;
    failure failure_ = failure::none;
    std::error_code error_;     // with failure_
    clock::time_point until_{}; // of the head or of the next bytes; 0: does not count yet
};

} // namespace simplenet::v0::http::detail
