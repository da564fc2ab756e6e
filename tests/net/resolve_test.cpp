#include <simplenet/net/resolve.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/endpoints.hpp"
#include "support/error_of.hpp"
#include "support/scripted_resolver.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <csignal>
#include <gmock/gmock.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::scripted_resolver;
using testing::texts;
using testing::turns;
using testing::until;

constexpr auto invalid = std::errc::invalid_argument;
using enum address_family;

static_assert(std::is_trivially_destructible_v<resolve_options>); // GCC 12 and co_await

class resolve_test : public testing::backend_test {};

/// Threads of this process that are named as the resolver's are.
std::size_t resolver_threads() {
    std::size_t count = 0;
    for (const auto& each : std::filesystem::directory_iterator{"/proc/self/task"}) {
        std::string name;
        std::getline(std::ifstream{each.path() / "comm"}, name);
        count += name == "sn-resolver";
    }
    return count;
}

// --- without asking anybody ----------------------------------------------------------------------

TEST_P(resolve_test, an_address_is_its_own_answer_without_a_thread) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        EXPECT_THAT(texts(co_await async_resolve("127.0.0.1", 80)), ElementsAre("127.0.0.1:80"));
        EXPECT_THAT(texts(co_await async_resolve("2001:DB8::1", 443)),
                    ElementsAre("[2001:db8::1]:443"));
        EXPECT_THAT(texts(co_await async_resolve("192.0.2.1", "65535")),
                    ElementsAre("192.0.2.1:65535"));
        EXPECT_THAT(texts(co_await async_resolve("::", "0")), ElementsAre("[::]:0"));
    });
    EXPECT_EQ(resolver->threads(), 0U);
}

TEST_P(resolve_test, a_scope_may_be_a_number_or_the_name_of_an_interface) {
    scripted_resolver resolver;
    const std::string lo = std::to_string(::if_nametoindex("lo"));
    run([&]() -> task<> {
        EXPECT_THAT(texts(co_await async_resolve("fe80::1%7", 1)), ElementsAre("[fe80::1%7]:1"));
        EXPECT_THAT(texts(co_await async_resolve("fe80::1%lo", 1)),
                    ElementsAre("[fe80::1%" + lo + "]:1"));
        EXPECT_EQ(error_of(co_await async_resolve("fe80::1%nowhere", 1)),
                  std::errc::no_such_device);
        EXPECT_FALSE(co_await async_resolve("fe80::1%", 1));
        const std::string with_nul{"fe80::1%lo\0x", 12};
        EXPECT_EQ(error_of(co_await async_resolve(with_nul, 1)), invalid);
    });
    EXPECT_EQ(resolver->threads(), 0U);
}

TEST_P(resolve_test, an_address_of_the_other_family_is_not_found) {
    run([]() -> task<> {
        EXPECT_EQ(error_of(co_await async_resolve("127.0.0.1", 80, {.family = v6})),
                  errc::name_not_found);
        EXPECT_EQ(error_of(co_await async_resolve("::1", 80, {.family = v4})),
                  errc::name_not_found);
        EXPECT_TRUE(co_await async_resolve("::1", 80, {.family = v6}));
    });
}

TEST_P(resolve_test, what_can_be_no_host_is_refused_without_a_thread) {
    scripted_resolver resolver;
    std::vector<std::string> hosts{"", ".", std::string{"lo\0cal", 6}, "two words", "line\n",
                                   "http://host", "host:80", "[::1]", "user@host", "::1::", "\x7f",
                                   // Some programs take these for 127.0.0.1, others for names.
                                   "127.1", "0x7f000001", "017700000001", "2130706433",
                                   "127.0.0.1.", "1.2.3.256", "a.0x",
                                   // glibc takes it for no host, and answers with this machine.
                                   "*"};
    hosts.push_back(std::string(63, 'a') + '.' + std::string(63, 'b') + '.' + std::string(63, 'c') +
                    '.' + std::string(62, 'd')); // 254
    run([&]() -> task<> {
        for (const std::string& host : hosts) {
            EXPECT_EQ(error_of(co_await async_resolve(host, 80)), invalid) << host;
        }
    });
    EXPECT_EQ(resolver->threads(), 0U);
}

