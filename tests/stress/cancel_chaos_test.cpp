// Streams are read and written in every possible way, while a third of the operations is stopped,
// timed out or cut off by close(), at random. Each byte tells its position: none may be lost,
// duplicated or reordered, whatever was stopped when.
//
// A failure prints a seed; SIMPLENET_SEED=<seed> starts with that one. The loop's decisions are
// then the same, but not the timing of the kernel's reports, nor the other threads.

#include "support/backend_test.hpp"
#include "support/descriptors.hpp"
#include "support/full_form.hpp"
#include "support/placed_bytes.hpp"
#include "support/random_stop.hpp"
#include "support/raw_peer.hpp"
#include "support/resources.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::decisions;
using testing::manner;
using testing::placed_bytes;
using testing::short_or_full;
using testing::was_stopped;

constexpr std::size_t most_bytes = 96 * 1024; // of one operation
constexpr std::byte canary{0xa5};

/// State that all connections of a round share.
struct round_of_chaos {
    round_of_chaos(std::uint64_t seed, testing::stopping_thread& stopping)
        : random{seed}
        , elsewhere{stopping} {}

    decisions random;
    testing::stopping_thread& elsewhere;
    bool many_buffers = true; // enough in the pool to keep leases
    bool loop_ends = false;   // with everything in flight

    std::uint64_t operations = 0;
    std::uint64_t stops = 0; // those that ended an operation
    std::uint64_t closes = 0;
    std::uint64_t bytes = 0;

    /// Awaits `work`, and nearly always tries to stop it: three tries in ten are in time.
    template <class Awaitable>
    auto perhaps_stopped(Awaitable work, std::size_t percent = 95) {
        const manner how = random.percent(percent) ? random.any_manner() : manner::not_at_all;
        return testing::stopped(std::move(work), how, random, elsewhere);
    }
};

/// One end of a connection, and how far it has read and written.
template <class Stream>
class end_of_chaos {
public:
    end_of_chaos(round_of_chaos& in, Stream stream, std::uint64_t reads, std::uint64_t writes)
        : round_{in}
        , incoming_{reads}
        , outgoing_{writes}
        , writes_left_{in.random.up_to(80)} {
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
        while (!read_over_) {
            const std::size_t many = 1 + round_.random.up_to(20);
            static_cast<void>(co_await round_.perhaps_stopped(read_some_times(many), 15));
            if (gives_up()) co_return;
        }
    }
    task<> write_everything() {
        while (!write_over_ && writes_left_ != 0) {
            const std::size_t many = 1 + round_.random.up_to(20);
            static_cast<void>(co_await round_.perhaps_stopped(write_some_times(many), 15));
            if (gives_up()) co_return;
        }
        while (!write_over_ && !gives_up())
            co_await finish_writing();
    }
    /// Runs beside every operation in flight.
    task<> close_some_time() {
        co_await testing::turns(static_cast<int>(round_.random.up_to(400)));
        if (read_over_ && write_over_) co_return;
        if constexpr (std::same_as<Stream, tcp_stream>) {
            if (round_.random.percent(30)) static_cast<void>(stream().set_linger(0s));
        }
        close();
        if (round_.random.percent(50)) {
            static_cast<void>(co_await round_.perhaps_stopped(stream().closed()));
        }
        // A peer with a closed window may notice only after tcp_fin_timeout, a minute: its probes
        // contain nothing new that the kernel would answer with a reset.
        static_cast<void>(co_await async_sleep(50ms));
        other_->close();
    }

