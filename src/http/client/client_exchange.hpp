#pragma once
// client_exchange: a request of a client and its answer, on one connection. Layer http, private.

#include "http/client/client_settings.hpp"
#include "http/client/exchange_request.hpp"
#include "http/client/inflater.hpp"
#include "http/client/input_buffer.hpp"
#include "http/client/upload.hpp"
#include "http/codec/chunked.hpp"
#include "http/codec/framing.hpp"
#include "http/codec/head.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/fields.hpp>
#include <simplenet/io/received.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/stream/any_stream.hpp>
#include <simplenet/stream/connection_pool.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace simplenet::v0::http::detail {

/// Whether `why` tells that the peer has ended a connection, as opposed to a message on it.
[[nodiscard]] bool is_end_of_connection(std::error_code why) noexcept;

/// Learns what becomes of the connection of an exchange.
class connection_keeper {
public:
    connection_keeper(const connection_keeper&) = delete;
    connection_keeper& operator=(const connection_keeper&) = delete;

    /// The connection can be used again.
    virtual void keep(pooled<any_stream> connection) = 0;
    /// The answer is whole, and the connection was closed.
    virtual void closed() noexcept = 0;
    /// The exchange has failed, and the connection was closed.
    virtual void broke_off() noexcept = 0;

protected:
    connection_keeper() noexcept = default;
    ~connection_keeper() = default;
};

/// Begins with open(), which sends the request and reads the head of the answer; becomes a
/// client_response.
///
/// The request leaves only while something waits for the answer: then both are in flight, and each
/// wait stops the other side when its own is over. So a server may answer while it reads, and no
/// coroutine is left behind when an answer is dropped.
class client_exchange {
    using clock = std::chrono::steady_clock;

public:
    /// @param keeper  Gets the connection back, and outlives this. Null: its pool does.
    client_exchange(std::shared_ptr<const client_settings> with, exchange_request asked,
                    pooled<any_stream> over, clock::time_point total_until,
                    connection_keeper* keeper = nullptr);
    client_exchange(const client_exchange&) = delete;
    client_exchange& operator=(const client_exchange&) = delete;
    ~client_exchange() = default;

    /// Called once. An error has closed the connection.
    [[nodiscard]] task<result<>> open();
    /// Whether a byte of an answer has come.
    [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }
    /// Whether a byte of the request has left.
    [[nodiscard]] bool has_sent() const noexcept { return upload_.moved() != 0; }
    /// Why the body of the request could not be read to its end; zero if it could.
    [[nodiscard]] std::error_code source_failure() const noexcept {
        return upload_.source_failure();
    }
    /// The whole body, if it has a length and is here already. It counts as read. Valid until the
    /// next call of any other function.
    [[nodiscard]] std::optional<const_buffer> take_whole();
    /// Reads what is here of a chunked body, without waiting; 0: nothing is. Otherwise as
    /// read_some().
    [[nodiscard]] result<std::size_t> try_read_chunked(mutable_buffer into);
    /// Whether the next read of the body takes bytes that have arrived, and so does not fail.
    /// @pre not is_chunked().
    [[nodiscard]] bool has_bytes() const noexcept { return !input_.empty(); }
    /// Whether the body is chunked.
    [[nodiscard]] bool is_chunked() const noexcept {
        return framing_.kind == framing::kind::chunked && !inflater_;
    }
    /// Reads what is left of a small body, so that the connection can be used again.
    [[nodiscard]] task<> drain();
    /// Gives the connection away, with what has arrived behind the head. @pre The status is 101.
    [[nodiscard]] any_stream release(received& ahead);

    // --- of client_response ---

    [[nodiscard]] unsigned status() const noexcept { return parser_.code(); }
    [[nodiscard]] std::string_view reason() const noexcept { return parser_.reason(head_.data()); }
    [[nodiscard]] unsigned version() const noexcept { return parser_.version(); }
    [[nodiscard]] const http::fields& fields() const noexcept { return fields_; }
    [[nodiscard]] const http::fields& trailers() const noexcept { return trailers_; }
    [[nodiscard]] std::string_view url() const noexcept { return url_; }
    [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;
    [[nodiscard]] bool is_decompressed() const noexcept { return inflater_ != nullptr; }
    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into);
    [[nodiscard]] task<result<std::string>> read_all(std::size_t limit);

private:
    enum class part : std::uint8_t { head, body };

    // --- client_exchange.cpp: the head, and waiting ---
    [[nodiscard]] result<bool> take_head();
    void choose_decompression();
    /// Until when the next bytes of the answer have to come, once nothing is left to send.
    [[nodiscard]] clock::time_point answer_until(part of);
    /// Waits for bytes, while the request leaves. An error is final unless the caller was stopped.
    [[nodiscard]] task<result<std::size_t>> wait_into(mutable_buffer into, part of);
    /// Ends the exchange and the connection.
    std::error_code end_with(std::error_code why) noexcept;

    // --- answer_body.cpp ---
    /// The body as it was sent, without its chunks.
    [[nodiscard]] task<result<std::size_t>> read_body(mutable_buffer into);
    [[nodiscard]] task<result<std::size_t>> read_plain(mutable_buffer into);
    [[nodiscard]] task<result<std::size_t>> read_chunked(mutable_buffer into);
    /// Takes what is there of a chunked body; 0: more input is needed.
    [[nodiscard]] result<std::size_t> take_chunked(mutable_buffer into);
    [[nodiscard]] task<result<std::size_t>> read_decompressed(mutable_buffer into);
    void make_chunks();
    /// The body is complete: keeps the connection, if it can be used again.
    void end_body();
    void end_body_before(bool more_has_come);

    const std::shared_ptr<const client_settings> settings_;
    const client_options& options_;
    const clock::time_point total_until_;
    connection_keeper* const keeper_;
    const std::string method_;
    const std::string url_;
    const bool closes_;
    const bool decompresses_;
    const bool upgrades_;

    std::optional<pooled<any_stream>> connection_; // none: given back, or closed
    upload upload_;
    input_buffer input_;

    // --- the head ---
    // Of the parser; not initialised: it writes an entry before anything reads it.
    scratch entries_;
    response_parser parser_;
    std::string head_; // of the answer
    unsigned informational_ = 0;
    bool has_begun_ = false;
    clock::time_point head_until_{}; // 0: the request has not left
    http::fields fields_;
    http::fields trailers_;

    // --- the body ---
    framing framing_;
    std::uint64_t body_left_ = 0; // of a body with a length
    std::optional<chunked_decoder> chunks_;
    bool body_ended_ = false;
    std::error_code failure_; // final
    bool reading_ = false;    // for the contract

    std::unique_ptr<inflater> inflater_;
    scratch packed_memory_;
    const_buffer packed_; // what the inflater has not taken of it
    std::uint64_t packed_bytes_ = 0;
    std::uint64_t unpacked_bytes_ = 0;
};

} // namespace simplenet::v0::http::detail