TEST_P(resolve_test, the_longest_name_is_asked_for) {
    scripted_resolver resolver;
    const std::string host = std::string(63, 'a') + '.' + std::string(63, 'b') + '.' +
                             std::string(63, 'c') + '.' + std::string(61, 'd');
    ASSERT_EQ(host.size(), 253U);
    for (const std::string& each : {host, host + '.'}) {
        resolver.answer(each, v4, {"192.0.2.1"});
        run([&]() -> task<> { EXPECT_TRUE(co_await async_resolve(each, 80, {.family = v4})); });
    }
}

TEST_P(resolve_test, what_can_be_no_service_is_refused_without_a_thread) {
    scripted_resolver resolver;
    const std::vector<std::string> services{"",
                                            "65536",
                                            "99999999999999999999",
                                            "080",
                                            "+80",
                                            "-1",
                                            " 80",
                                            "80 ",
                                            "a b",
                                            "*", // no service to glibc: port 0
                                            std::string{"ht\0tp", 5},
                                            std::string(256, 'x')};
    run([&]() -> task<> {
        for (const std::string& service : services) {
            EXPECT_EQ(error_of(co_await async_resolve("localhost", service)), invalid) << service;
            EXPECT_EQ(error_of(co_await async_resolve("127.0.0.1", service)), invalid) << service;
        }
    });
    EXPECT_EQ(resolver->threads(), 0U);
}

// --- the system's resolver -----------------------------------------------------------------------

TEST_P(resolve_test, localhost_is_this_machine) {
    run([]() -> task<> {
        const auto found = co_await async_resolve("localhost", 80);
        EXPECT_TRUE(found) << error_of(found).message();
        if (!found) co_return;
        EXPECT_FALSE(found->empty());
        for (const endpoint& each : *found) {
            EXPECT_TRUE(each.address().is_loopback()) << each.to_string();
            EXPECT_EQ(each.port(), 80);
        }
    });
    EXPECT_LE(resolver_threads(), 8U);
}

TEST_P(resolve_test, services_have_names) {
    if (::getservbyname("http", "tcp") == nullptr) GTEST_SKIP() << "no /etc/services here";
    run([]() -> task<> {
        EXPECT_THAT(texts(co_await async_resolve("127.0.0.1", "http")),
                    ElementsAre("127.0.0.1:80"));
        EXPECT_THAT(texts(co_await async_resolve("fe80::1%9", "http")),
                    ElementsAre("[fe80::1%9]:80"));
        // 514 is the shell's with TCP, and the log's with UDP.
        EXPECT_THAT(texts(co_await async_resolve("127.0.0.1", "syslog", {.datagram = true})),
                    ElementsAre("127.0.0.1:514"));
        const auto unknown = co_await async_resolve("127.0.0.1", "no-such-service");
        EXPECT_EQ(error_of(unknown), errc::name_not_found);
        EXPECT_EQ(error_of(unknown).category(), resolver_category());
        EXPECT_EQ(error_of(unknown).message(), ::gai_strerror(EAI_SERVICE));
    });
}

// --- answers -------------------------------------------------------------------------------------

TEST_P(resolve_test, ipv6_comes_first_and_each_family_keeps_its_order) {
    scripted_resolver resolver;
    resolver.answer("host", v4, {"192.0.2.2", "192.0.2.1"});
    resolver.answer("host", v6, {"2001:db8::2", "2001:db8::1"});
    run([]() -> task<> {
        EXPECT_THAT(
            texts(co_await async_resolve("host", 80)),
            ElementsAre("[2001:db8::2]:80", "[2001:db8::1]:80", "192.0.2.2:80", "192.0.2.1:80"));
        EXPECT_THAT(texts(co_await async_resolve("host", 80, {.family = v4})),
                    ElementsAre("192.0.2.2:80", "192.0.2.1:80"));
    });
}

TEST_P(resolve_test, a_family_without_a_route_comes_last) {
    scripted_resolver resolver;
    resolver.answer("host", v4, {"192.0.2.1"});
    resolver.answer("host", v6, {"2001:db8::1"}, false);
    resolver.answer("cut-off", v4, {"192.0.2.1"}, false);
    resolver.answer("cut-off", v6, {"2001:db8::1"}, false);
    run([]() -> task<> {
        EXPECT_THAT(texts(co_await async_resolve("host", 80)),
                    ElementsAre("192.0.2.1:80", "[2001:db8::1]:80"));
        EXPECT_THAT(texts(co_await async_resolve("cut-off", 80)),
                    ElementsAre("[2001:db8::1]:80", "192.0.2.1:80"));
    });
}