    /// @pre Both ends have finished.
    void verify() const {
        if (closed_ || other_->closed_ || round_.loop_ends) return;
        EXPECT_EQ(read_, other_->written_) << "bytes were lost at the end of the stream";
    }

private:
    void close() {
        closed_ = true;
        ++round_.closes;
        stream().close();
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
        const auto bytes = outgoing_.piece(written_, round_.random.size(most_bytes));
        std::error_code why;
        switch (round_.random.up_to(3)) {
        case 0: {
            begin("write_some");
            const auto count = co_await round_.perhaps_stopped(stream().write_some(bytes));
            why = write_ended(count);
            written_ += count.value_or(0);
            break;
        }
        case 1: {
            begin("write_some of several buffers");
            const auto parts = cut(bytes);
            const auto count = co_await round_.perhaps_stopped(
                stream().write_some(std::span<const const_buffer>{parts}));
            why = write_ended(count);
            written_ += count.value_or(0);
            break;
        }
        case 2: {
            begin("async_write_all");
            const auto count =
                co_await round_.perhaps_stopped(async_write_all(stream(), const_buffer{bytes}));
            why = write_ended(count);
            written_ += count ? *count : count.error().transferred;
            break;
        }
        default: {
            begin("async_write_all of several buffers");
            const auto parts = cut(bytes);
            const auto count = co_await round_.perhaps_stopped(
                async_write_all(stream(), std::span<const const_buffer>{parts}));
            why = write_ended(count);
            written_ += count ? *count : count.error().transferred;
            break;
        }
        }
        // The memory belongs to this task again, stopped or not: the kernel must not read it any
        // more.
        std::memset(const_cast<std::byte*>(bytes.data()), 0xee, bytes.size());
        co_return why;
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
            const bool by_peer = other_->closed_ && why == std::errc::connection_reset; // earlier
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
            co_await testing::turns(static_cast<int>(round_.random.up_to(6)));
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
    bool read_over_ = false;
    bool write_over_ = false;
    bool has_ended_ = false; // has ended its side, or is about to
    bool closed_ = false;
    const char* last_ = "nothing";
    std::vector<std::byte> memory_;
    std::deque<kept_lease> leases_;
};

class cancel_chaos_test : public testing::backend_test {
protected:
    /// Rounds of chaos until there were enough operations.
    template <class Stream, class Connect>
    void rage(Connect connect) {
        const std::uint64_t enough = short_or_full<std::uint64_t>(12'000, 1'000'000);
        const std::uint64_t first = testing::first_seed();
        const auto start = std::chrono::steady_clock::now();
        testing::stopping_thread stopping;
        std::uint64_t operations = 0;
        std::uint64_t stops = 0;
        std::uint64_t closes = 0;
        std::uint64_t bytes = 0;
        std::uint64_t seed = first;
        const auto passed = [&] { return std::chrono::steady_clock::now() - start; };
        for (; operations < enough; ++seed) {
            round_of_chaos round{seed, stopping};
            one_round<Stream>(round, seed, connect);
            operations += round.operations;
            stops += round.stops;
            closes += round.closes;
            bytes += round.bytes;
            if (HasFailure() || IsSkipped()) return;
        }
        EXPECT_GT(stops * 20, operations) << "too few operations were stopped to test anything";
        const double seconds = std::chrono::duration<double>(passed()).count();
        testing::report_figures(std::to_string(operations) + " operations, " +
                                std::to_string(stops) + " stopped, " + std::to_string(closes) +
                                " connections closed, " + std::to_string(bytes >> 20U) +
                                " MiB, seeds " + std::to_string(first) + " to " +
                                std::to_string(seed - 1) + ", " + std::to_string(seconds) + " s");
    }

private:
    template <class Stream, class Connect>
    void one_round(round_of_chaos& round, std::uint64_t seed, Connect connect) {
        const ::testing::ScopedTrace trace{__FILE__, __LINE__,
                                           "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
        destroy_loop();
        const auto before = testing::resources::now();
        loop_options options;
        options.queue_depth = round.random.one_of({8U, 256U});
        options.read_ahead = round.random.one_of<std::size_t>({1, 4096, 64 * 1024});
        round.many_buffers = round.random.percent(60);
        if (!round.many_buffers) options.receive_pool = 1; // two
        remake_loop(options);
        if (IsSkipped()) return;
        {
            std::vector<std::unique_ptr<end_of_chaos<Stream>>> ends;
            const std::size_t connections = 1 + round.random.up_to(5);
            for (std::size_t each = 0; each < connections; ++each) {
                const int size = round.random.one_of({0, 4096, 16384});
                auto [one, other] = connect(testing::buffer_sizes{.ours = size, .theirs = size});
                const std::uint64_t forth = 2 * (seed * 64 + each);
                ends.push_back(std::make_unique<end_of_chaos<Stream>>(round, std::move(one), forth,
                                                                      forth + 1));
                ends.push_back(std::make_unique<end_of_chaos<Stream>>(round, std::move(other),
                                                                      forth + 1, forth));
                ends[2 * each]->connect_with(*ends[2 * each + 1]);
                ends[2 * each + 1]->connect_with(*ends[2 * each]);
            }
            for (const auto& each : ends) {
                loop().spawn(each->read_everything());
                loop().spawn(each->write_everything());
                if (round.random.percent(8)) loop().spawn(each->close_some_time());
            }
            if (round.random.percent(10)) loop().spawn(end_the_loop(round));
            still_alive();
            const bool in_time = loop().run_for(std::min(testing::test_limit * 4, 40s));
            if (!in_time) {
                ADD_FAILURE() << "it hangs";
                loop().dump_tasks(std::cerr);
                for (const auto& each : ends)
                    std::cerr << testing::kernel_state(each->native_handle());
                round.loop_ends = true;
            }
            destroy_loop(); // the ends outlive the loop
            for (const auto& each : ends)
                each->verify();
        }
        testing::expect_nothing_left(before);
    }

    task<> end_the_loop(round_of_chaos& round) {
        co_await testing::turns(static_cast<int>(round.random.up_to(300)));
        round.loop_ends = true;
        loop().stop();
    }
};

TEST_P(cancel_chaos_test, no_byte_of_a_tcp_stream_is_lost_duplicated_or_reordered) {
    rage<tcp_stream>([](testing::buffer_sizes sizes) {
        auto [one, other] = testing::tcp_ends(sizes);
        return std::pair{testing::make_tcp_stream(std::move(one)),
                         testing::make_tcp_stream(std::move(other))};
    });
}

TEST_P(cancel_chaos_test, no_byte_of_a_local_stream_is_lost_duplicated_or_reordered) {
    rage<local_stream>([](testing::buffer_sizes sizes) {
        auto [one, other] = testing::local_ends(sizes);
        return std::pair{testing::make_local_stream(std::move(one)),
                         testing::make_local_stream(std::move(other))};
    });
}

INSTANTIATE_TEST_SUITE_P(backends, cancel_chaos_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
