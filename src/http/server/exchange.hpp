#pragma once
// exchange: the requests of a connection and their answers, as long as there is something to do.
// Layer http, private.

#include "http/codec/chunked.hpp"
#include "http/codec/framing.hpp"
#include "http/codec/head.hpp"
#include "http/codec/ranges.hpp"
#include "http/server/field_block.hpp"
#include "http/server/gzip_encoder.hpp"
#include "http/server/input.hpp"
#include "http/server/output.hpp"
#include "http/server/pace.hpp"
#include "http/server/route_table.hpp"
#include "http/server/transport.hpp"
#include "http/server/uptake.hpp"

#include <simplenet/http/compression_options.hpp>
#include <simplenet/http/limits.hpp>
#include <simplenet/http/now_or_task.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/io/scratch.hpp>
#include <simplenet/server/server_options.hpp>
#include <simplenet/sync/async_mutex.hpp>
#include <simplenet/time/detail/timer_wheel.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace simplenet::v0::http::detail {

struct local_serving;
class loop_state;
struct handler_outcome;

/// What becomes of a connection behind an exchange.
enum class ending : std::uint8_t {
    idle,     // it waits for the next request
    close,    // nothing is left to read
    give_way, // it is closed at once: others need the room
    settle,   // everything was read, but the client may send another request
    linger,   // the client may be sending a body still
    abort,    // an answer is not complete: the client must not take it for complete
    upgraded, // the handler has taken the stream, or its end
};

/// What a connection remembers between its exchanges.
struct connection_state {
    connection_state(const connection_info& of, loop_state& on);

    /// How long it may wait for a request.
    [[nodiscard]] std::chrono::nanoseconds idle_limit() const noexcept;
    /// The same once the server shuts down.
    [[nodiscard]] std::chrono::nanoseconds last_limit() const noexcept;

    const connection_info& info;
    loop_state& loop;
    // Until then the head of the first request has to be complete; later ones have their own.
    const std::chrono::steady_clock::time_point first_head_until;
    unsigned requests = 0;
    std::uint8_t empty_runs = 0; // that brought only empty lines
    bool failed = false;         // a handler has returned an error
    bool gives_way = false;      // others need the room
    bool ended = false;
};

/// The bytes of a file: in memory, or else in the file.
struct content_source {
    int fd = -1;
    const std::byte* memory = nullptr;
    std::string_view validators = {}; // the lines of ETag and Last-Modified, if they are ready
    bool leaves_refusals = false;     // see exchange::take_refusal()
};

/// Exists while a connection has a request in progress, in memory that is borrowed for so long.
///
/// One coroutine runs it; the handler that it calls reads and writes by its functions.
class exchange final {
public:
    /// @param entries  For the fields of a head.
    /// @param spare    For small texts.
    exchange(connection_state& connection, transport& over, std::span<field_entry> entries,
             std::span<char> spare);
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    ~exchange();

    /// Answers requests until none is left; `first` are bytes that have arrived.
    [[nodiscard]] task<ending> run(received first);
    /// By the last handler; null unless that was its own fault.
    [[nodiscard]] const std::exception_ptr& thrown() const noexcept { return thrown_; }

    // --- for handlers of the library ---

