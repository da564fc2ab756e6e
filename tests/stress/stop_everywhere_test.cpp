#include "support/stop_everywhere.hpp"

#include "support/coroutines.hpp"
#include "support/raw_peer.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::connected_pair;
using testing::noise;
using testing::scenario;
using testing::small_buffers;
using testing::stop_everywhere_test;
using testing::turns;

/// Bytes that a stopped reader has not taken are still available, in order.
task<> expect_the_rest(tcp_stream& stream, std::string have, const std::string& sent) {
    std::string scratch(4096, '\0');
    while (have.size() < sent.size()) {
        const auto count = co_await stream.read_some(scratch);
        EXPECT_TRUE(count) << "bytes were lost";
        if (!count) co_return;
        have.append(scratch, 0, *count);
    }
    EXPECT_EQ(have, sent);
}

/// Sends `text` in pieces, with turns in between.
task<transfer_result> send_in_pieces(tcp_stream& stream, const std::string& text,
                                     std::size_t piece) {
    for (std::size_t at = 0; at < text.size(); at += piece) {
        co_await turns(2);
        const auto sent = co_await async_write_all(
            stream, const_buffer{text.data() + at, std::min(piece, text.size() - at)});
        if (!sent) co_return sent;
    }
    co_return text.size();
}

class reading : public scenario {
public:
    task<> partner() override {
        expect_success(co_await shield(send_in_pieces(ends_.theirs, sent_, 700)));
    }
    task<> verify() override { co_await expect_the_rest(ends_.ours, got_, sent_); }

protected:
    testing::stream_pair ends_ = connected_pair();
    std::string sent_ = noise(3000);
    std::string got_;
};

class read_some_until_done : public reading {
    task<> subject() override {
        std::string scratch(500, '\0');
        while (got_.size() < sent_.size()) {
            const auto count = co_await ends_.ours.read_some(scratch);
            expect_success_or_stop(count);
            if (!count) co_return;
            got_.append(scratch, 0, *count);
        }
    }
};
TEST_P(stop_everywhere_test, read_some) {
    stop_everywhere<read_some_until_done>();
}

class receive_until_done : public reading {
    task<> subject() override {
        while (got_.size() < sent_.size()) {
            const auto bytes = co_await ends_.ours.receive();
            expect_success_or_stop(bytes);
            if (!bytes) co_return;
            got_.append(bytes->text());
        }
    }
};
TEST_P(stop_everywhere_test, receive) {
    stop_everywhere<receive_until_done>();
}

class read_exactly : public reading {
    task<> subject() override {
        got_.resize(sent_.size());
        const auto count = co_await async_read_exact(ends_.ours, got_);
        expect_success_or_stop(count);
        if (!count) got_.resize(count.error().transferred);
    }
};
TEST_P(stop_everywhere_test, read_exact) {
    stop_everywhere<read_exactly>();
}

class read_with_timeout : public reading {
    task<> subject() override {
        std::string scratch(500, '\0');
        while (got_.size() < sent_.size()) {
            const auto count = co_await with_timeout(ends_.ours.read_some(scratch), 1h);
            expect_success_or_stop(count);
            if (!count) co_return;
            got_.append(scratch, 0, *count);
        }
    }
};
TEST_P(stop_everywhere_test, read_some_with_timeout) {
    stop_everywhere<read_with_timeout>();
}

class reading_task_with_deadline : public reading {
    task<result<std::size_t>> fill() {
        std::size_t have = 0;
        got_.resize(sent_.size());
        while (have < got_.size()) {
            const auto count = co_await ends_.ours.read_some(
                mutable_buffer{got_.data() + have, std::min<std::size_t>(got_.size() - have, 300)});
            if (!count) {
                got_.resize(have);
                co_return fail(count);
            }
            have += *count;
        }
        co_return have;
    }
    task<> subject() override {
        const auto all = co_await with_deadline(fill(), std::chrono::steady_clock::now() +
                                                            std::chrono::hours{1});
        expect_success_or_stop(all);
    }
};
TEST_P(stop_everywhere_test, task_with_deadline) {
    stop_everywhere<reading_task_with_deadline>();
}