TEST_P(resolve_test, one_family_is_enough) {
    scripted_resolver resolver;
    resolver.answer("four", v4, {"192.0.2.1"});
    resolver.fail("four", v6, EAI_AGAIN);
    resolver.answer("six", v4, {});
    resolver.answer("six", v6, {"2001:db8::1"});
    run([]() -> task<> {
        EXPECT_THAT(texts(co_await async_resolve("four", 80)), ElementsAre("192.0.2.1:80"));
        EXPECT_THAT(texts(co_await async_resolve("six", 80)), ElementsAre("[2001:db8::1]:80"));
    });
}

struct failure {
    int v6;
    int v4;
    std::error_code expected;
};

TEST_P(resolve_test, errors_keep_the_message_of_the_resolver) {
    const auto& resolvers = resolver_category();
    const failure failures[]{
        {EAI_NONAME, EAI_NONAME, {EAI_NONAME, resolvers}},
        {EAI_NONAME, EAI_NODATA, {EAI_NODATA, resolvers}},
        {EAI_AGAIN, EAI_NODATA, {EAI_AGAIN, resolvers}}, // there may be an IPv6 address
        {EAI_NODATA, EAI_AGAIN, {EAI_AGAIN, resolvers}},
        {EAI_FAIL, EAI_AGAIN, {EAI_AGAIN, resolvers}},
        {EAI_MEMORY, EAI_MEMORY, {ENOMEM, std::system_category()}},
        {EAI_SYSTEM, EAI_SYSTEM, {EMFILE, std::system_category()}},
    };
    for (const failure& each : failures) {
        scripted_resolver resolver;
        resolver.fail("host", v6, each.v6, EMFILE);
        resolver.fail("host", v4, each.v4, EMFILE);
        run([&]() -> task<> {
            const std::error_code error = error_of(co_await async_resolve("host", 80));
            EXPECT_EQ(error, each.expected);
            if (error.category() != resolver_category()) co_return;
            EXPECT_EQ(error.message(), ::gai_strerror(error.value()));
            const bool final = error.value() == EAI_NONAME || error.value() == EAI_NODATA;
            EXPECT_EQ(error == errc::name_not_found, final);
            EXPECT_EQ(error == errc::name_lookup_failed, !final);
        });
    }
}

TEST(resolver_error_test, a_system_error_without_an_errno_is_an_error_all_the_same) {
    const auto error = detail::sys::resolver_error(EAI_SYSTEM, 0);
    EXPECT_TRUE(error);
    EXPECT_EQ(error, errc::name_lookup_failed);
    EXPECT_STREQ(error.category().name(), "resolver");
}

// --- sharing -------------------------------------------------------------------------------------

TEST_P(resolve_test, equal_lookups_are_one_whatever_their_ports) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        task_group group;
        std::vector<std::string> seen;
        for (std::uint16_t port = 1; port <= 5; ++port) {
            group.spawn([&seen, port]() -> task<> {
                for (const auto& each : texts(co_await async_resolve("host", port, {.family = v4})))
                    seen.push_back(each);
            });
        }
        co_await until([&] { return resolver.begun() == 1; });
        co_await turns(3);
        resolver.answer("host", v4, {"192.0.2.1"});
        EXPECT_TRUE(co_await group.join());
        EXPECT_THAT(seen,
                    ::testing::UnorderedElementsAre("192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3",
                                                    "192.0.2.1:4", "192.0.2.1:5"));
        EXPECT_EQ(resolver.begun(), 1U);

        // Not cached: the next one asks again.
        EXPECT_TRUE(co_await async_resolve("host", 80, {.family = v4}));
        EXPECT_EQ(resolver.begun(), 2U);
    });
    EXPECT_EQ(resolver->questions(), 0U);
}

