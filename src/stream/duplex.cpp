#include <simplenet/stream/duplex.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace simplenet::v0 {
namespace detail {

namespace {

constexpr std::size_t most_received = std::size_t{16} * 1024; // bytes of a lease

// The same codes as those of a socket.
std::error_code code_of(int error) noexcept {
    return {error, std::system_category()};
}

} // namespace

/// One direction: a ring of bytes between the writing end and the reading end.
struct duplex_pipe {
    explicit duplex_pipe(std::size_t bytes)
        : ring{std::make_unique_for_overwrite<std::byte[]>(bytes)}
        , capacity{bytes} {}

    /// Appends as many bytes as there is room for.
    std::size_t put(const_buffer from) noexcept {
        std::size_t done = 0;
        while (done < from.size() && size < capacity) {
            const std::size_t at = (begin + size) % capacity;
            const std::size_t count =
                std::min({from.size() - done, capacity - size, capacity - at});
            std::memcpy(ring.get() + at, from.data() + done, count);
            size += count;
            done += count;
        }
        return done;
    }
    /// Removes the oldest bytes.
    std::size_t take(mutable_buffer into) noexcept {
        std::size_t done = 0;
        while (done < into.size() && size != 0) {
            const std::size_t count = std::min({into.size() - done, size, capacity - begin});
            std::memcpy(into.data() + done, ring.get() + begin, count);
            begin = (begin + count) % capacity;
            size -= count;
            done += count;
        }
        if (size == 0) begin = 0; // an idle pipe keeps using the same few pages
        return done;
    }

    /// Something changed for the operation waiting in `slot`: it is attempted in its turn.
    // Not attempted here: no operation resumes inside the start of another, and a reader that is
    // woken finds everything that arrived meanwhile.
    static void wake(duplex_operation* slot) noexcept {
        if (slot == nullptr || slot->phase_ != duplex_operation::state::waiting) return;
        slot->within_->queue->debug_check_thread();
        slot->phase_ = duplex_operation::state::queued;
        slot->within_->queue->push(*slot);
    }
    /// Its end of the stream was closed.
    static void cancel(duplex_operation* slot) noexcept {
        if (slot == nullptr) return;
        const bool queued = slot->phase_ == duplex_operation::state::queued;
        slot->within_->queue->debug_check_thread();
        slot->finish(error_of(stop_reason::canceled));
        if (!queued) slot->within_->queue->push(*slot);
    }

    std::unique_ptr<std::byte[]> ring;
    std::size_t capacity;
    std::size_t begin = 0;
    std::size_t size = 0;
    duplex_operation* reader = nullptr; // waiting or queued
    duplex_operation* writer = nullptr;
    bool reader_closed = false;
    bool writer_closed = false;
    bool write_ended = false; // by shutdown_write() or close(): after these bytes the stream ends
};

/// Shared by the two ends; the last one frees it. Owns the two directions.
struct duplex_link {
    explicit duplex_link(std::size_t capacity)
        : pipes{duplex_pipe{capacity}, duplex_pipe{capacity}} {}

