#pragma once
// round_of_chaos, end_of_chaos: the ends of connections of cancel_chaos_test.

#include "support/coroutines.hpp"
#include "support/placed_bytes.hpp"
#include "support/placed_file.hpp"
#include "support/random_stop.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {

using namespace std::chrono_literals;

inline constexpr std::size_t most_bytes = 96 * 1024; // of one operation
inline constexpr std::byte canary{0xa5};

/// State that all connections of a round share.
struct round_of_chaos : random_stops {
    using random_stops::random_stops;

    bool many_buffers = true; // enough in the pool to keep leases
    bool loop_ends = false;   // with everything in flight
    bool lingers = false;     // some of its ends

    std::uint64_t operations = 0;
    std::uint64_t stops = 0; // those that ended an operation
    std::uint64_t closes = 0;
    std::uint64_t lingered = 0; // closes that the peer answered
    std::uint64_t bytes = 0;
};

/// One end of a connection, and how far it has read and written.
template <class Stream>
class end_of_chaos {
public:
    end_of_chaos(round_of_chaos& in, Stream stream, std::uint64_t reads, std::uint64_t writes)
        : round_{in}
        , incoming_{reads}
        , outgoing_{writes}
        , writes_left_{in.random.up_to(80)}
        , lingers_{in.lingers && in.random.percent(40)} {
        if (in.random.percent(40)) {
            constexpr watermarks small{.low = 2048, .high = 8192, .limit = most_bytes};
            queued_.emplace(std::move(stream), in.random.percent(50) ? small : watermarks{});
        } else {
            plain_.emplace(std::move(stream));
        }
        reader_.emplace(this->stream());
    }
    end_of_chaos(const end_of_chaos&) = delete;
    end_of_chaos& operator=(const end_of_chaos&) = delete;
    ~end_of_chaos() {
        for (const kept_lease& each : leases_)
            check(each.offset, each.bytes.bytes(), "a lease that was kept");
    }

    void connect_with(end_of_chaos& other) { other_ = &other; }
    [[nodiscard]] int native_handle() { return stream().native_handle(); }

    task<> read_everything() {
        while (!read_over_ && !before_lingering_.stop_requested()) {
            const std::size_t many = 1 + round_.random.up_to(20);
            auto reading = round_.perhaps_stopped(read_some_times(many), 15);
            auto until_it_lingers = with_stop(before_lingering_.get_token(), std::move(reading));
            static_cast<void>(co_await std::move(until_it_lingers));
            if (gives_up()) break;
        }
        reading_ = false;
    }
    task<> write_everything() {
        while (!write_over_ && writes_left_ != 0) {
            const std::size_t many = 1 + round_.random.up_to(20);
            static_cast<void>(co_await round_.perhaps_stopped(write_some_times(many), 15));
            if (gives_up()) co_return;
        }
        if (lingers_) co_return co_await linger();
        while (!write_over_ && !gives_up())
            co_await finish_writing();
    }
    /// Runs beside every operation in flight.
    task<> close_some_time() {
        co_await turns(static_cast<int>(round_.random.up_to(400)));
        if (closed_ || (read_over_ && write_over_)) co_return;
        if constexpr (std::same_as<Stream, tcp_stream>) {
            if (round_.random.percent(30)) static_cast<void>(stream().set_linger(0s));
        }
        close();
        if (round_.random.percent(50)) {
            static_cast<void>(co_await round_.perhaps_stopped(stream().closed()));
        }
        co_await let_the_other_close();
    }

    /// @pre Both ends have finished.
    void verify() const {
        if ((closed_ && !lingered_) || other_->closed_ || round_.loop_ends) return;
        EXPECT_EQ(other_->read_, written_) << "bytes were lost at the end of the stream"
                                           << (lingered_ ? ", although it lingered" : "");
    }

private:
    void close() {
        closed_ = true;
        ++round_.closes;
        stream().close();
    }

    // A peer with a closed window may notice only after tcp_fin_timeout, a minute: its probes
    // contain nothing new that the kernel would answer with a reset.
    task<> let_the_other_close() {
        static_cast<void>(co_await async_sleep(50ms));
        other_->close();
    }

    // At the end of the loop every operation is refused: two thirds of the tasks notice.
    bool gives_up() { return round_.loop_ends && round_.random.percent(66); }

    [[nodiscard]] Stream& stream() { return plain_ ? *plain_ : queued_->stream(); }
    void begin(const char* what) {
        ++round_.operations;
        last_ = what;
    }
    [[nodiscard]] std::string where() const {
        return std::string{last_} + ", read " + std::to_string(read_) + ", written " +
               std::to_string(written_) + (queued_ ? ", with a queue" : "");
    }
    bool check(std::uint64_t offset, std::span<const std::byte> bytes, const char* what) const {
        const auto mistake = incoming_.mistake(offset, bytes);
        if (mistake) ADD_FAILURE() << what << ": " << *mistake << " (" << where() << ')';
        return !mistake;
    }

