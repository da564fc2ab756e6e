#include "support/coroutines.hpp"
#include "support/fault_parts.hpp"
#include "support/raw_peer.hpp"
#include "support/stop_everywhere.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::connected_pair;
using testing::noise;
using testing::scenario;
using testing::small_buffers;
using testing::turns;

class stream_stop_test : public testing::stop_everywhere_test {};

template <class Stream>
task<result<>> send_in_pieces(Stream& stream, std::string_view text, std::size_t piece) {
    for (std::size_t at = 0; at < text.size(); at += piece) {
        co_await turns(2);
        const auto sent = co_await async_write_all(stream, text.substr(at, piece));
        if (!sent) co_return fail(sent);
    }
    co_return {};
}

/// Reads the remaining bytes, up to the end of the stream or `size` bytes in all.
template <class Stream>
task<> read_the_rest(Stream& stream, std::string& text, std::size_t size) {
    std::string scratch(1000, '\0');
    while (text.size() < size) {
        const auto count = co_await stream.read_some(scratch);
        if (!count) co_return;
        text.append(scratch, 0, *count);
    }
}

/// Lines that arrive in pieces which are not whole lines.
class lines_arrive : public scenario {
public:
    task<> partner() override {
        expect_success(co_await shield(send_in_pieces(ends_.theirs, sent_, 7)));
    }

protected:
    testing::stream_pair ends_ = connected_pair();
    std::string sent_ = "one\ntwo is longer\n\nfour\r\nand the fifth\n";
    std::string got_;
};

class reading_until : public lines_arrive {
    task<> subject() override {
        while (got_.size() < sent_.size()) {
            const auto length = co_await async_read_until(ends_.ours, pending_, "\n", 100);
            expect_success_or_stop(length);
            if (!length) co_return;
            got_.append(pending_, 0, *length);
            pending_.erase(0, *length);
        }
    }
    task<> verify() override {
        got_ += pending_;
        co_await read_the_rest(ends_.ours, got_, sent_.size());
        EXPECT_EQ(got_, sent_);
    }
    std::string pending_;
};
TEST_P(stream_stop_test, read_until) {
    stop_everywhere<reading_until>();
}

class reading_lines : public lines_arrive {
    task<> subject() override { co_await read_lines(true); }
    task<> verify() override {
        co_await read_lines(false);
        EXPECT_EQ(got_, "one|two is longer||four|and the fifth|");
    }
    task<> read_lines(bool stoppable) {
        for (; lines_ < 5; ++lines_) {
            const auto line = co_await reader_.read_line(100);
            if (stoppable) expect_success_or_stop(line);
            if (!line) co_return;
            got_.append(*line).append("|");
        }
    }
    buffered_reader<tcp_stream&> reader_{ends_.ours};
    int lines_ = 0;
};
TEST_P(stream_stop_test, read_line) {
    stop_everywhere<reading_lines>();
}

class reading_frames : public scenario {
    task<> subject() override { co_await read_frames(true); }
    task<> partner() override {
        expect_success(co_await shield(send_in_pieces(ends_.theirs, sent_, 7)));
    }
    task<> verify() override {
        co_await read_frames(false);
        EXPECT_EQ(got_, "one|two is longer||four|and the fifth|");
    }
    task<> read_frames(bool stoppable) {
        for (; frames_ < 5; ++frames_) {
            const auto body = co_await reader_.read_frame(100);
            if (stoppable) expect_success_or_stop(body);
            if (!body) co_return;
            got_.append(reinterpret_cast<const char*>(body->data()), body->size()).append("|");
        }
    }
    testing::stream_pair ends_ = connected_pair();
    std::string sent_{"\0\3one\0\xdtwo is longer\0\0\0\4four\0\xd"
                      "and the fifth",
                      43};
    std::string got_;
    frame_reader<tcp_stream&> reader_{ends_.ours, {.prefix = frame_prefix::u16}};
    int frames_ = 0;
};
TEST_P(stream_stop_test, read_frame) {
    stop_everywhere<reading_frames>();
}