    std::array<duplex_pipe, 2> pipes; // pipes[side] is read by that side
    unsigned handles = 2;
};

bool duplex_operation::start(std::coroutine_handle<> caller, scope& within) noexcept {
    if (pipe_ == nullptr) {
        return misused(caller, within, "an operation on a stream that was moved from");
    }
    duplex_pipe& pipe = *pipe_;
    caller_ = caller;
    within_ = &within;
    within.queue->debug_check_thread();

    if (within.stopped() || closed()) [[unlikely]] {
        // Refused, but never inline: a task that ignores its stop must not spin on this thread.
        error_ = within.stopped() ? error_of(within.reason) : code_of(EBADF);
        phase_ = state::finished;
        within.current = this;
        within.tell_observer();
        within.queue->refuse(*this, within);
        return true;
    }
    if ((is_read(kind_) ? pipe.reader : pipe.writer) != nullptr) {
        return misused(caller, within, "a second read or write on a stream that has one in flight");
    }
    if (!within.queue->take_inline_turn()) {
        enter(state::queued, within);
        within.queue->push(*this);
        return true;
    }
    if (attempt()) return false;
    enter(state::waiting, within);
    return true;
}

void duplex_operation::enter(state phase, scope& within) noexcept {
    (is_read(kind_) ? pipe_->reader : pipe_->writer) = this;
    within.current = this; // one store, through which a stop finds this operation
    within.tell_observer();
    phase_ = phase;
}

void duplex_operation::leave() noexcept {
    (is_read(kind_) ? pipe_->reader : pipe_->writer) = nullptr;
}

void duplex_operation::finish(std::error_code error) noexcept {
    leave();
    error_ = error;
    phase_ = state::finished;
}

/// Moves as many bytes as possible. True: the operation is over.
bool duplex_operation::attempt() noexcept {
    return is_read(kind_) ? attempt_read() : attempt_write();
}

bool duplex_operation::attempt_read() noexcept {
    duplex_pipe& pipe = *pipe_;
    if (kind_ == request::perform_read) return pipe.size != 0 || pipe.write_ended; // readable()
    if (moved_ == size_) return true; // only an exact read: of nothing, or complete
    const std::size_t count = pipe.take({data_ + moved_, size_ - moved_});
    if (count != 0) duplex_pipe::wake(pipe.writer);
    moved_ += count;
    if (moved_ == size_ || (kind_ == request::read_some && count != 0)) return true;
    if (!pipe.write_ended) return false;
    error_ = make_error_code(errc::end_of_stream);
    return true;
}

bool duplex_operation::attempt_write() noexcept {
    duplex_pipe& pipe = *pipe_;
    std::size_t count = 0;
    for (;;) {
        const const_buffer next = next_bytes();
        if (next.empty()) break;
        if (pipe.write_ended || pipe.reader_closed) {
            error_ = code_of(EPIPE);
            return true;
        }
        const std::size_t put = pipe.put(next);
        if (put == 0) break;
        count += put;
        moved_ += put;
        skip_ += put;
    }
    if (count != 0) duplex_pipe::wake(pipe.reader);
    return (kind_ == request::write_some && count != 0) || next_bytes().empty();
}

/// The next bytes to write; empty if none are left.
const_buffer duplex_operation::next_bytes() noexcept {
    if (!vectored_) return {data_ + moved_, size_ - moved_};
    while (size_ != 0 && skip_ == buffers_->size()) {
        skip_ = 0;
        ++buffers_;
        --size_;
    }
    return size_ == 0 ? const_buffer{} : buffers_->subspan(skip_);
}

result<std::size_t> duplex_operation::attempt_now() noexcept {
    SIMPLENET_EXPECTS(pipe_ != nullptr, "an operation on a stream that was moved from");
    SIMPLENET_EXPECTS((is_read(kind_) ? pipe_->reader : pipe_->writer) == nullptr,
                      "a second read or write on a stream that has one in flight");
    if (closed()) return fail(code_of(EBADF));
    if (!attempt()) return fail(std::errc::operation_would_block);
    if (error_) return fail(error_);
    return moved_;
}

bool duplex_operation::closed() const noexcept {
    return is_read(kind_) ? pipe_->reader_closed : pipe_->writer_closed;
}

void duplex_operation::run() noexcept {
    if (phase_ == state::queued) {
        if (attempt()) {
            finish(error_);
        } else if (stopped_ != stop_reason::none) {
            finish(error_of(stopped_));
        } else {
            phase_ = state::waiting;
            return;
        }
    }
    resume();
}

void duplex_operation::describe(std::string& text) {
    text += is_read(kind_) ? "bytes from a duplex" : "room in a duplex";
}

void duplex_operation::on_stop(stop_reason reason) noexcept {
    switch (phase_) {
    case state::idle:
    case state::finished:
        return; // success beats a stop; the next operation sees it
    case state::queued:
        if (stopped_ == stop_reason::none) stopped_ = reason; // the attempt decides
        return;
    case state::waiting:
        finish(error_of(reason));
        within_->queue->push(*this);
        return;
    }
}

} // namespace detail