    [[nodiscard]] static exchange& of(request& asked) noexcept { return *asked.exchange_; }
    /// The client's socket.
    [[nodiscard]] int native_handle() const noexcept { return transport_.native_handle(); }
    /// has_left() of the client.
    [[nodiscard]] bool has_client_left() const noexcept;
    [[nodiscard]] static exchange& of(response& answer) noexcept { return *answer.exchange_; }
    [[nodiscard]] static const exchange& of(const request& asked) noexcept {
        return *asked.exchange_;
    }
    [[nodiscard]] const request& asked() const noexcept { return request_; }
    [[nodiscard]] loop_state& loop() const noexcept { return connection_.loop; }
    /// What `{name...}` at the end of the route matched, as it stands in the path.
    [[nodiscard]] std::string_view rest_of_path() const noexcept {
        return match_.values[match_.count - 1];
    }
    /// The entries and the text of the head.
    [[nodiscard]] std::span<const field_entry> entries() const noexcept { return parser_.fields(); }
    [[nodiscard]] const char* head() const noexcept { return head_; }
    /// Answers with the status, its reason and the fields that were set.
    [[nodiscard]] task<result<>> answer_with(unsigned status);
    /// The handler may end with `why`, which is no failure: the client was told.
    void excuse(std::error_code why) noexcept { excused_ = why; }
    /// Sends the head of an answer whose body follows, by write_some().
    [[nodiscard]] task<result<>> send_head();
    /// Whether the request asks for another protocol.
    [[nodiscard]] bool asks_for_upgrade() const noexcept { return framing_.upgrade; }
    /// Waits for a turn of the loop in which no other connection takes a long step, such as one
    /// that compresses: many at once would make a turn as long as their number.
    [[nodiscard]] task<> take_turn();
    /// Forgets everything that was set for the answer but the status.
    void forget_answer() noexcept;
    /// Leaves work on a stream of upgrade() to `next`, which runs when this exchange is gone, and
    /// its memory with it.
    void continue_with(task<result<>> next) { successor_.emplace(std::move(next)); }
    [[nodiscard]] std::optional<task<result<>>> take_successor() noexcept {
        return std::exchange(successor_, std::nullopt);
    }

    // --- of the request ---