class writing_frames : public scenario {
    task<> subject() override {
        for (; frames_ < 5; ++frames_) {
            const auto written = co_await writer_.write_frame(body_);
            expect_success_or_stop(written);
            if (!written) co_return;
        }
        ends_.first.close();
    }
    // What arrives is whole frames, and then perhaps the beginning of one more.
    task<> partner() override {
        for (;;) {
            const auto body = co_await reader_.read_frame(100);
            if (!body) break;
            EXPECT_EQ(body->size(), body_.size());
            ++got_;
        }
    }
    task<> verify() override {
        ends_.first.close();
        co_await partner();
        EXPECT_EQ(got_, frames_);
        EXPECT_EQ(writer_.is_cut(), !reader_.peek().empty());
    }
    std::pair<duplex_stream, duplex_stream> ends_ = duplex(5);
    std::string body_ = noise(20);
    frame_writer<duplex_stream&> writer_{ends_.first};
    frame_reader<duplex_stream&> reader_{ends_.second};
    int frames_ = 0;
    int got_ = 0;
};
TEST_P(stream_stop_test, write_frame) {
    stop_everywhere<writing_frames>();
}

class closing_lingering : public scenario {
    task<> subject() override {
        expect_success_or_stop(co_await async_close_lingering(ends_.ours));
        EXPECT_EQ(ends_.ours.native_handle(), -1);
    }
    task<> partner() override {
        static_cast<void>(co_await shield(send_in_pieces(ends_.theirs, sent_, 100)));
        ends_.theirs.close();
    }
    testing::stream_pair ends_ = connected_pair();
    std::string sent_ = noise(500);
};
TEST_P(stream_stop_test, close_lingering) {
    stop_everywhere<closing_lingering>();
}

// The server closes the first connections; a later one is good.
class staying_connected : public scenario {
    task<> subject() override {
        client_.on_event = [](const client_event&) {};
        auto session = [](tcp_stream& stream) -> task<result<>> {
            std::string word(4, '\0');
            const auto read = co_await async_read_exact(stream, word);
            if (!read) co_return fail(read);
            EXPECT_EQ(word, "good");
            co_return result<>{};
        };
        expect_success_or_stop(co_await client_.run(session));
    }
    task<> partner() override {
        for (int number = 0;; ++number) {
            auto stream = co_await listener_.accept();
            if (!stream) co_return;
            if (number >= 2) static_cast<void>(co_await async_write_all(*stream, "good"));
        }
    }
    tcp_listener listener_ = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    tcp_client client_{"127.0.0.1",
                       or_throw(listener_.local_endpoint()).port(),
                       {.backoff = {.initial = std::chrono::microseconds{50}}}};
};
TEST_P(stream_stop_test, tcp_client) {
    stop_everywhere<staying_connected>();
}

// Another user of the pool keeps the only place for a while.
class borrowing : public scenario {
    task<> subject() override {
        for (int count = 0; count < 3; ++count) {
            auto lent = co_await pool_.borrow("key");
            expect_success_or_stop(lent);
            if (!lent) co_return;
            co_await turns(2);
            if (count != 1) lent->give_back(); // once it is closed
        }
    }
    task<> partner() override {
        for (;;) {
            auto lent = co_await pool_.borrow("key");
            if (!lent) co_return;
            co_await turns(3);
            lent->give_back();
        }
    }
    task<> verify() override {
        EXPECT_EQ(pool_.size(), pool_.idle());
        EXPECT_TRUE(co_await with_timeout(pool_.borrow("key"), std::chrono::seconds{5}));
    }
    task<result<duplex_stream>> connect() {
        co_await turns(2);
        const result<> refused = co_await detail::refusal{};
        if (!refused) co_return fail(refused);
        auto [ours, theirs] = duplex();
        peers_.push_back(std::move(theirs));
        co_return std::move(ours);
    }
    std::deque<duplex_stream> peers_;
    connection_pool<duplex_stream> pool_{[this](std::string_view) { return connect(); },
                                         {.per_key = 1}};
};
TEST_P(stream_stop_test, connection_pool) {
    stop_everywhere<borrowing>();
}