    // --- reading ---

    task<result<>> read_some_times(std::size_t many) {
        for (; many != 0 && !read_over_; --many) {
            const std::error_code why = co_await read_once();
            if (why) {
                const bool stopped = co_await this_task::stop_requested();
                if (stopped) co_return fail(why);
            }
            co_await pause();
        }
        co_return result<>{};
    }

    task<std::error_code> read_once() {
        // Bytes that the reader holds must be taken before any other kind of read.
        const std::size_t way = round_.random.up_to(7);
        if (way <= 3) drain_reader();
        switch (way) {
        case 0:
        case 1: {
            begin("read_some");
            const auto into = fresh_memory();
            const auto count = co_await round_.perhaps_stopped(stream().read_some(into));
            if (count) take(into.first(*count));
            check_memory_behind(into.size());
            co_return read_ended(count);
        }
        case 2: {
            begin("receive");
            auto lease = co_await round_.perhaps_stopped(stream().receive());
            if (lease) keep_or_take(*std::move(lease));
            co_return read_ended(lease);
        }
        case 3: {
            begin("async_read_exact");
            const auto into = fresh_memory();
            const auto count = co_await round_.perhaps_stopped(async_read_exact(stream(), into));
            take(into.first(count ? *count : count.error().transferred));
            check_memory_behind(into.size());
            co_return read_ended(count);
        }
        case 4: {
            begin("buffered read_exact");
            const std::size_t size = round_.random.size(8192);
            const auto bytes = co_await round_.perhaps_stopped(reader_->read_exact(size));
            if (bytes) take(*bytes);
            co_return read_ended(bytes);
        }
        case 5: {
            begin("read_until");
            const auto text = co_await round_.perhaps_stopped(reader_->read_until("\n", 64 * 1024));
            if (text) take(std::as_bytes(std::span{*text}));
            if (!text && text.error() == errc::limit_exceeded) drain_reader();
            co_return read_ended(text);
        }
        case 6: {
            begin("fill");
            const auto bytes = co_await round_.perhaps_stopped(reader_->fill());
            if (bytes && check(read_, *bytes, "fill")) {
                const std::size_t some = round_.random.up_to(bytes->size());
                reader_->consume(some);
                read_ += some;
            }
            co_return read_ended(bytes);
        }
        default: {
            begin("buffered read_some");
            const auto into = fresh_memory();
            const auto count = co_await round_.perhaps_stopped(reader_->read_some(into));
            if (count) take(into.first(*count));
            check_memory_behind(into.size());
            co_return read_ended(count);
        }
        }
    }

    std::span<std::byte> fresh_memory() {
        const std::size_t size = round_.random.size(most_bytes);
        memory_.resize(most_bytes + 1);
        memory_[size] = canary;
        return std::span{memory_}.first(size);
    }
    void check_memory_behind(std::size_t size) const {
        EXPECT_EQ(memory_[size], canary) << "read beyond the buffer: " << where();
    }

    void take(std::span<const std::byte> bytes) {
        check(read_, bytes, last_);
        read_ += bytes.size();
        round_.bytes += bytes.size();
    }
    void drain_reader() {
        const auto rest = reader_->peek();
        take(rest);
        reader_->consume(rest.size());
    }
    // A kept lease shows whether another receive gets the same buffer.
    void keep_or_take(received lease) {
        const std::uint64_t offset = read_;
        take(lease.bytes());
        if (!round_.many_buffers || !round_.random.percent(20)) return;
        leases_.push_back({offset, std::move(lease)});
        if (leases_.size() < 4) return;
        check(leases_.front().offset, leases_.front().bytes.bytes(), "a lease that was kept");
        leases_.pop_front();
    }

    template <class Outcome>
    std::error_code read_ended(const Outcome& outcome) {
        if (outcome) return {};
        const std::error_code why = outcome.error();
        if (was_stopped(outcome)) {
            ++round_.stops;
            if (closed_) read_over_ = true;
        } else if (why == errc::end_of_stream) {
            drain_reader();
            read_over_ = true;
            if (!closed_ && !other_->closed_) {
                EXPECT_TRUE(other_->has_ended_)
                    << "an end of the stream without a cause: " << where();
            }
        } else if (why != errc::limit_exceeded) {
            read_over_ = true;
            expect_end_of(why);
        }
        return why;
    }

    // --- writing ---

