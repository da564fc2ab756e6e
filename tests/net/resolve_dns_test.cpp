// async_resolve and async_connect(host) with a misbehaving name server behind the resolver of the
// system, in a network and with an /etc of this process's own.

#include <simplenet/net/connect.hpp>
#include <simplenet/net/resolve.hpp>

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/dns_server.hpp"
#include "support/endpoints.hpp"
#include "support/error_of.hpp"
#include "support/own_network.hpp"

#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <netdb.h>

namespace simplenet::v0 {

std::string why_no_network; // empty: this process has a network of its own

namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::dns_reply;
using testing::dns_server;
using ::testing::ElementsAre;
using testing::listen_at;
using testing::port_of;
using testing::record;
using testing::texts;
using testing::until;
using way = dns_reply::way;

class resolve_dns_test : public testing::backend_test {
protected:
    void SetUp() override {
        if (!why_no_network.empty()) {
            ASSERT_EQ(std::getenv("SIMPLENET_REQUIRE_NAMESPACES"), nullptr) << why_no_network;
            GTEST_SKIP() << why_no_network;
        }
        backend_test::SetUp();
        if (!IsSkipped() && !HasFatalFailure()) server_.emplace();
    }
    void TearDown() override {
        backend_test::TearDown();
        server_.reset();
    }
    [[nodiscard]] dns_server& server() { return *server_; }

    /// A name that no other test has looked up: a lookup that a test has abandoned may still be in
    /// progress, and would be shared.
    [[nodiscard]] std::string named(const std::string& what) const {
        return what + '-' + std::to_string(number_) + ".test";
    }

private:
    static inline int tests_ = 0;
    const int number_ = ++tests_;
    std::optional<dns_server> server_;
};

std::size_t threads() {
    const std::filesystem::directory_iterator all{"/proc/self/task"};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_P(resolve_dns_test, both_families_of_a_name_are_found) {
    server().set(named("both"), record::a, {.addresses = {"127.0.0.2", "127.0.0.3"}});
    server().set(named("both"), record::aaaa, {.addresses = {"::1"}});
    run([&]() -> task<> {
        const auto found = co_await async_resolve(named("both"), 80);
        EXPECT_THAT(texts(found), ElementsAre("[::1]:80", ::testing::StartsWith("127.0.0."),
                                              ::testing::StartsWith("127.0.0.")));
    });
}

TEST_P(resolve_dns_test, an_unreachable_family_comes_last) {
    // The only routes lead to this machine.
    server().set(named("mixed"), record::a, {.addresses = {"127.0.0.2"}});
    server().set(named("mixed"), record::aaaa, {.addresses = {"2001:db8::1"}});
    run([&]() -> task<> {
        EXPECT_THAT(texts(co_await async_resolve(named("mixed"), 80)),
                    ElementsAre("127.0.0.2:80", "[2001:db8::1]:80"));
    });
}

TEST_P(resolve_dns_test, a_name_that_does_not_exist_is_not_found) {
    run([&]() -> task<> {
        const auto found = co_await async_resolve(named("nowhere"), 80);
        EXPECT_EQ(error_of(found), errc::name_not_found);
        EXPECT_EQ(error_of(found).message(), ::gai_strerror(EAI_NONAME));
    });
}

TEST_P(resolve_dns_test, a_name_without_addresses_is_not_found) {
    server().set(named("empty"), record::a, {});
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await async_resolve(named("empty"), 80)), errc::name_not_found);
    });
}

TEST_P(resolve_dns_test, a_server_that_fails_or_refuses_is_a_failed_lookup) {
    for (const unsigned code : {2U, 5U}) {
        server().set(named("broken"), record::a, {.code = code});
        server().set(named("broken"), record::aaaa, {.code = code});
        run([&]() -> task<> {
            const auto found = co_await async_resolve(named("broken"), 80);
            EXPECT_EQ(error_of(found), errc::name_lookup_failed);
            EXPECT_EQ(error_of(found).message(), ::gai_strerror(EAI_AGAIN));
        });
    }
}

TEST_P(resolve_dns_test, the_resolver_gives_up_on_a_server_that_never_answers) {
    server().set(named("silent"), record::a, {.how = way::silence});
    server().set(named("silent"), record::aaaa, {.how = way::silence});
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await async_resolve(named("silent"), 80)), errc::name_lookup_failed);
    });
}

TEST_P(resolve_dns_test, a_deadline_does_not_wait_for_a_silent_server) {
    server().set(named("silent"), record::a, {.how = way::hold});
    server().set(named("silent"), record::aaaa, {.how = way::hold});
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await with_timeout(async_resolve(named("silent"), 80), 20ms)),
                  errc::deadline_exceeded);
    });
    server().release(named("silent"), record::a, {});
    server().release(named("silent"), record::aaaa, {});
}

TEST_P(resolve_dns_test, other_tasks_run_while_the_server_is_silent) {
    server().set(named("held"), record::a, {.how = way::hold});
    server().set(named("held"), record::aaaa, {.how = way::hold});
    run([&]() -> task<> {
        auto waiting = spawn([&]() -> task<> {
            EXPECT_THAT(texts(co_await async_resolve(named("held"), 80)),
                        ElementsAre("[::1]:80", "127.0.0.2:80"));
        });
        for (int tick = 0; tick < 20; ++tick)
            EXPECT_TRUE(co_await async_sleep(1ms));
        EXPECT_FALSE(waiting.done());
        server().release(named("held"), record::a, {"127.0.0.2"});
        server().release(named("held"), record::aaaa, {"::1"});
        co_await waiting;
    });
}

