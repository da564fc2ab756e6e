// queued_writer: its marks, its order and its waits, on a stream that an input controls.

#include "fuzz/fuzz.hpp"
#include "fuzz/on_loop.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/queued_writer.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/time/deadline.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

using namespace std::chrono_literals;

/// The instructions for the stream, and what it has received.
struct script {
    std::size_t piece = 1000; // accepts at most so many bytes at a time
    std::size_t room = 0;     // and so many more in total before it waits
    std::error_code error;    // of every write from here on
    std::string written;
    async_event changed;
    bool closed = false;
    bool half_closed = false;
};

class sink {
public:
    explicit sink(std::shared_ptr<script> of)
        : script_{std::move(of)} {}
    sink(sink&&) noexcept = default;
    sink& operator=(sink&&) = delete;
    ~sink() {
        if (script_) close();
    }

    task<result<std::size_t>> write_some(const_buffer from) {
        const std::vector<const_buffer> one{from};
        return write(script_, one);
    }
    task<result<std::size_t>> write_some(std::span<const const_buffer> from) {
        return write(script_, {from.begin(), from.end()});
    }
    task<result<>> shutdown_write() { return end(script_); }
    void close() { script_->closed = true; }

private:
    static task<result<std::size_t>> write(std::shared_ptr<script> to,
                                           std::vector<const_buffer> from) {
        while (to->room == 0 && !to->error) {
            to->changed.reset();
            const auto waited = co_await to->changed.wait();
            if (!waited) co_return fail(waited);
        }
        if (to->error) co_return fail(to->error);
        std::size_t left = std::min(to->piece, to->room);
        std::size_t count = 0;
        for (const const_buffer& each : from) {
            const std::size_t size = std::min(left, each.size());
            to->written.append(reinterpret_cast<const char*>(each.data()), size);
            left -= size;
            count += size;
        }
        to->room -= count;
        co_return count;
    }
    static task<result<>> end(std::shared_ptr<script> to) {
        co_await yield();
        to->half_closed = true;
        co_return result<>{};
    }

    std::shared_ptr<script> script_;
};

class session {
public:
    explicit session(input from)
        : from_{from}
        , marks_{.low = 1 + from_.up_to(40)}
        , to_{std::make_shared<script>()} {
        marks_.high = marks_.low + from_.up_to(80);
        marks_.limit = marks_.high + from_.up_to(5000);
        writer_.emplace(sink{to_}, marks_);
    }

    task<> run() {
        while (!from_.empty() && steps_++ < 200) {
            co_await step();
            check();
        }
        co_await finish();
    }

private:
    [[nodiscard]] std::size_t queued() const {
        return broken_ ? 0 : enqueued_ - to_->written.size();
    }

    void check() {
        FUZZ_CHECK(to_->written == pattern(0, to_->written.size()));
        FUZZ_CHECK(to_->written.size() <= enqueued_);
        if (!writer_) return;
        // A broken stream is noticed at the next write.
        if (to_->error && writer_->queued_bytes() == 0 && queued() != 0) broken_ = true;
        FUZZ_CHECK(writer_->queued_bytes() == queued());
        if (writer_->queued_bytes() >= marks_.high) FUZZ_CHECK(writer_->high_watermark_active());
        if (writer_->queued_bytes() < marks_.low) FUZZ_CHECK(!writer_->high_watermark_active());
    }

    void enqueue(unsigned how, std::size_t size) {
        const std::string bytes = pattern(enqueued_, size);
        const std::size_t before = writer_->queued_bytes();
        result<backpressure> outcome = fail(errc::queue_full);
        if (how == 0) {
            outcome = writer_->enqueue(bytes);
        } else if (how == 1) {
            std::string given = bytes;
            outcome = writer_->enqueue(std::move(given));
            FUZZ_CHECK(outcome || given == bytes);
        } else {
            const auto* const data = reinterpret_cast<const std::byte*>(bytes.data());
            std::vector<std::byte> given{data, data + bytes.size()};
            outcome = writer_->enqueue(std::move(given));
            FUZZ_CHECK(outcome || given.size() == bytes.size());
        }
        if (!outcome) {
            FUZZ_CHECK(writer_->queued_bytes() == before);
            if (outcome.error() == errc::queue_full) {
                FUZZ_CHECK(before + size > marks_.limit && !ending_);
            } else if (outcome.error() == std::errc::broken_pipe) {
                FUZZ_CHECK(ending_);
            } else {
                FUZZ_CHECK(to_->error && outcome.error() == to_->error);
                broken_ = true;
            }
            return;
        }
        FUZZ_CHECK(!ending_ && before + size <= marks_.limit);
        enqueued_ += size;
        const bool high = before + size >= marks_.high;
        FUZZ_CHECK(writer_->queued_bytes() == before + size);
        FUZZ_CHECK(!high || *outcome == backpressure::high_watermark);
        FUZZ_CHECK((*outcome == backpressure::high_watermark) == writer_->high_watermark_active());
    }