TEST_P(resolve_test, loops_of_several_threads_share_a_lookup) {
    scripted_resolver resolver;
    std::atomic<int> found = 0;
    std::vector<std::thread> threads;
    for (int each = 0; each < 3; ++each) {
        threads.emplace_back([&] {
            auto own = or_throw(event_loop::create({.backend = GetParam()}));
            own.spawn([&]() -> task<> {
                const auto answer = co_await async_resolve("host", 80, {.family = v6});
                found += answer && *answer == std::vector{or_throw(endpoint::parse("[::1]:80"))};
            });
            own.run();
        });
    }
    run([&]() -> task<> {
        co_await until([&] { return resolver.begun() == 1; });
        resolver.answer("host", v6, {"::1"});
        co_return;
    });
    for (std::thread& each : threads)
        each.join();
    EXPECT_EQ(found, 3);
}

// --- stops, deadlines, and lookups nobody waits for ----------------------------------------------

TEST_P(resolve_test, a_stopped_waiter_detaches_at_once) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        auto waiting = spawn(
            []() -> task<> { EXPECT_EQ(error_of(co_await async_resolve("host", 80)), canceled); });
        co_await until([&] { return resolver.begun() == 2; });
        waiting.request_stop();
        co_await waiting; // nobody has answered
        EXPECT_EQ(resolver->questions(), 2U);
    });
}

TEST_P(resolve_test, a_limit_in_time_ends_a_lookup_that_is_never_answered) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        const auto start = std::chrono::steady_clock::now();
        const auto found = co_await with_timeout(async_resolve("host", 80), 20ms);
        EXPECT_EQ(error_of(found), errc::deadline_exceeded);
        EXPECT_GE(std::chrono::steady_clock::now() - start, 20ms);

        std::stop_source source;
        source.request_stop();
        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), async_resolve("host", 80))),
                  canceled);
    });
}

// A clock that jumps when nothing is ready waits for resolver threads as it does for sockets.
TEST_P(resolve_test, a_clock_that_jumps_does_not_jump_over_a_lookup) {
    scripted_resolver resolver;
    testing::manual_clock clock;
    remake_loop({.clock = &clock});
    resolver.answer("host", v4, {"192.0.2.1"});
    resolver.answer("host", v6, {});
    run([&]() -> task<> {
        EXPECT_TRUE(co_await with_timeout(async_resolve("host", 80), 1h));
        EXPECT_LT(clock.elapsed(), 1h);
        EXPECT_EQ(loop().metrics().live_operations, 0U);
    });
}

TEST_P(resolve_test, what_one_family_has_said_is_not_lost_to_a_stop) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        auto waiting = spawn([]() -> task<> {
            EXPECT_THAT(texts(co_await async_resolve("host", 80)), ElementsAre("192.0.2.1:80"));
        });
        co_await until([&] { return resolver.begun() == 2; });
        resolver.answer("host", v4, {"192.0.2.1"});
        co_await until([&] { return resolver->questions() == 1; });
        waiting.request_stop();
        co_await waiting;
    });
}

TEST_P(resolve_test, a_stopped_task_asks_nobody) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        auto refused = spawn([]() -> task<> {
            co_await yield();
            EXPECT_EQ(error_of(co_await async_resolve("host", 80)), canceled);
        });
        refused.request_stop();
        co_await refused;
    });
    EXPECT_EQ(resolver->questions(), 0U);
    EXPECT_EQ(resolver->threads(), 0U);
}

// An address was an answer even then: a loop that resolves would have gone on for ever.
TEST_P(resolve_test, a_stopped_task_is_refused_an_address_too) {
    run([&]() -> task<> {
        auto refused = spawn([]() -> task<> {
            co_await yield();
            EXPECT_EQ(error_of(co_await async_resolve("127.0.0.1", 80)), canceled);
            EXPECT_EQ(error_of(co_await async_resolve("::1", "80")), canceled);
            EXPECT_TRUE(co_await shield(async_resolve("127.0.0.1", 80)));
        });
        refused.request_stop();
        co_await refused;
    });
}

TEST_P(resolve_test, one_waiter_that_goes_leaves_the_others_waiting) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        const auto look_up = []() -> task<result<std::vector<endpoint>>> {
            co_return co_await async_resolve("host", 80, {.family = v4});
        };
        auto first = spawn(look_up);
        auto second = spawn(look_up);
        auto third = spawn(look_up);
        co_await until([&] { return resolver.begun() == 1; });
        second.request_stop();
        EXPECT_EQ(error_of(co_await second), canceled);
        resolver.answer("host", v4, {"192.0.2.1"});
        EXPECT_TRUE(co_await first);
        EXPECT_TRUE(co_await third);
    });
}