TEST_P(resolve_dns_test, many_abandoned_lookups_need_few_threads) {
    const std::size_t before = threads();
    run([&]() -> task<> {
        task_group group;
        for (int each = 0; each < 200; ++each) {
            const std::string host = named("lost-" + std::to_string(each));
            server().set(host, record::a, {.how = way::silence});
            server().set(host, record::aaaa, {.how = way::silence});
            group.spawn(
                [](std::string name) -> task<> {
                    EXPECT_EQ(error_of(co_await with_timeout(async_resolve(name, 80), 30ms)),
                              errc::deadline_exceeded);
                },
                host);
        }
        co_await group.join();
        EXPECT_LE(threads(), before + 8);
    });
    // The abandoned lookups hold the threads until the resolver of the system gives up.
    server().set(named("after"), record::a, {.addresses = {"127.0.0.9"}});
    run([&]() -> task<> {
        EXPECT_THAT(
            texts(co_await async_resolve(named("after"), 80, {.family = address_family::v4})),
            ElementsAre("127.0.0.9:80"));
        EXPECT_LE(threads(), before + 8);
    });
}

TEST_P(resolve_dns_test, a_truncated_answer_is_requested_again_over_tcp) {
    std::vector<std::string> many;
    for (int each = 1; each <= 200; ++each)
        many.push_back("127.0.1." + std::to_string(each));
    server().set(named("large"), record::a, {way::truncate, many, 0});
    const std::size_t before = server().over_tcp();
    run([&]() -> task<> {
        const auto found =
            co_await async_resolve(named("large"), 80, {.family = address_family::v4});
        EXPECT_EQ(found.value_or(std::vector<endpoint>{}).size(), 200U)
            << error_of(found).message();
    });
    EXPECT_GT(server().over_tcp(), before);
}

TEST_P(resolve_dns_test, malformed_and_mismatched_answers_are_not_used) {
    for (const way how : {way::garbage, way::wrong_id, way::wrong_name}) {
        server().set(named("lie"), record::a, {how, {"127.0.0.6"}, 0});
        run([&]() -> task<> {
            const auto found =
                co_await async_resolve(named("lie"), 80, {.family = address_family::v4});
            EXPECT_FALSE(found);
            EXPECT_TRUE(error_of(found) == errc::name_lookup_failed ||
                        error_of(found) == errc::name_not_found)
                << error_of(found);
        });
    }
}

TEST_P(resolve_dns_test, a_record_of_the_other_type_is_not_an_answer) {
    server().set(named("odd"), record::a, {.addresses = {"::1"}});
    server().set(named("odd"), record::aaaa, {.addresses = {"127.0.0.6"}});
    run([&]() -> task<> { EXPECT_FALSE(co_await async_resolve(named("odd"), 80)); });
}

// --- connecting ----------------------------------------------------------------------------------

TEST_P(resolve_dns_test, ipv6_wins_when_it_works) {
    auto six = listen_at("::1");
    server().set(named("both"), record::a, {.addresses = {"127.0.0.1"}});
    server().set(named("both"), record::aaaa, {.addresses = {"::1"}});
    run([&]() -> task<> {
        auto stream = co_await async_connect(named("both"), port_of(six), {.resolution_delay = 2s});
        EXPECT_TRUE(stream) << error_of(stream).message();
        if (!stream) co_return;
        EXPECT_TRUE(or_throw(stream->remote_endpoint()).address().is_v6());
    });
}

TEST_P(resolve_dns_test, ipv4_takes_over_where_ipv6_is_unreachable) {
    auto four = listen_at("127.0.0.1");
    server().set(named("both"), record::a, {.addresses = {"127.0.0.1"}});
    server().set(named("both"), record::aaaa, {.addresses = {"2001:db8::1"}});
    run([&]() -> task<> {
        connect_report report;
        auto stream = co_await async_connect(named("both"), port_of(four),
                                             {.resolution_delay = 2s, .report = &report});
        EXPECT_TRUE(stream) << error_of(stream).message();
        EXPECT_EQ(report.attempts.front().error, std::errc::network_unreachable);
    });
}

TEST_P(resolve_dns_test, a_name_server_that_forgets_ipv6_costs_the_resolution_delay) {
    auto four = listen_at("127.0.0.1");
    server().set(named("half"), record::a, {.addresses = {"127.0.0.1"}});
    server().set(named("half"), record::aaaa, {.how = way::hold});
    run([&]() -> task<> {
        connect_report report;
        EXPECT_TRUE(co_await async_connect(named("half"), port_of(four), {.report = &report}));
        EXPECT_GE(report.attempts.front().started, 50ms);
        EXPECT_EQ(report.lookup_v6, std::errc::operation_canceled);
    });
    server().release(named("half"), record::aaaa, {});
}

TEST_P(resolve_dns_test, a_connect_fails_with_the_error_of_its_lookup) {
    server().set(named("broken"), record::a, {.code = 2});
    server().set(named("broken"), record::aaaa, {.code = 2});
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await async_connect(named("nowhere"), 80)), errc::name_not_found);
        EXPECT_EQ(error_of(co_await async_connect(named("broken"), 80)), errc::name_lookup_failed);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, resolve_dns_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0

int main(int argc, char** argv) {
    ::testing::InitGoogleMock(&argc, argv);
    simplenet::why_no_network = simplenet::testing::enter_own_network();
    return RUN_ALL_TESTS();
}