class reading_with_stop_token : public reading {
    std::stop_source source_;
    task<> subject() override {
        got_.resize(sent_.size());
        const auto count =
            co_await with_stop(source_.get_token(), async_read_exact(ends_.ours, got_));
        expect_success_or_stop(count);
        if (!count) got_.resize(count.error().transferred);
    }
};
TEST_P(stop_everywhere_test, with_stop) {
    stop_everywhere<reading_with_stop_token>();
}

class shielded_reading : public reading {
    task<> subject() override {
        got_.resize(sent_.size());
        const auto count = co_await shield(async_read_exact(ends_.ours, got_));
        expect_success(count); // a stop must not pass the shield
        if (!count) co_return;
        const bool before = stopped();
        const auto after = co_await async_sleep(0s);
        if (before) {
            EXPECT_EQ(after, std::unexpected(std::make_error_code(std::errc::operation_canceled)));
        }
    }
};

TEST_P(stop_everywhere_test, shield) {
    stop_everywhere<shielded_reading>();
}

class writing : public scenario {
public:
    task<> partner() override {
        std::string scratch(3000, '\0');
        for (;;) {
            co_await turns(2);
            const auto count = co_await ends_.theirs.read_some(scratch);
            if (!count) co_return;
            got_.append(scratch, 0, *count);
        }
    }
    task<> verify() override {
        EXPECT_TRUE(ends_.ours.shutdown_write());
        std::string scratch(4096, '\0');
        while (const auto count = co_await ends_.theirs.read_some(scratch))
            got_.append(scratch, 0, *count);
        EXPECT_EQ(got_.size(), written_) << "the count of moved bytes is wrong";
        EXPECT_EQ(got_, sent_.substr(0, written_));
    }

protected:
    testing::stream_pair ends_ = connected_pair(small_buffers);
    std::string sent_ = noise(200'000);
    std::string got_;
    std::size_t written_ = 0;
};

class write_everything : public writing {
    task<> subject() override {
        const auto count = co_await async_write_all(ends_.ours, sent_);
        expect_success_or_stop(count);
        written_ = count ? *count : count.error().transferred;
    }
};
TEST_P(stop_everywhere_test, write_all) {
    stop_everywhere<write_everything>();
}

class write_vectors : public writing {
    task<> subject() override {
        std::vector<const_buffer> parts;
        for (std::size_t at = 0; at < sent_.size(); at += 7001) {
            parts.emplace_back(sent_.data() + at, std::min<std::size_t>(7001, sent_.size() - at));
        }
        const auto count =
            co_await async_write_all(ends_.ours, std::span<const const_buffer>{parts});
        expect_success_or_stop(count);
        written_ = count ? *count : count.error().transferred;
    }
};
TEST_P(stop_everywhere_test, write_all_of_several_buffers) {
    stop_everywhere<write_vectors>();
}

class write_some_again_and_again : public writing {
    task<> subject() override {
        while (written_ < sent_.size()) {
            const auto count = co_await ends_.ours.write_some(
                const_buffer{sent_.data() + written_, sent_.size() - written_});
            expect_success_or_stop(count);
            if (!count) co_return;
            written_ += *count;
        }
    }
};
TEST_P(stop_everywhere_test, write_some) {
    stop_everywhere<write_some_again_and_again>();
}

class accepting : public scenario {
    task<> subject() override {
        for (int left = 5; left > 0; --left) {
            auto client = co_await listener_.accept();
            expect_success_or_stop(client);
            if (!client) co_return;
            ++served_;
            expect_success(co_await shield(async_write_all(*client, "hello")));
        }
    }
    task<> partner() override { co_await shield(connect_five()); }
    task<> connect_five() {
        for (int left = 5; left > 0; --left) {
            co_await turns(3);
            auto made = co_await async_connect(at_);
            if (expect_success(made)) clients_.push_back(*std::move(made));
        }
    }
    // Clients that were not served yet are served now: no connection was lost.
    task<> verify() override {
        while (served_ < 5) {
            auto client = co_await listener_.accept();
            EXPECT_TRUE(client);
            if (!client) co_return;
            ++served_;
            EXPECT_TRUE(co_await async_write_all(*client, "hello"));
        }
        for (tcp_stream& each : clients_) {
            std::string text(5, '\0');
            EXPECT_TRUE(co_await async_read_exact(each, text));
        }
    }