inline namespace runtime {

duplex_stream& duplex_stream::operator=(duplex_stream&& other) noexcept {
    if (this != &other) {
        drop();
        link_ = std::exchange(other.link_, nullptr);
        side_ = other.side_;
    }
    return *this;
}

duplex_stream::~duplex_stream() {
    drop();
}

void duplex_stream::drop() noexcept {
    if (link_ == nullptr) return;
    close();
    if (--link_->handles == 0) delete link_;
    link_ = nullptr;
}

detail::duplex_pipe* duplex_stream::incoming() const noexcept {
    return link_ == nullptr ? nullptr : &link_->pipes[side_];
}

detail::duplex_pipe* duplex_stream::outgoing() const noexcept {
    return link_ == nullptr ? nullptr : &link_->pipes[1 - side_];
}

// The bytes of a write are only read, so removing const is safe below.

detail::duplex_some duplex_stream::read_some(mutable_buffer into) noexcept {
    SIMPLENET_EXPECTS(!into.empty(), "read_some() into an empty buffer");
    return {incoming(), detail::request::read_some, into.data(), into.size()};
}

detail::duplex_readable duplex_stream::readable() noexcept {
    return {incoming(), detail::request::perform_read, nullptr, 0};
}

result<received> duplex_stream::try_receive() noexcept {
    if (const auto there = readable().now(); !there) return fail(there);
    detail::duplex_pipe& from = *incoming();
    if (from.size == 0) return fail(errc::end_of_stream);
    const std::size_t count = std::min(from.size, detail::most_received);
    std::byte* const memory = detail::allocate_lease(count);
    if (memory == nullptr) return fail(std::errc::not_enough_memory);
    const auto taken = read_some({memory, count}).now();
    return received{memory, taken.value_or(0)};
}

result<std::size_t> duplex_stream::try_write_some(const_buffer from) noexcept {
    return write_some(from).now();
}

result<std::size_t> duplex_stream::try_write_some(std::span<const const_buffer> from) noexcept {
    return write_some(from).now();
}

detail::duplex_some duplex_stream::write_some(const_buffer from,
                                              write_options /*options*/) noexcept {
    return {outgoing(), detail::request::write_some, const_cast<std::byte*>(from.data()),
            from.size()};
}

detail::duplex_some duplex_stream::write_some(std::span<const const_buffer> from,
                                              write_options /*options*/) noexcept {
    return {outgoing(), detail::request::write_some, from};
}

detail::duplex_whole duplex_stream::read_exact_operation(mutable_buffer into) noexcept {
    return {incoming(), detail::request::read_exact, into.data(), into.size()};
}

detail::duplex_whole duplex_stream::write_all_operation(const_buffer from,
                                                        write_options /*options*/) noexcept {
    return {outgoing(), detail::request::write_all, const_cast<std::byte*>(from.data()),
            from.size()};
}

detail::duplex_whole duplex_stream::write_all_operation(std::span<const const_buffer> from,
                                                        write_options /*options*/) noexcept {
    return {outgoing(), detail::request::write_all, from};
}

detail::ready_result duplex_stream::shutdown_write() noexcept {
    SIMPLENET_EXPECTS(link_ != nullptr, "an operation on a stream that was moved from");
    detail::duplex_pipe& pipe = *outgoing();
    if (pipe.writer_closed) return fail(std::errc::bad_file_descriptor);
    pipe.write_ended = true;
    detail::duplex_pipe::wake(pipe.writer);
    detail::duplex_pipe::wake(pipe.reader);
    return {};
}

void duplex_stream::close() noexcept {
    if (!is_open()) return;
    detail::duplex_pipe& in = *incoming();
    in.reader_closed = true;
    in.size = 0;
    detail::duplex_pipe::cancel(in.reader);
    detail::duplex_pipe::wake(in.writer);

    detail::duplex_pipe& out = *outgoing();
    out.writer_closed = true;
    out.write_ended = true;
    detail::duplex_pipe::cancel(out.writer);
    detail::duplex_pipe::wake(out.reader);
}

bool duplex_stream::is_open() const noexcept {
    return link_ != nullptr && !incoming()->reader_closed;
}

std::pair<duplex_stream, duplex_stream> duplex(std::size_t capacity_bytes) {
    SIMPLENET_EXPECTS(capacity_bytes != 0, "duplex() with no room: nothing could ever be written");
    auto* const link = new detail::duplex_link{capacity_bytes};
    return {duplex_stream{*link, 0}, duplex_stream{*link, 1}};
}

} // namespace runtime
} // namespace simplenet::v0
