#include <simplenet/net/resolve.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/endpoints.hpp"
#include "support/error_of.hpp"
#include "support/scripted_resolver.hpp"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
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
using testing::scripted_resolver;
using testing::texts;
using testing::until;

constexpr auto invalid = std::errc::invalid_argument;
using enum address_family;

static_assert(std::is_trivially_destructible_v<resolve_options>); // for co_await with GCC 12

class resolve_test : public testing::backend_test {};

/// The threads of this process that are named like the resolver's.
std::size_t resolver_threads() {
    std::size_t count = 0;
    for (const auto& each : std::filesystem::directory_iterator{"/proc/self/task"}) {
        std::string name;
        std::getline(std::ifstream{each.path() / "comm"}, name);
        count += name == "sn-resolver";
    }
    return count;
}

// --- without a lookup ----------------------------------------------------------------------------

TEST_P(resolve_test, an_address_resolves_to_itself_without_a_thread) {
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

TEST_P(resolve_test, an_invalid_host_is_refused_without_a_thread) {
    scripted_resolver resolver;
    std::vector<std::string> hosts{"", ".", std::string{"lo\0cal", 6}, "two words", "line\n",
                                   "http://host", "host:80", "[::1]", "user@host", "::1::", "\x7f",
                                   // Some programs treat these as 127.0.0.1, others as names.
                                   "127.1", "0x7f000001", "017700000001", "2130706433",
                                   "127.0.0.1.", "1.2.3.256", "a.0x",
                                   // glibc treats it as no host at all, and answers with this
                                   // machine.
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

TEST_P(resolve_test, the_longest_name_is_looked_up) {
    scripted_resolver resolver;
    const std::string host = std::string(63, 'a') + '.' + std::string(63, 'b') + '.' +
                             std::string(63, 'c') + '.' + std::string(61, 'd');
    ASSERT_EQ(host.size(), 253U);
    for (const std::string& each : {host, host + '.'}) {
        resolver.answer(each, v4, {"192.0.2.1"});
        run([&]() -> task<> { EXPECT_TRUE(co_await async_resolve(each, 80, {.family = v4})); });
    }
}

TEST_P(resolve_test, an_invalid_service_is_refused_without_a_thread) {
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
                                            "*", // glibc treats it as no service: port 0
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

// --- the resolver of the system ------------------------------------------------------------------

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
        // 514 is the shell's port with TCP, and the log's with UDP.
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

TEST_P(resolve_test, one_family_can_be_requested) {
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

TEST(resolver_error_test, a_system_error_without_an_errno_is_still_an_error) {
    const auto error = detail::sys::resolver_error(EAI_SYSTEM, 0);
    EXPECT_TRUE(error);
    EXPECT_EQ(error, errc::name_lookup_failed);
    EXPECT_STREQ(error.category().name(), "resolver");
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
        EXPECT_FALSE(blocked >> (SIGSEGV - 1) & 1); // open for handlers that report a fault
    }
}

TEST_P(resolve_test, a_forked_child_has_its_own_resolver) {
    if (testing::under_thread_sanitizer) {
        GTEST_SKIP() << "it does not follow a process with threads into fork(2)";
    }
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

using resolve_death_test = resolve_test;

TEST_P(resolve_death_test, a_process_ends_while_a_lookup_hangs) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            ::alarm(20);
            static scripted_resolver* const resolver = new scripted_resolver; // never destroyed
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