    [[nodiscard]] std::string_view parameter(std::string_view name) const noexcept;
    [[nodiscard]] const connection_info& info() const noexcept { return connection_.info; }
    [[nodiscard]] bool secure() const noexcept { return told_secure_.value_or(transport_.secure); }
    [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept;
    [[nodiscard]] task<result<std::size_t>> read_some(mutable_buffer into);
    [[nodiscard]] task<result<std::string>> read_all(std::size_t limit);

    void rewrite(std::string_view path);
    void limit_body(std::uint64_t bytes) noexcept { body_limit_ = bytes; }
    void set_user(std::string_view name);
    void set_peer(const endpoint& client) noexcept { told_peer_ = client; }
    void set_secure(bool secure) noexcept { told_secure_ = secure; }
    [[nodiscard]] bool is_peer_told() const noexcept { return told_peer_.has_value(); }
    [[nodiscard]] endpoint peer() const noexcept {
        return told_peer_ ? *told_peer_ : connection_.info.peer;
    }

    // --- of the answer ---

    [[nodiscard]] unsigned status() const noexcept { return status_; }
    [[nodiscard]] std::optional<std::string_view> find_field(std::string_view name) const noexcept;
    /// Whether fields have been set.
    [[nodiscard]] bool has_fields() const noexcept { return !fields_.empty(); }
    void reset_answer() noexcept;
    void set_compression(const compression_options& with) noexcept { compression_ = with; }
    void set_status(unsigned code) noexcept;
    void set_field(std::string_view name, std::string_view value, bool replaces);
    /// Adds a field that a parser has taken. @pre It is none of Connection, Content-Length and
    /// Transfer-Encoding.
    void add_parsed_field(std::string_view name, std::string_view value);
    [[nodiscard]] now_or_task<result<>> send(std::string_view type, const_buffer body);
    [[nodiscard]] task<result<std::size_t>> write_some(std::span<const const_buffer> from);
    [[nodiscard]] task<result<std::size_t>> write_one(const_buffer from);
    [[nodiscard]] task<result<>> send_file(int fd, std::uint64_t size, file_options options);
    /// @pre The entity tag and the type of `options` are valid, and what the arguments refer to
    /// stays until the result is there.
    [[nodiscard]] now_or_task<result<>> send_content(content_source from, std::uint64_t size,
                                                     const file_options& options);
    /// 412 or 416 if the latest send_content() has sent nothing because it refused a condition or a
    /// range, and its source left that to the caller. 0: it has answered.
    [[nodiscard]] unsigned take_refusal() noexcept { return std::exchange(refusal_, 0U); }
    [[nodiscard]] task<result<>> flush();
    /// The most of a body that a handler has not read, and that is read and dropped for the next
    /// request. Lingering close is cheaper for more.
    static constexpr std::size_t most_drained = std::size_t{64} * 1024;

    [[nodiscard]] bool head_sent() const noexcept { return stage_ != stage::open; }
    /// Whether the client may have a part of an answer, and will get no more.
    [[nodiscard]] bool leaves_a_part() const noexcept {
        const bool is_whole = stage_ == stage::open || stage_ == stage::complete;
        return !upgraded_ && (broken_ || !is_whole || !output_.empty() || unsettled_);
    }
    /// Whether there were answers before, which the client may not have received yet.
    [[nodiscard]] bool follows_others() const noexcept {
        const bool is_counted = !request_.method_.empty(); // its head was complete
        return connection_.requests > (is_counted ? 1U : 0U);
    }
    /// Whether nothing can be sent any more.
    [[nodiscard]] bool is_lost() const noexcept { return lost_; }
    [[nodiscard]] task<result<any_stream>> upgrade(std::string_view protocol);

    /// What the client has taken of the last answer.
    [[nodiscard]] const uptake& taken() const noexcept { return uptake_; }

    /// The handler has suspended: what it has answered leaves without it.
    void handler_waits() noexcept;
    void handler_ended() noexcept {
        handler_waits_ = false;
        late_.cancel();
    }

private:
    // open       the handler may change status and fields
    // streaming  the head was taken, and the handler writes the body
    // sending    a part was taken; unless the call in progress sends the rest, there is a reset
    // complete   the whole answer was taken
    enum class stage : std::uint8_t { open, streaming, sending, complete };

    // How the end of a streamed body is told.
    enum class body_end : std::uint8_t { length, chunks, close };

    // --- exchange.cpp: one request after the other ---
    /// Resets what belongs to one request, before the next one.
    void begin_request() noexcept;
    /// Until the head is complete or refused, or nothing but an empty line.
    /// `std::errc::resource_unavailable_try_again`: somebody else needs the place.
    [[nodiscard]] task<result<head_state>> read_rest_of_head();
    [[nodiscard]] task<ending> end_without_head(std::error_code why);
    /// Whether the requests so far took so long that the loop's other work goes first.
    [[nodiscard]] bool takes_long() noexcept;
    /// 0, or the status that refuses the request.
    [[nodiscard]] unsigned understand();
    [[nodiscard]] bool take_path(std::string_view raw);
    /// Sets `handler`, or returns the status of an answer of our own.
    [[nodiscard]] unsigned choose_handler(route_handler*& handler);
    void decode_parameters();
    [[nodiscard]] task<> fail_answer(const handler_outcome& outcome);
    /// Whether end_request() has nothing to do.
    [[nodiscard]] bool is_done() const noexcept;
    [[nodiscard]] task<ending> end_request();
    /// Whether a streamed body would end although something is missing.
    [[nodiscard]] bool is_stream_cut() noexcept;
    /// Sends what ends a streamed body.
    [[nodiscard]] task<result<>> end_stream();
    [[nodiscard]] task<ending> refuse(unsigned status);
    [[nodiscard]] task<bool> drain_body();
    task<> answer_simply(unsigned status);
    /// Tells server_options::on_answered, once for each request.
    void tell_answered() noexcept;
    [[nodiscard]] std::string_view keep_text(std::string_view text);
    [[nodiscard]] char* take_spare(std::size_t size);

    // --- request_body.cpp ---
    [[nodiscard]] task<result<std::size_t>> read_body(mutable_buffer into);
    [[nodiscard]] task<result<std::size_t>> read_plain(mutable_buffer into);
    [[nodiscard]] task<result<std::size_t>> read_chunked(mutable_buffer into);
    /// Takes what is there of a chunked body; 0: more input is needed.
    [[nodiscard]] result<std::size_t> take_chunked(mutable_buffer into);
    /// Waits for bytes of the body, at most `into.size()` of them.
    [[nodiscard]] task<result<std::size_t>> wait_into(mutable_buffer into);
    /// Waits for bytes that go through input_.
    [[nodiscard]] task<result<>> wait_for_input();
    /// How long a client may send no byte of its body.
    [[nodiscard]] std::chrono::nanoseconds body_idle() const noexcept;
    [[nodiscard]] task<result<>> before_waiting();
    [[nodiscard]] task<std::error_code> body_failure(std::error_code why);
    std::error_code fail_body(std::error_code why, unsigned status) noexcept;

    // --- answer.cpp ---
    struct head_kind {
        std::optional<std::uint64_t> length = {}; // of the body, if known
        bool chunked = false;
        bool gzip = false;
        std::string_view type = {};
    };
    void note_field(std::string_view name) noexcept;
    /// Whether what the handler has set cannot be sent.
    [[nodiscard]] bool has_bad_head() const noexcept;
    [[nodiscard]] bool forbids_body() const noexcept;
    /// An upper bound.
    [[nodiscard]] std::size_t head_size(std::string_view type) const noexcept;
    void append_head(const head_kind& kind);
    void append_answer(std::string_view type, const_buffer body);
    /// Whether the connection ends behind the answer whose head is about to leave.
    [[nodiscard]] bool is_last(bool complete) const noexcept;
    [[nodiscard]] task<result<>> send_large(std::string_view type, const_buffer body);
    [[nodiscard]] task<result<>> begin_streaming(std::string_view type, bool compressed);
    /// The whole answer was taken.
    void complete() noexcept;
    /// Lets the output leave, and what is behind it.
    [[nodiscard]] now_or_task<result<>> write_out(const_buffer behind);
    [[nodiscard]] task<result<>> write_rest(const_buffer behind);
    /// Writes as much of the output as leaves without waiting.
    [[nodiscard]] result<> try_output();
    /// `count` bytes of the output have.
    void moved_out(std::size_t count) noexcept;
    /// Awaits a write, within the limits. If the client's time is over, the connection is broken,
    /// and a write that succeeded becomes `errc::deadline_exceeded`.
    template <class Result>
    [[nodiscard]] task<Result> wait_for_client(task<Result> writing,
                                               patience::start when = patience::start::at_once) {
        patience waiting{transport_.native_handle(), *limits_, uptake_, when};
        auto limited = waiting.of(std::move(writing));
        Result written = co_await std::move(limited);
        if (!waiting.must_end()) co_return written;
        broken_ = lost_ = true;
        if (written) {
            // A stopped write tries once more, and our kernel may take what the client does not.
            typename Result::error_type late{make_error_code(simplenet::errc::deadline_exceeded)};
            if constexpr (std::same_as<Result, transfer_result>) late.transferred = *written;
            written = std::unexpected{late};
        }
        co_return written;
    }
    [[nodiscard]] task<std::error_code> write_failure(std::error_code why);
    [[nodiscard]] now_or_task<result<>> make_room(std::size_t bytes);
    [[nodiscard]] task<result<>> write_for_room();
    /// The handler waits: the output leaves in the next turn of the loop.
    void arm_late_flush() noexcept;
    /// Sends what the socket takes without waiting.
    void write_now() noexcept;

    // --- answer_compressed.cpp ---
    /// Whether the answer can be compressed for this client. May be asked again.
    [[nodiscard]] bool takes_gzip(std::string_view type, std::optional<std::uint64_t> size);
    [[nodiscard]] task<result<>> send_compressed(std::string_view type, const_buffer body);
    [[nodiscard]] task<result<>> send_compressed_file(content_source from, std::uint64_t size,
                                                      std::string_view type);
    /// The number of bytes taken; less than all of them only after a stop, of a flush.
    [[nodiscard]] task<result<std::size_t>> write_compressed(const_buffer from,
                                                             gzip_encoder::until what);

    // --- answer_file.cpp ---
    /// Sets ETag and Last-Modified.
    void set_validators(const content_source& from, const file_options& options);
    [[nodiscard]] task<result<>> send_conditionally(content_source from, std::uint64_t size,
                                                    file_options options, bool compressed);
    [[nodiscard]] task<result<>> send_part(content_source from, byte_range part,
                                           std::string_view type);
    void forget_content() noexcept;
    /// Answers with `status`, or leaves that to the caller.
    [[nodiscard]] task<result<>> refuse_content(unsigned status, const content_source& of);
    [[nodiscard]] task<result<>> send_ranges(content_source from, const requested_ranges& ranges,
                                             std::uint64_t size, std::string_view type);
    /// Whether content of this size is copied behind its head, and leaves with other answers.
    [[nodiscard]] bool gathers(std::uint64_t size) const noexcept {
        return size <= output::gathers && output_.has_room(static_cast<std::size_t>(size));
    }
    [[nodiscard]] now_or_task<result<>> write_content(content_source from, byte_range part);
    [[nodiscard]] task<result<>> write_file(int fd, byte_range part);

    connection_state& connection_;
    std::exception_ptr thrown_;
    transport& transport_;
    simplenet::detail::scope* scope_ = nullptr;    // of run()
    std::shared_ptr<const local_serving> serving_; // of the request
    const limits* limits_;                         // of serving_
    std::chrono::nanoseconds seen_at_{0};          // of takes_long(); 0: not yet
    bool is_long_ = false;
    std::span<char> spare_; // what is left of it
    const std::span<char> all_spare_;
    std::vector<scratch> more_spare_;

    input input_;
    output output_;
    request_parser parser_;
    const char* head_ = nullptr; // the text of the head

    // --- the request ---
    request request_;
    detail::framing framing_;
    route_match match_;
    std::vector<std::string> decoded_; // the parameters, if one of them is encoded
    std::optional<chunked_decoder> chunks_;
    std::uint64_t body_left_ = 0;  // of a body with a length
    std::uint64_t body_limit_ = 0; // 0: none
    bool body_ended_ = false;      // all of it was consumed
    bool awaits_continue_ = false; // the client waits for it
    bool reading_ = false;         // by the handler
    bool handler_waits_ = false;
    bool body_failed_ = false;   // it cannot be read on
    bool draining_ = false;      // the answer is complete
    std::error_code body_error_; // the last error of the body's own
    unsigned body_status_ = 0;   // the status that tells it; 0: none can
    pace body_pace_;
    std::optional<endpoint> told_peer_; // by the handler
    std::optional<bool> told_secure_;
    std::chrono::steady_clock::time_point began_; // only for on_answered
    bool told_ = false;                           // on_answered

    // --- the answer ---
    response response_;
    field_block fields_; // not those of append_head()
    unsigned status_ = 200;
    stage stage_ = stage::open;
    body_end body_end_ = body_end::length; // while streaming
    bool head_only_ = false;               // HEAD
    bool bad_field_ = false;
    bool has_date_ = false;
    bool has_type_ = false;
    bool varies_ = false;    // another client would get it in another coding
    bool missed_ = false;    // what the handler wanted to send last was not taken
    bool closing_ = false;   // the connection ends behind this answer
    bool broken_ = false;    // an answer left in part, or the connection failed
    bool lost_ = false;      // it failed, or its client takes nothing
    async_mutex writing_;    // a handler may read, which flushes, while it writes
    bool corks_ = false;     // the end of the stream follows, so writes use MSG_MORE
    bool unsettled_ = false; // what was taken may not have left, see transport::settle()
    bool upgraded_ = false;
    unsigned refusal_ = 0;                    // of take_refusal()
    std::error_code excused_;                 // of excuse()
    std::optional<task<result<>>> successor_; // after an upgrade
    bool compresses_ = false;                 // a streamed body
    std::optional<gzip_encoder> gzip_;        // from its first bytes on
    std::optional<std::uint64_t> announced_;  // a Content-Length that the handler has set
    std::uint64_t answer_left_ = 0;           // of a streamed body that was announced
    std::uint64_t body_bytes_ = 0;            // that were taken for sending
    compression_options compression_;
    uptake uptake_; // of the answer

    /// Tries again after a pause that grows, as long as something is left. The socket has been full
    /// for at least half as long, so this makes no answer much later, and costs no memory.
    class late_flush final : public simplenet::detail::timer_node {
    public:
        explicit late_flush(exchange& of) noexcept
            : of_{of} {}
        void arm(std::chrono::nanoseconds pause) noexcept;
        [[nodiscard]] bool is_due() const noexcept {
            return armed() && pause_ == std::chrono::nanoseconds::zero();
        }

    private:
        void expired() noexcept override;
        exchange& of_;
        std::chrono::nanoseconds pause_{0}; // before the next try
    };
    late_flush late_{*this};
};

} // namespace simplenet::v0::http::detail