    task<result<>> write_some_times(std::size_t many) {
        for (; many != 0 && writes_left_ != 0 && !write_over_; --many, --writes_left_) {
            std::error_code why;
            if (queued_) {
                why = co_await enqueue_once();
            } else {
                why = co_await write_once();
            }
            if (why) {
                const bool stopped = co_await this_task::stop_requested();
                if (stopped) co_return fail(why);
            }
            co_await pause();
        }
        co_return result<>{};
    }

    task<std::error_code> write_once() {
        const std::size_t way = round_.random.up_to(5);
        if (way == 5) co_return co_await send_file();
        auto bytes = outgoing_.piece(written_, round_.random.size(most_bytes));
        const auto parts = cut(bytes);
        const std::span<const const_buffer> several{parts};
        const write_options options{.more = round_.random.percent(30)};
        std::error_code why;
        switch (way) {
        case 0: {
            begin("write_some");
            const auto count = co_await round_.perhaps_stopped(stream().write_some(bytes, options));
            why = wrote_some(count);
            break;
        }
        case 1: {
            begin("write_some of several buffers");
            const auto count =
                co_await round_.perhaps_stopped(stream().write_some(several, options));
            why = wrote_some(count);
            break;
        }
        case 2: {
            begin("async_write_all");
            const auto count = co_await round_.perhaps_stopped(
                async_write_all(stream(), const_buffer{bytes}, options));
            why = wrote_all(count, bytes.size());
            break;
        }
        case 3: {
            begin("async_write_all of several buffers");
            const auto count =
                co_await round_.perhaps_stopped(async_write_all(stream(), several, options));
            why = wrote_all(count, bytes.size());
            break;
        }
        default: {
            begin("try_write_some");
            const auto count = round_.random.percent(50) ? stream().try_write_some(several)
                                                         : stream().try_write_some(bytes);
            const bool full = !count && count.error() == std::errc::operation_would_block;
            if (!full) why = wrote_some(count);
            break;
        }
        }
        give_back(bytes);
        co_return why;
    }

    /// Sends from the file what belongs there, between a head and a tail.
    task<std::error_code> send_file() {
        begin("async_send_file");
        decisions& random = round_.random;
        if (!file_) file_.emplace(outgoing_);
        auto head = outgoing_.piece(written_, random.percent(70) ? random.size(8192) : 0);
        const std::uint64_t from = written_ + head.size();
        std::uint64_t count = random.percent(90) ? random.size(most_bytes) : 0;
        file_->grow_to(from + count);
        std::uint64_t wanted = count;
        if (random.percent(20)) { // more than there is: the tail follows at once
            count = file_->size() - from;
            wanted = count + 1 + random.up_to(4096);
        }
        auto tail = outgoing_.piece(from + count, random.percent(70) ? random.size(8192) : 0);
        const send_file_options around{.head = head, .tail = tail};
        const transfer_result sent = co_await round_.perhaps_stopped(
            async_send_file(stream(), file_->fd(), from, wanted, around));
        give_back(head);
        give_back(tail);
        co_return wrote_all(sent, head.size() + static_cast<std::size_t>(count) + tail.size());
    }

    std::error_code wrote_some(const result<std::size_t>& count) {
        written_ += count.value_or(0);
        return write_ended(count);
    }
    std::error_code wrote_all(const transfer_result& count, std::size_t all) {
        if (count) {
            EXPECT_EQ(*count, all) << where();
        }
        written_ += count ? *count : count.error().transferred;
        return write_ended(count);
    }

    // The memory belongs to this task again, stopped or not: the kernel must not read it any more.
    static void give_back(std::vector<std::byte>& bytes) {
        std::ranges::fill(bytes, std::byte{0xee});
    }

    std::vector<const_buffer> cut(std::span<const std::byte> bytes) {
        std::vector<const_buffer> parts;
        while (!bytes.empty()) {
            const std::size_t size = std::min(round_.random.up_to(bytes.size()), bytes.size());
            parts.emplace_back(bytes.first(size)); // may be empty
            bytes = bytes.subspan(size);
        }
        return parts;
    }

    task<std::error_code> enqueue_once() {
        switch (round_.random.up_to(5)) {
        case 0: {
            begin("flush");
            const auto flushed = co_await round_.perhaps_stopped(queued_->flush());
            if (flushed) {
                EXPECT_EQ(queued_->queued_bytes(), 0U);
            }
            co_return write_ended(flushed);
        }
        case 1: {
            begin("writable");
            co_return write_ended(co_await round_.perhaps_stopped(queued_->writable()));
        }
        default:
            begin("enqueue");
            co_return enqueue(outgoing_.piece(written_, round_.random.size(most_bytes)));
        }
    }
    std::error_code enqueue(std::vector<std::byte> bytes) {
        const std::size_t size = bytes.size();
        result<backpressure> taken{backpressure::normal};
        switch (round_.random.up_to(2)) {
        case 0:
            taken = queued_->enqueue(const_buffer{bytes});
            std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
            break;
        case 1:
            taken =
                queued_->enqueue(std::string{reinterpret_cast<const char*>(bytes.data()), size});
            break;
        default:
            taken = queued_->enqueue(std::move(bytes));
        }
        if (taken) written_ += size;
        if (!taken && taken.error() == errc::queue_full) return {};
        return write_ended(taken);
    }