class reading_blocks : public lines_arrive {
    task<> subject() override { co_await read_blocks(true); }
    task<> verify() override {
        co_await read_blocks(false);
        EXPECT_EQ(got_, sent_);
    }
    task<> read_blocks(bool stoppable) {
        while (got_.size() < sent_.size()) {
            const auto block =
                co_await reader_.read_exact(std::min<std::size_t>(10, sent_.size() - got_.size()));
            if (stoppable) expect_success_or_stop(block);
            if (!block) co_return;
            got_.append(reinterpret_cast<const char*>(block->data()), block->size());
        }
    }
    buffered_reader<tcp_stream&> reader_{ends_.ours};
};
TEST_P(stream_stop_test, buffered_read_exact) {
    stop_everywhere<reading_blocks>();
}

class memory_pair : public scenario {
protected:
    std::pair<duplex_stream, duplex_stream> ends_ = duplex(100);
    std::string sent_ = noise(1000);
    std::string got_;
};

class reading_memory : public memory_pair {
    task<> subject() override {
        std::string scratch(64, '\0');
        while (got_.size() < sent_.size()) {
            const auto count = co_await ends_.first.read_some(scratch);
            expect_success_or_stop(count);
            if (!count) co_return;
            got_.append(scratch, 0, *count);
        }
    }
    task<> partner() override { co_await async_write_all(ends_.second, sent_); }
    task<> verify() override {
        EXPECT_TRUE(ends_.second.shutdown_write());
        co_await read_the_rest(ends_.first, got_, sent_.size());
        EXPECT_EQ(got_, sent_.substr(0, got_.size()));
    }
};
TEST_P(stream_stop_test, read_from_memory) {
    stop_everywhere<reading_memory>();
}

class writing_memory : public memory_pair {
    task<> subject() override {
        const auto count = co_await async_write_all(ends_.first, sent_);
        expect_success_or_stop(count);
        written_ = count ? *count : count.error().transferred;
    }
    task<> partner() override { co_await read_the_rest(ends_.second, got_, sent_.size()); }
    task<> verify() override {
        EXPECT_TRUE(ends_.first.shutdown_write());
        co_await read_the_rest(ends_.second, got_, sent_.size());
        EXPECT_EQ(got_, sent_.substr(0, written_));
    }
    std::size_t written_ = 0;
};
TEST_P(stream_stop_test, write_to_memory) {
    stop_everywhere<writing_memory>();
}

class reading_without_a_type : public lines_arrive {
    task<> subject() override {
        std::string scratch(9, '\0');
        while (got_.size() < sent_.size()) {
            const auto count = co_await stream_.read_some(scratch);
            expect_success_or_stop(count);
            if (!count) co_return;
            got_.append(scratch, 0, *count);
        }
    }
    task<> verify() override {
        co_await read_the_rest(stream_, got_, sent_.size());
        EXPECT_EQ(got_, sent_);
    }
    any_stream stream_{std::move(ends_.ours)};
};
TEST_P(stream_stop_test, any_stream) {
    stop_everywhere<reading_without_a_type>();
}

class talking_in_halves : public lines_arrive {
    task<> subject() override {
        auto& [reading, writing] = halves_;
        std::string scratch(9, '\0');
        while (got_.size() < sent_.size()) {
            const auto count = co_await reading.read_some(scratch);
            expect_success_or_stop(count);
            if (!count) co_return;
            got_.append(scratch, 0, *count);
            expect_success_or_stop(
                co_await async_write_all(writing, const_buffer{scratch.data(), *count}));
        }
    }
    task<> verify() override {
        co_await read_the_rest(halves_.first, got_, sent_.size());
        EXPECT_EQ(got_, sent_);
    }
    std::pair<read_half<tcp_stream>, write_half<tcp_stream>> halves_ = split(std::move(ends_.ours));
};
TEST_P(stream_stop_test, split) {
    stop_everywhere<talking_in_halves>();
}