    tcp_listener listener_ = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    endpoint at_ = or_throw(listener_.local_endpoint());
    std::vector<tcp_stream> clients_;
    int served_ = 0;
};
TEST_P(stop_everywhere_test, accept) {
    stop_everywhere<accepting>();
}

class connecting_to_one : public scenario {
    task<> subject() override {
        for (int left = 3; left > 0; --left) {
            auto made = co_await async_connect(at_);
            expect_success_or_stop(made);
            if (!made) co_return;
            auto greeting = co_await async_write_all(*made, "hello");
            expect_success_or_stop(greeting);
        }
    }
    task<> partner() override {
        while (auto client = co_await listener_.accept())
            co_await turns(1);
    }

    tcp_listener listener_ = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    endpoint at_ = or_throw(listener_.local_endpoint());
};
TEST_P(stop_everywhere_test, connect) {
    stop_everywhere<connecting_to_one>();
}

class local_echo : public scenario {
    task<> subject() override {
        auto made = co_await async_connect(at_);
        expect_success_or_stop(made);
        if (!made) co_return;
        auto sent = co_await async_write_all(*made, "hello");
        expect_success_or_stop(sent);
        std::string text(5, '\0');
        auto got = co_await async_read_exact(*made, text);
        expect_success_or_stop(got);
    }
    task<> partner() override {
        while (auto client = co_await listener_.accept()) {
            std::string text(5, '\0');
            if (co_await async_read_exact(*client, text)) {
                co_await async_write_all(*client, text);
            }
        }
    }