    task<> finish_writing() {
        has_ended_ = true; // before the peer can notice
        write_over_ = true;
        begin("the end of writing");
        result<> ended;
        if (queued_) {
            ended = co_await round_.perhaps_stopped(queued_->graceful_shutdown());
        } else {
            ended = stream().shutdown_write();
        }
        if (was_stopped(ended) && !closed_) {
            ++round_.stops;
            write_over_ = false; // tries again
        } else if (!ended) {
            expect_end_of(ended.error());
        }
    }

    /// Closes after the last write, whatever the other end still sends.
    task<> linger() {
        while (queued_ && !write_over_) {
            const auto flushed = co_await round_.perhaps_stopped(queued_->flush());
            if (flushed || gives_up()) break;
            write_ended(flushed);
        }
        before_lingering_.request_stop();
        co_await until([this] { return !reading_; });
        drain_reader();
        if (closed_) co_return;
        begin("async_close_lingering");
        ++round_.closes;
        closed_ = read_over_ = write_over_ = true; // before the peer can notice
        const linger_options most{
            .bytes = round_.random.one_of<std::size_t>({4096, 1U << 20U, 1U << 30U}),
            .time = round_.random.one_of<std::chrono::nanoseconds>({1ms, 200ms, 24h})};
        const auto ended =
            co_await round_.perhaps_stopped(async_close_lingering(stream(), most), 40);
        EXPECT_EQ(native_handle(), -1) << "it is closed, however it ended";
        lingered_ = ended.has_value();
        if (lingered_) {
            ++round_.lingered;
            co_return;
        }
        if (!was_stopped(ended) && ended.error() != errc::limit_exceeded) {
            expect_end_of(ended.error());
        }
        co_await let_the_other_close();
    }

    template <class Outcome>
    std::error_code write_ended(const Outcome& outcome) {
        if (outcome) return {};
        if (was_stopped(outcome) && !closed_) {
            ++round_.stops;
        } else {
            write_over_ = true;
            expect_end_of(outcome.error());
        }
        return outcome.error();
    }

    // --- both ---

    /// An error other than a stop is allowed only if one of the two ends has closed.
    void expect_end_of(std::error_code why) const {
        if (closed_) {
            const bool by_peer =
                other_->closed_ && (why == std::errc::connection_reset || // earlier
                                    why == std::errc::not_connected);
            EXPECT_TRUE(by_peer || why == std::errc::bad_file_descriptor ||
                        why == std::errc::broken_pipe || why == std::errc::operation_canceled ||
                        why == errc::deadline_exceeded)
                << "after our own close: " << why.message() << ", " << where();
        } else if (!round_.loop_ends) {
            EXPECT_TRUE(other_->closed_ &&
                        (why == std::errc::broken_pipe || why == std::errc::connection_reset ||
                         why == std::errc::not_connected))
                << why.message() << ", " << where();
        }
    }

    task<> pause() {
        if (round_.random.percent(20)) {
            co_await turns(static_cast<int>(round_.random.up_to(6)));
        } else if (round_.random.percent(4)) {
            static_cast<void>(co_await async_sleep(round_.random.moment()));
        }
    }

    struct kept_lease {
        std::uint64_t offset;
        received bytes;
    };

    round_of_chaos& round_;
    const placed_bytes incoming_;
    const placed_bytes outgoing_;
    end_of_chaos* other_ = nullptr;

    std::optional<Stream> plain_; // either this
    std::optional<queued_writer<Stream>> queued_;
    std::optional<buffered_reader<Stream&>> reader_;

    std::uint64_t read_ = 0;
    std::uint64_t written_ = 0;
    std::size_t writes_left_;
    const bool lingers_;
    bool lingered_ = false; // until the peer had ended its side, too
    std::stop_source before_lingering_;
    bool reading_ = true;
    bool read_over_ = false;
    bool write_over_ = false;
    bool has_ended_ = false; // has ended its side, or is about to
    bool closed_ = false;
    const char* last_ = "nothing";
    std::vector<std::byte> memory_;
    std::deque<kept_lease> leases_;
    std::optional<placed_file> file_; // of what it writes
};

} // namespace simplenet::v0::testing