class copying : public scenario {
    task<> subject() override {
        const auto copied = co_await async_copy(from_.theirs, to_.ours);
        expect_success_or_stop(copied);
        copied_ = copied ? *copied : copied.error().transferred;
    }
    task<> partner() override { co_await when_all(feed(), drain()); }
    task<> feed() {
        auto sent = co_await send_in_pieces(from_.ours, sent_, 20'000);
        if (sent) {
            EXPECT_TRUE(from_.ours.shutdown_write());
        }
    }
    task<> drain() { co_await read_the_rest(to_.theirs, got_, sent_.size()); }
    task<> verify() override {
        EXPECT_TRUE(to_.ours.shutdown_write());
        co_await read_the_rest(to_.theirs, got_, sent_.size());
        EXPECT_EQ(got_.size(), copied_) << "the count is wrong";
        EXPECT_EQ(got_, sent_.substr(0, got_.size()));
    }
    testing::stream_pair from_ = connected_pair(small_buffers);
    testing::stream_pair to_ = connected_pair(small_buffers);
    std::string sent_ = noise(100'000);
    std::string got_;
    std::size_t copied_ = 0;
};
TEST_P(stream_stop_test, copy) {
    stop_everywhere<copying>();
}

class copying_both_ways : public scenario {
    task<> subject() override {
        const auto copied = co_await async_copy_bidirectional(left_.theirs, right_.ours);
        expect_success_or_stop(copied);
        counts_ = copied ? *copied : copied.error().counts;
    }
    task<> partner() override {
        co_await when_all(talk(left_.ours, to_left_), talk(right_.theirs, to_right_));
    }
    task<> talk(tcp_stream& with, std::string& got) {
        auto writing = spawn([this, &with]() -> task<> {
            const auto sent = co_await send_in_pieces(with, sent_, 10'000);
            if (sent) {
                EXPECT_TRUE(with.shutdown_write());
            }
        });
        co_await read_the_rest(with, got, sent_.size());
        co_await writing;
    }
    task<> verify() override {
        // Fails if both ends had already ended.
        (void)left_.theirs.shutdown_write();
        (void)right_.ours.shutdown_write();
        co_await read_the_rest(left_.ours, to_left_, sent_.size());
        co_await read_the_rest(right_.theirs, to_right_, sent_.size());
        EXPECT_EQ(to_right_.size(), counts_.a_to_b);
        EXPECT_EQ(to_left_.size(), counts_.b_to_a);
        EXPECT_EQ(to_right_, sent_.substr(0, to_right_.size()));
        EXPECT_EQ(to_left_, sent_.substr(0, to_left_.size()));
    }
    testing::stream_pair left_ = connected_pair(small_buffers);
    testing::stream_pair right_ = connected_pair(small_buffers);
    std::string sent_ = noise(40'000);
    std::string to_left_;
    std::string to_right_;
    copy_counts counts_;
};
TEST_P(stream_stop_test, copy_bidirectional) {
    stop_everywhere<copying_both_ways>();
}

class sending_a_file : public scenario {
    task<> subject() override {
        const auto moved =
            co_await async_send_file(ends_.ours, ::fileno(file_.get()), 0, content_.size());
        expect_success_or_stop(moved);
        moved_ = moved ? *moved : moved.error().transferred;
    }
    task<> partner() override { co_await read_the_rest(ends_.theirs, got_, content_.size()); }
    task<> verify() override {
        EXPECT_TRUE(ends_.ours.shutdown_write());
        co_await read_the_rest(ends_.theirs, got_, content_.size());
        EXPECT_EQ(got_.size(), moved_);
        EXPECT_EQ(got_, content_.substr(0, moved_));
    }
    struct closer {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    testing::stream_pair ends_ = connected_pair(small_buffers);
    std::string content_ = noise(200'000);
    std::unique_ptr<std::FILE, closer> file_ = [this] {
        std::unique_ptr<std::FILE, closer> made{std::tmpfile()};
        std::fwrite(content_.data(), 1, content_.size(), made.get());
        std::fflush(made.get());
        return made;
    }();
    std::string got_;
    std::size_t moved_ = 0;
};
TEST_P(stream_stop_test, send_file) {
    stop_everywhere<sending_a_file>();
}

class sending_a_file_with_head_and_tail : public scenario {
    task<> subject() override {
        const send_file_options around{.head = head_, .tail = tail_};
        const auto moved =
            co_await async_send_file(ends_.ours, ::fileno(file_.get()), 0, content_.size(), around);
        expect_success_or_stop(moved);
        moved_ = moved ? *moved : moved.error().transferred;
    }
    task<> partner() override { co_await read_the_rest(ends_.theirs, got_, whole_.size()); }
    task<> verify() override {
        EXPECT_TRUE(ends_.ours.shutdown_write());
        co_await read_the_rest(ends_.theirs, got_, whole_.size());
        EXPECT_EQ(got_.size(), moved_);
        EXPECT_EQ(got_, whole_.substr(0, moved_));
    }
    testing::stream_pair ends_ = connected_pair(small_buffers);
    std::string head_ = noise(30'000, 2);
    std::string content_ = noise(60'000);
    std::string tail_ = noise(30'000, 3);
    std::string whole_ = head_ + content_ + tail_;
    testing::owned_file file_ = testing::temporary_file(content_);
    std::string got_;
    std::size_t moved_ = 0;
};
TEST_P(stream_stop_test, send_file_with_head_and_tail) {
    stop_everywhere<sending_a_file_with_head_and_tail>();
}

/// A stop ends the wait, but not the sending: in the end everything has arrived.
class queueing : public scenario {
public:
    task<> partner() override { co_await read_the_rest(theirs_, got_, std::size_t(-1)); }
    task<> verify() override {
        const auto [ended, read] = co_await when_all(writer_.graceful_shutdown(),
                                                     read_the_rest(theirs_, got_, std::size_t(-1)));
        EXPECT_TRUE(ended);
        EXPECT_EQ(got_.size(), enqueued_);
        EXPECT_EQ(got_, sent_.substr(0, enqueued_));
    }

protected:
    bool enqueue(std::size_t size) {
        size = std::min(size, sent_.size() - enqueued_);
        const auto taken = writer_.enqueue(const_buffer{sent_.data() + enqueued_, size});
        expect_success(taken);
        if (taken) enqueued_ += size;
        return taken && *taken == backpressure::high_watermark;
    }

    explicit queueing(testing::stream_pair ends = connected_pair(small_buffers))
        : theirs_{std::move(ends.theirs)}
        , writer_{std::move(ends.ours), watermarks{.low = 4096, .high = 65536, .limit = 1 << 20}} {}

    tcp_stream theirs_;
    queued_writer<tcp_stream> writer_;
    std::string sent_ = noise(300'000);
    std::string got_;
    std::size_t enqueued_ = 0;
};

class flushing : public queueing {
    task<> subject() override {
        for (int left = 3; left > 0; --left) {
            enqueue(50'000);
            const auto flushed = co_await writer_.flush();
            expect_success_or_stop(flushed);
            if (!flushed) co_return;
            EXPECT_EQ(writer_.queued_bytes(), 0U);
        }
    }
};
TEST_P(stream_stop_test, flush) {
    stop_everywhere<flushing>();
}

class waiting_until_writable : public queueing {
    task<> subject() override {
        while (enqueued_ < sent_.size()) {
            if (!enqueue(20'000)) continue;
            const auto writable = co_await writer_.writable();
            expect_success_or_stop(writable);
            if (!writable) co_return;
            EXPECT_LT(writer_.queued_bytes(), 4096U);
        }
        expect_success_or_stop(co_await writer_.flush());
    }
};
TEST_P(stream_stop_test, writable) {
    stop_everywhere<waiting_until_writable>();
}

class ending_gracefully : public queueing {
    task<> subject() override {
        enqueue(200'000);
        expect_success_or_stop(co_await writer_.graceful_shutdown());
    }
};
TEST_P(stream_stop_test, graceful_shutdown) {
    stop_everywhere<ending_gracefully>();
}

INSTANTIATE_TEST_SUITE_P(all, stream_stop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
