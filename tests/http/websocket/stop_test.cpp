// Stops operations of a websocket at each of their suspensions.

#include "http/websocket/websocket_ends.hpp"
#include "support/coroutines.hpp"
#include "support/stop_everywhere.hpp"

#include <simplenet/coro/combinators.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0 {
namespace {

using namespace testing;
using http::detail::apply_mask;

class websocket_stop_test : public stop_everywhere_test {};

/// The peer sends this in pieces, with pings that are answered.
const std::vector<std::string>& arriving_pieces() {
    static const std::vector<std::string> pieces = [] {
        const std::string all = frame(0x01, "one, ") + ping_frame("first") + frame(0x80, "two") +
                                frame(0x82, std::string(20'000, 'b')) + ping_frame("second") +
                                text_frame("three") + close_frame(1001, "bye");
        std::vector<std::string> cut;
        for (std::size_t at = 0; at < all.size(); at += at < 40 ? 9 : 6000)
            cut.push_back(all.substr(at, at < 40 ? 9 : 6000));
        return cut;
    }();
    return pieces;
}

class reading_messages : public scenario {
    task<> subject() override { co_await read(true); }
    task<> partner() override { co_await shield(send()); }
    task<> verify() override {
        co_await read(false);
        EXPECT_EQ(ends_.ours.close_code(), 1001);
        EXPECT_EQ(got_, "one, two|" + std::string(20'000, 'b') + "|three|");
        std::string answers;
        for (;;) {
            const seen_frame next = co_await ends_.next();
            if (next == no_frame) break;
            answers += next.payload + "|";
        }
        EXPECT_EQ(answers, "first|second|\x03\xe9|");
    }
    task<> read(bool stoppable) {
        while (!ended_) {
            auto message = co_await ends_.ours.read_message();
            if (message) {
                got_ += message->data + "|";
            } else if (message.error() == errc::end_of_stream) {
                ended_ = true;
            } else {
                if (stoppable) {
                    expect_success_or_stop(message);
                } else {
                    expect_success(message);
                }
                co_return;
            }
        }
    }
    task<> send() {
        for (const std::string& piece : arriving_pieces()) {
            co_await turns(2);
            const auto sent = co_await async_write_all(ends_.theirs, piece);
            if (!expect_success(sent)) co_return;
        }
    }

    websocket_ends<tcp_stream> ends_ = tcp_websocket_ends();
    std::string got_;
    bool ended_ = false;
};
TEST_P(websocket_stop_test, read_message) {
    stop_everywhere<reading_messages>();
}

/// A message has left, or has not: there are no halves, whatever was stopped.
template <websocket_role Role>
class writing_messages : public scenario {
    task<> subject() override {
        for (; begun_ < 4; ++begun_) {
            const auto written = co_await ends_.ours.write_message(body(begun_));
            expect_success_or_stop(written);
            if (!written) co_return;
            const auto pinged = co_await ends_.ours.ping("p");
            expect_success_or_stop(pinged);
            if (!pinged) {
                ++begun_;
                co_return;
            }
        }
    }
    // Takes bytes, not frames: a stop must not make it lose the rest of one.
    task<> partner() override {
        for (;;) {
            const bool stopped = co_await this_task::stop_requested();
            if (stopped) co_return;
            if (const auto some = ends_.theirs.try_receive()) arrived_ += some->text();
            co_await turns(1);
        }
    }
    task<> verify() override {
        const auto both = co_await when_all(ends_.ours.write_message("end"), read_up_to("end"));
        expect_success(std::get<0>(both));
        std::string expected;
        for (int count = 0; count < begun_; ++count)
            expected += body(count);
        EXPECT_EQ(messages(), expected + "end");
    }
    task<> read_up_to(std::string_view last) {
        while (!messages().ends_with(last)) {
            std::string some(100, '\0');
            const auto count = co_await ends_.theirs.read_some(some);
            if (!expect_success(count)) co_return;
            arrived_.append(some, 0, *count);
        }
    }
    /// The text messages that have arrived as a whole, one after the other.
    [[nodiscard]] std::string messages() const {
        std::string found;
        frame_parser parser{Role == websocket_role::client};
        const_buffer left{arrived_};
        while (parser.parse(left) == frame_parser::progress::complete) {
            const auto size = static_cast<std::size_t>(parser.head().size);
            if (left.size() < size) break;
            std::string payload(size, '\0');
            const websocket_mask mask = parser.head().mask.value_or(websocket_mask{});
            apply_mask(mask, 0, left.first(size), reinterpret_cast<std::byte*>(payload.data()));
            if (parser.head().opcode == websocket_opcode::text) found += payload;
            left = left.subspan(size);
        }
        return found;
    }
    static std::string body(int count) { return std::string(300, static_cast<char>('0' + count)); }

    websocket_ends<duplex_stream> ends_ = memory_ends({}, Role, 64);
    std::string arrived_;
    int begun_ = 0;
};
TEST_P(websocket_stop_test, write_message_of_a_server) {
    stop_everywhere<writing_messages<websocket_role::server>>();
}
TEST_P(websocket_stop_test, write_message_of_a_client) {
    stop_everywhere<writing_messages<websocket_role::client>>();
}

/// A stopped close closes at once; nothing may be left behind.
class closing_connections : public scenario {
    task<> subject() override {
        const auto closed = co_await ends_.ours.close(1000, "bye");
        expect_success_or_stop(closed);
    }
    task<> partner() override {
        const auto asked = co_await ends_.next();
        if (asked == no_frame) co_return;
        static_cast<void>(co_await async_write_all(ends_.theirs, answer_));
        ends_.theirs.close();
    }
    task<> verify() override {
        EXPECT_EQ((co_await ends_.ours.write_message("x")).error(), std::errc::broken_pipe);
    }

    websocket_ends<tcp_stream> ends_ = tcp_websocket_ends();
    std::string answer_ = text_frame("dropped") + close_frame(1000);
};
TEST_P(websocket_stop_test, close) {
    stop_everywhere<closing_connections>();
}

INSTANTIATE_TEST_SUITE_P(backends, websocket_stop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