    task<> step() {
        switch (from_.byte() % 12) {
        case 0:
        case 1:
        case 2: {
            const unsigned how = from_.byte() % 3;
            enqueue(how, from_.up_to(how == 0 ? 200 : 3000));
            break;
        }
        case 3:
            co_await turns(from_.up_to(4));
            break;
        case 4:
            to_->room += from_.up_to(4000);
            to_->changed.set();
            break;
        case 5:
            to_->piece = 1 + from_.up_to(300);
            break;
        case 6:
            waiters_.push_back(spawn(flushed(*this, enqueued_)));
            break;
        case 7:
            waiters_.push_back(spawn(writable(*this)));
            break;
        case 8:
            if (waiters_.empty()) break;
            waiters_[from_.up_to(waiters_.size() - 1)].request_stop();
            break;
        case 9: {
            queued_writer<sink> moved = std::move(*writer_);
            writer_.emplace(std::move(moved));
            break;
        }
        case 10:
            if (from_.byte() > 20) break;
            to_->error = std::make_error_code(std::errc::connection_reset);
            to_->changed.set();
            break;
        case 11:
            if (from_.byte() > 20) break;
            ending_ = true;
            waiters_.push_back(spawn(ended(*this)));
            co_await turns(1); // starts when the task starts
            break;
        }
    }

    /// Whether a wait may end like this, whatever happened to the writer.
    static void check_error(const session& of, const result<>& outcome) {
        if (outcome) return;
        const std::error_code error = outcome.error();
        FUZZ_CHECK(error == std::errc::operation_canceled ||
                   (error == std::errc::broken_pipe && of.ending_) ||
                   (error == of.to_->error && of.to_->error));
    }
    static task<> flushed(session& of, std::size_t position) {
        if (!of.writer_) co_return;
        // The wait starts here, so it covers everything enqueued so far.
        position = std::max(position, of.enqueued_);
        const auto outcome = co_await of.writer_->flush();
        check_error(of, outcome);
        if (outcome) FUZZ_CHECK(of.to_->written.size() >= position);
    }
    static task<> writable(session& of) {
        if (!of.writer_) co_return;
        const auto outcome = co_await of.writer_->writable();
        check_error(of, outcome);
    }
    static task<> ended(session& of) {
        if (!of.writer_) co_return;
        const std::size_t position = of.enqueued_;
        const auto outcome = co_await of.writer_->graceful_shutdown();
        check_error(of, outcome);
        if (outcome) FUZZ_CHECK(of.to_->half_closed && of.to_->written.size() == position);
    }

    task<> finish() {
        const bool delivers = from_.coin();
        if (delivers) {
            to_->room += 1U << 24U;
            to_->changed.set();
            const auto outcome = co_await writer_->flush();
            check_error(*this, outcome);
            if (outcome) FUZZ_CHECK(to_->written.size() == enqueued_);
            if (!outcome) FUZZ_CHECK(to_->error);
        }
        writer_.reset();
        FUZZ_CHECK(to_->closed);
        for (join_handle<>& each : waiters_)
            co_await each;
        check();
    }

    input from_;
    watermarks marks_;
    std::shared_ptr<script> to_;
    std::optional<queued_writer<sink>> writer_;
    std::vector<join_handle<>> waiters_;
    std::size_t enqueued_ = 0;
    std::size_t steps_ = 0;
    bool ending_ = false;
    bool broken_ = false;
};

task<> play(input from) {
    session plays{from};
    co_await plays.run();
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    if (size > 2048) return 0;
    run_on(shared_loop(simplenet::backend::epoll), play({data, size}));
    return 0;
}