    testing::temporary_directory folder_;
    local_endpoint at_ = or_throw(local_endpoint::parse(folder_ / "socket"));
    local_listener listener_ = or_throw(local_listener::bind(at_));
};
TEST_P(stop_everywhere_test, local_stream) {
    stop_everywhere<local_echo>();
}

class closing_while_reading : public scenario {
    task<> read_on() {
        std::string scratch(100, '\0');
        while (co_await ends_.ours.read_some(scratch)) {
        }
    }
    task<> subject() override {
        auto reader = spawn(read_on());
        co_await yield();
        ends_.ours.close();
        co_await ends_.ours.closed();
        co_await shield(std::move(reader));
    }
    task<> verify() override {
        std::string scratch(100, '\0');
        const auto end = co_await ends_.theirs.read_some(scratch);
        EXPECT_EQ(end, std::unexpected(make_error_code(errc::end_of_stream)));
    }
    testing::stream_pair ends_ = connected_pair();
};

TEST_P(stop_everywhere_test, close) {
    stop_everywhere<closing_while_reading>();
}

class sleeping : public scenario {
    task<> subject() override {
        expect_success_or_stop(co_await async_sleep(1ms));
        expect_success_or_stop(co_await async_sleep(0ms));
        expect_success_or_stop(co_await async_sleep(-1h));
        interval ticks{1ms};
        for (int left = 3; left > 0; --left)
            expect_success_or_stop(co_await ticks.next());
        const auto until = std::chrono::steady_clock::now() + 2ms;
        const auto slept = co_await async_sleep_until(until);
        expect_success_or_stop(slept);
        if (slept) {
            EXPECT_GE(std::chrono::steady_clock::now(), until);
        }
    }
};
TEST_P(stop_everywhere_test, timers) {
    stop_everywhere<sleeping>();
}

/// Takes some turns; returns whether it was stopped.
task<result<int>> tick(int value, int turns_to_take) {
    while (turns_to_take-- > 0) {
        if (auto slept = co_await async_sleep(0s); !slept) co_return fail(slept);
    }
    co_return value;
}

class waiting_for_all : public scenario {
    task<> subject() override {
        const auto [first, second, third] = co_await when_all(tick(1, 1), tick(2, 2), tick(3, 3));
        expect_success_or_stop(first);
        expect_success_or_stop(second);
        expect_success_or_stop(third);
    }
};
TEST_P(stop_everywhere_test, when_all) {
    stop_everywhere<waiting_for_all>();
}

class waiting_for_any : public scenario {
    task<> subject() override {
        const auto ended = co_await when_any(tick(1, 3), tick(2, 5));
        EXPECT_EQ(ended.index == 0, std::get<0>(ended.values).has_value() && ended.index == 0);
        if (!stopped()) {
            EXPECT_EQ(ended.index, 0U);
        }
    }
};
TEST_P(stop_everywhere_test, when_any) {
    stop_everywhere<waiting_for_any>();
}

class gathering : public scenario {
    task<> subject() override {
        const auto all = co_await gather(tick(1, 2), tick(2, 1), tick(3, 3));
        expect_success_or_stop(all);
        if (all) {
            EXPECT_EQ(*all, (std::tuple{1, 2, 3}));
        }
    }
};
TEST_P(stop_everywhere_test, gather) {
    stop_everywhere<gathering>();
}

class group_with_limit : public scenario {
    task<result<>> child(int number) {
        ++running_;
        EXPECT_LE(running_, 2);
        const auto value = co_await tick(number, 2);
        --running_;
        if (!value) co_return fail(value);
        ++done_;
        co_return {};
    }
    task<> subject() override {
        auto body = [this](task_group& group) -> task<> {
            for (int number = 0; number < 5; ++number)
                group.spawn(child(number));
            co_return;
        };
        const group_options options{.limit = 2};
        const auto joined = co_await with_group(options, body);
        expect_success_or_stop(joined);
        EXPECT_EQ(running_, 0) << "a child was not joined";
        if (joined && !stopped()) {
            EXPECT_EQ(done_, 5);
        }
    }
    int running_ = 0;
    int done_ = 0;
};
TEST_P(stop_everywhere_test, with_group) {
    stop_everywhere<group_with_limit>();
}

class own_group : public scenario {
    task<> subject() override {
        task_group group;
        for (int turns = 1; turns <= 3; ++turns) {
            group.spawn([this, turns]() -> task<result<>> {
                const auto value = co_await tick(0, turns);
                ++ended_;
                if (!value) co_return fail(value);
                co_return {};
            });
        }
        expect_success_or_stop(co_await group.join());
        EXPECT_EQ(ended_, 3);
    }
    int ended_ = 0;
};
TEST_P(stop_everywhere_test, task_group) {
    stop_everywhere<own_group>();
}

class joining : public scenario {
    task<> subject() override {
        auto child = spawn(tick(7, 3));
        auto value = co_await child;
        expect_success_or_stop(value);
        if (value) {
            EXPECT_EQ(*value, 7);
        }
    }
};
TEST_P(stop_everywhere_test, join_handle) {
    stop_everywhere<joining>();
}

class echo_over_a_group : public scenario {
    task<> serve(tcp_stream client) {
        while (auto bytes = co_await client.receive()) {
            if (!co_await async_write_all(client, *bytes)) co_return;
        }
    }
    task<> subject() override {
        auto body = [this](task_group& clients) -> task<result<>> {
            for (;;) {
                auto client = co_await listener_.accept();
                if (!client) co_return fail(client);
                clients.spawn(serve(*std::move(client)));
                if (++served_ == 2) co_return {};
            }
        };
        expect_success_or_stop(co_await with_group(body));
    }
    task<> talk() {
        auto server = co_await async_connect(at_);
        if (!expect_success(server)) co_return;
        for (int left = 3; left > 0; --left) {
            std::string text(5, '\0');
            if (!co_await async_write_all(*server, "hello")) co_return;
            if (!co_await async_read_exact(*server, text)) co_return;
            EXPECT_EQ(text, "hello");
        }
    }
    task<> partner() override { co_await when_all(talk(), talk()); }

    tcp_listener listener_ = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    endpoint at_ = or_throw(listener_.local_endpoint());
    int served_ = 0;
};
TEST_P(stop_everywhere_test, echo_server) {
    stop_everywhere<echo_over_a_group>();
}

INSTANTIATE_TEST_SUITE_P(all, stop_everywhere_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