TEST_P(resolve_test, an_abandoned_lookup_serves_whoever_asks_next) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        EXPECT_FALSE(co_await with_timeout(async_resolve("host", 80, {.family = v4}), 5ms));
        auto next = spawn([]() -> task<> {
            EXPECT_THAT(texts(co_await async_resolve("host", 81, {.family = v4})),
                        ElementsAre("192.0.2.1:81"));
        });
        co_await until([&] { return resolver.begun() == 1; });
        co_await turns(3);
        resolver.answer("host", v4, {"192.0.2.1"});
        co_await next;
        EXPECT_EQ(resolver.begun(), 1U);
    });
}

TEST_P(resolve_test, threads_are_few_and_what_waits_for_one_leaves_with_its_waiter) {
    scripted_resolver resolver{{.most_threads = 3}};
    run([&]() -> task<> {
        task_group group;
        for (int each = 0; each < 50; ++each) {
            group.spawn([each]() -> task<> {
                const std::string host = "host-" + std::to_string(each);
                EXPECT_EQ(error_of(co_await async_resolve(host, 80)), canceled);
            });
        }
        co_await until([&] { return resolver.begun() == 3; });
        co_await turns(5);
        EXPECT_EQ(resolver->questions(), 100U);
        EXPECT_EQ(resolver->threads(), 3U);
        group.request_stop();
        static_cast<void>(co_await group.join());
        EXPECT_EQ(resolver->questions(), 3U); // those that run
        EXPECT_EQ(resolver.begun(), 3U);

        // When they end, what came behind them is served, first come first.
        auto behind = spawn(
            []() -> task<> { EXPECT_TRUE(co_await async_resolve("behind", 80, {.family = v4})); });
        co_await turns(3);
        EXPECT_FALSE(behind.done());
        const auto stuck = resolver.questions();
        resolver.answer("behind", v4, {"192.0.2.1"});
        for (const auto& each : stuck)
            resolver.answer(each.host, each.family, {"192.0.2.9"});
        co_await behind;
        EXPECT_EQ(resolver.begun(), 4U);
    });
    EXPECT_LE(resolver->threads(), 3U);
}

TEST_P(resolve_test, many_lookups_all_end) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        int found = 0;
        task_group group;
        for (int each = 0; each < 300; ++each) {
            const std::string host = "host-" + std::to_string(each % 40);
            resolver.answer(host, v4, {"192.0.2.1"});
            resolver.answer(host, v6, {});
            group.spawn(
                [](std::string name, int& count) -> task<> {
                    count += (co_await async_resolve(name, 80)).has_value();
                },
                host, std::ref(found));
        }
        EXPECT_TRUE(co_await group.join());
        EXPECT_EQ(found, 300);
        EXPECT_LE(resolver->threads(), 8U);
    });
}

TEST_P(resolve_test, threads_end_when_there_has_been_nothing_to_do) {
    scripted_resolver resolver{{.idle = 1ms}};
    resolver.answer("host", v4, {"192.0.2.1"});
    run([&]() -> task<> {
        for (int round = 0; round < 3; ++round) {
            EXPECT_TRUE(co_await async_resolve("host", 80, {.family = v4}));
            co_await until([&] { return resolver->threads() == 0; });
        }
    });
    EXPECT_EQ(resolver.begun(), 3U);
}

TEST_P(resolve_test, a_loop_can_end_while_its_lookups_hang) {
    scripted_resolver resolver;
    std::error_code end;
    remake_loop();
    loop().spawn([&]() -> task<> { end = error_of(co_await async_resolve("host", 80)); });
    EXPECT_FALSE(loop().run_for(2ms));
    destroy_loop();
    EXPECT_EQ(end, canceled);

    // The answer comes to a loop that is gone.
    resolver.answer("host", v4, {"192.0.2.1"});
    resolver.answer("host", v6, {"::1"});
    while (resolver->questions() != 0)
        std::this_thread::yield();
}

