#include <simplenet/io/loop_event.hpp>

#include "io/event_hook.hpp"
#include "support/backend_test.hpp"
#include "support/background_loop.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/insight/stall_report.hpp>
#include <simplenet/net/tcp_listener.hpp>

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <netinet/in.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

static_assert(std::is_trivially_destructible_v<loop_options>);

struct noted_event {
    loop_event_kind kind;
    std::string text;
    std::error_code error;
    std::chrono::nanoseconds duration;
    int descriptor;
    bool terminated;
    std::uint64_t stalled_task;
};

class log_of_events {
public:
    void write_to(loop_options& options) {
        options.on_event = [](const loop_event& event, void* log) {
            static_cast<log_of_events*>(log)->note(event);
        };
        options.event_context = this;
    }
    [[nodiscard]] std::vector<noted_event> events() const {
        const std::lock_guard lock{guard_};
        return events_;
    }

private:
    void note(const loop_event& event) {
        const std::lock_guard lock{guard_};
        events_.push_back({event.kind, std::string{event.text}, event.error, event.duration,
                           event.descriptor, event.text.data()[event.text.size()] == '\0',
                           event.stall != nullptr ? event.stall->task : 0});
    }

    mutable std::mutex guard_;
    std::vector<noted_event> events_;
};

class loop_event_test : public backend_test {
protected:
    void listen(log_of_events& log, loop_options options = {}) {
        log.write_to(options);
        remake_loop(options);
    }
};

TEST_P(loop_event_test, a_pause_of_accepting_is_told) {
    log_of_events log;
    listen(log);
    int listening = -1;
    run([&]() -> task<> {
        auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
        listening = listener.native_handle();
        const unique_fd client{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.sin_port = htons(or_throw(listener.local_endpoint()).port());
        descriptor_limit none;
        checked(::connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to));
        auto accepting = spawn([&]() -> task<bool> {
            const auto accepted = co_await listener.accept();
            co_return accepted.has_value();
        });
        co_await until([&] { return !log.events().empty(); });
        none.lift();
        EXPECT_TRUE(co_await accepting);
    });
    ASSERT_FALSE(log.events().empty());
    const noted_event first = log.events().front();
    EXPECT_EQ(first.kind, loop_event_kind::accept_paused);
    EXPECT_EQ(first.error, std::errc::too_many_files_open);
    EXPECT_EQ(first.duration, 10ms);
    EXPECT_EQ(first.descriptor, listening);
    EXPECT_EQ(first.text, "accepting on fd " + std::to_string(listening) +
                              " pauses for 10 ms: Too many open files");
    EXPECT_TRUE(first.terminated);
    EXPECT_EQ(loop().metrics().accept_pauses, log.events().size());
}

TEST_P(loop_event_test, a_stall_is_told_instead_of_printed) {
    log_of_events log;
    loop_options options;
    options.stall_threshold = 20ms;
    listen(log, options);
    ::testing::internal::CaptureStderr();
    run([&]() -> task<> {
        this_task::set_name("blocks");
        while (log.events().empty())
            std::this_thread::sleep_for(1ms);
        co_await yield();
    });
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
    ASSERT_EQ(log.events().size(), 1U);
    const noted_event stall = log.events().front();
    EXPECT_EQ(stall.kind, loop_event_kind::stalled);
    EXPECT_GE(stall.duration, 20ms);
    EXPECT_EQ(stall.stalled_task, 1U);
    EXPECT_THAT(stall.text, HasSubstr("a turn of an event loop has taken 0."));
    EXPECT_THAT(stall.text, HasSubstr(" s; task #1 blocks at "));
    EXPECT_TRUE(stall.terminated);
}

TEST_P(loop_event_test, a_stall_is_told_to_both_hooks) {
    static std::atomic<int> reports = 0;
    reports = 0;
    log_of_events log;
    loop_options options;
    options.stall_threshold = 20ms;
    options.on_stall = [](const stall_report&) { ++reports; };
    listen(log, options);
    run([&]() -> task<> {
        while (log.events().empty())
            std::this_thread::sleep_for(1ms);
        co_return;
    });
    EXPECT_EQ(reports, 1);
}

// With a second loop the watching thread goes on.
TEST_P(loop_event_test, no_stall_is_told_after_the_end_of_the_loop) {
    if (IsSkipped()) return;
    loop_options watched{.backend = GetParam()};
    watched.stall_threshold = 1ms;
    const background_loop other{watched};
    for (int round = 0; round < 20; ++round) {
        struct {
            std::atomic<bool> told = false;
            std::atomic<bool> telling = false;
        } state;
        loop_options options = watched;
        options.on_event = [](const loop_event&, void* context) {
            auto& of = *static_cast<decltype(state)*>(context);
            of.telling = true;
            of.told = true;
            std::this_thread::sleep_for(2ms); // the loop ends meanwhile
            of.telling = false;
        };
        options.event_context = &state;
        {
            auto short_lived = or_throw(event_loop::create(options));
            short_lived.post([&] {
                while (!state.told)
                    std::this_thread::yield();
            });
            short_lived.poll();
        }
        EXPECT_FALSE(state.telling);
    }
}

INSTANTIATE_TEST_SUITE_P(backends, loop_event_test, all_backends, backend_name);

TEST(event_hook_test, cuts_long_texts) {
    log_of_events log;
    loop_options options;
    log.write_to(options);
    const detail::event_hook hook{options};
    EXPECT_TRUE(hook);
    hook.tell({.kind = loop_event_kind::handed_over, .text = {}}, "%s %d", "short", 1);
    hook.tell({.kind = loop_event_kind::handed_over, .text = {}}, "%s",
              std::string(1000, 'x').c_str());
    EXPECT_EQ(log.events()[0].text, "short 1");
    EXPECT_EQ(log.events()[1].text, std::string(255, 'x'));
    EXPECT_TRUE(log.events()[1].terminated);
}

TEST(event_hook_test, without_a_hook_nothing_happens) {
    const detail::event_hook none;
    EXPECT_FALSE(none);
    none.tell({.kind = loop_event_kind::handed_over, .text = {}}, "nobody hears %s", "this");
}

TEST(loop_event_kind_test, has_names) {
    EXPECT_STREQ(to_string(loop_event_kind::accept_paused), "accept_paused");
    EXPECT_STREQ(to_string(loop_event_kind::stalled), "stalled");
    EXPECT_STREQ(to_string(loop_event_kind::handed_over), "handed_over");
    EXPECT_STREQ(to_string(loop_event_kind::connection_refused), "connection_refused");
}

} // namespace
} // namespace simplenet::v0::testing