TEST_P(resolve_test, a_loop_can_end_while_the_answer_is_on_its_way) {
    for (int round = 0; round < 50; ++round) {
        scripted_resolver resolver;
        remake_loop();
        bool ended = false;
        loop().spawn([&]() -> task<> {
            static_cast<void>(co_await async_resolve("host", 80));
            ended = true;
        });
        loop().poll();
        loop().poll();
        std::thread answers{[&] {
            resolver.answer("host", v4, {"192.0.2.1"});
            resolver.answer("host", v6, {"::1"});
        }};
        destroy_loop();
        answers.join();
        EXPECT_TRUE(ended);
    }
}

TEST_P(resolve_test, stops_and_answers_race_without_losing_a_waiter) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        for (int round = 0; round < 200; ++round) {
            const std::string host = "host-" + std::to_string(round);
            auto waiting = spawn(
                [](std::string name) -> task<> {
                    const auto found = co_await async_resolve(name, 80, {.family = v4});
                    if (!found) {
                        EXPECT_EQ(error_of(found), canceled);
                    }
                },
                host);
            co_await turns(2);
            resolver.answer(host, v4, {"192.0.2.1"});
            co_await turns(round % 4);
            waiting.request_stop();
            co_await waiting;
        }
    });
}

TEST_P(resolve_test, an_awaitable_that_is_dropped_unstarted_asks_nobody) {
    scripted_resolver resolver;
    run([&]() -> task<> {
        {
            auto dropped = async_resolve("host", 80);
            auto moved = std::move(dropped);
        }
        co_return;
    });
    EXPECT_EQ(resolver->threads(), 0U);
}

TEST_P(resolve_test, the_texts_are_copied_at_the_call) {
    scripted_resolver resolver;
    resolver.answer("a-name-that-does-not-fit-into-a-small-string", v4, {"192.0.2.1"});
    run([&]() -> task<> {
        std::string host = "a-name-that-does-not-fit-into-a-small-string";
        auto later = async_resolve(host, 80, {.family = v4});
        host.assign(host.size(), '!');
        EXPECT_TRUE(co_await std::move(later));
    });
}

// --- the process ---------------------------------------------------------------------------------

TEST_P(resolve_test, resolver_threads_take_no_signals) {
    run([]() -> task<> { EXPECT_TRUE(co_await async_resolve("localhost", 80)); });
    for (const auto& each : std::filesystem::directory_iterator{"/proc/self/task"}) {
        std::string line;
        std::getline(std::ifstream{each.path() / "comm"}, line);
        if (line != "sn-resolver") continue;
        std::ifstream status{each.path() / "status"};
        while (std::getline(status, line) && !line.starts_with("SigBlk:")) {
        }
        const auto blocked = std::stoull(line.substr(8), nullptr, 16);
        for (const int each_signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM, SIGPROF})
            EXPECT_TRUE(blocked >> (each_signal - 1) & 1) << each_signal;
        EXPECT_FALSE(blocked >> (SIGSEGV - 1) & 1); // for handlers that report a fault
    }
}

#if !defined(__SANITIZE_THREAD__) // it does not follow a process with threads into fork(2)
TEST_P(resolve_test, a_forked_child_has_its_own_resolver) {
    run([]() -> task<> { EXPECT_TRUE(co_await async_resolve("localhost", 80)); });
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(20);
        auto own = event_loop::create({.backend = GetParam()});
        if (!own) ::_exit(2);
        bool found = false;
        own->spawn(
            [&]() -> task<> { found = (co_await async_resolve("localhost", 80)).has_value(); });
        own->run();
        ::_exit(found ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}
#endif

using resolve_death_test = resolve_test;

TEST_P(resolve_death_test, a_process_ends_while_a_lookup_hangs) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::alarm(20);
            static scripted_resolver* const resolver = new scripted_resolver; // as the real one
            auto own = or_throw(event_loop::create({.backend = GetParam()}));
            own.spawn([]() -> task<> {
                auto waiting =
                    spawn([]() -> task<> { EXPECT_FALSE(co_await async_resolve("host", 80)); });
                co_await until([&] { return resolver->begun() == 2; });
                waiting.request_stop();
                co_await waiting;
            });
            own.run();
            std::exit(resolver->begun() == 2 ? 0 : 3);
        },
        ::testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(backends, resolve_test, all_backends, backend_name);
INSTANTIATE_TEST_SUITE_P(backends, resolve_death_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
