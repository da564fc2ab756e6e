#include <simplenet/net/connect.hpp>

#include "ip/native.hpp"
#include "socket/setup.hpp"
#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_limit.hpp"
#include "support/descriptors.hpp"
#include "support/endpoints.hpp"
#include "support/error_of.hpp"
#include "support/full_listener.hpp"
#include "support/scripted_resolver.hpp"

#include <simplenet/blocking/tcp_listener.hpp>
#include <simplenet/coro/combinators.hpp>
#include <simplenet/net/resolve.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/threads/with_stop.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>
#include <netdb.h>

namespace simplenet::v0 {
namespace {

namespace sys = detail::sys;
using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using ::testing::ElementsAre;
using testing::listen_at;
using testing::port_of;
using testing::scripted_resolver;
using testing::turns;
using testing::until;

constexpr auto refused = std::errc::connection_refused;
using enum address_family;

static_assert(std::is_trivially_destructible_v<connect_options>); // for co_await with GCC 12

/// The test answers the lookups of "host". Its IPv6 addresses are also in 127.0.0.0/8, so that
/// these tests need no IPv6; connect_test and the DNS tests use the real one.
class connect_by_name_test : public testing::backend_test {
protected:
    void SetUp() override {
        backend_test::SetUp();
        before_ = testing::open_descriptors();
    }
    void TearDown() override {
        // Only for a loop that stays alive.
        if (!HasFailure() && !IsSkipped()) {
            // A lookup of the system that lost the race has a file open for a moment, on its
            // thread.
            const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{10};
            while (testing::open_descriptors() > before_ &&
                   std::chrono::steady_clock::now() < limit)
                std::this_thread::yield();
            EXPECT_LE(testing::open_descriptors(), before_);
        }
        backend_test::TearDown();
    }

    void has(address_family family, std::vector<std::string_view> addresses) {
        resolver.answer("host", family, std::move(addresses));
    }

    /// IPv4's addresses arrive before IPv6's, so that the order of the attempts is certain.
    task<result<tcp_stream>> connect_to_both(std::vector<std::string_view> v6_addresses,
                                             std::vector<std::string_view> v4_addresses,
                                             std::uint16_t port, connect_options options) {
        options.resolution_delay = 2s;
        auto connecting = spawn(
            [](std::uint16_t to, connect_options how) -> task<result<tcp_stream>> {
                co_return co_await async_connect("host", to, how);
            },
            port, options);
        co_await until([&] { return resolver.begun() == 2; });
        has(v4, std::move(v4_addresses));
        co_await until([&] { return resolver->questions() == 1; });
        has(v6, std::move(v6_addresses));
        co_return co_await connecting;
    }

    scripted_resolver resolver;

private:
    std::size_t before_ = 0;
};

std::vector<std::string> tried(const connect_report& report) {
    std::vector<std::string> texts;
    for (const auto& each : report.attempts)
        texts.push_back(each.to.address().to_string());
    return texts;
}

/// A port without a listener at any address while this object lives: bound, but never listened on.
class silent_port {
public:
    silent_port()
        : socket_{or_throw(detail::open_tcp(address_, sys::mode::nonblocking))} {
        auto native = detail::to_native(address_);
        or_throw(sys::to_result(sys::bind(socket_.get(), native.data(), native.size)));
        or_throw(sys::to_result(sys::getsockname(socket_.get(), native.data(), native.size)));
        address_ = or_throw(detail::endpoint_from_native(native.data(), native.size));
    }

    [[nodiscard]] std::uint16_t number() const { return address_.port(); }

private:
    endpoint address_ = endpoint::any(0);
    unique_fd socket_;
};

TEST_P(connect_by_name_test, a_connection_carries_bytes) {
    has(v6, {});
    has(v4, {"127.0.0.2"});
    auto listener = listen_at("127.0.0.2");
    run([&]() -> task<> {
        connect_report report;
        auto stream = co_await async_connect("host", port_of(listener),
                                             {.no_delay = true, .report = &report});
        EXPECT_TRUE(stream) << error_of(stream).message();
        if (!stream) co_return;
        auto peer = or_throw(listener.accept());
        EXPECT_TRUE(co_await stream->write_some("hello"));
        std::array<char, 8> buffer{};
        EXPECT_EQ(peer.read_some(buffer).value_or(0), 5U);
        EXPECT_TRUE(stream->no_delay().value_or(false));
        EXPECT_THAT(tried(report), ElementsAre("127.0.0.2"));
        EXPECT_FALSE(report.attempts[0].error);
        EXPECT_EQ(report.lookup_v6, errc::name_not_found);
        EXPECT_FALSE(report.lookup_v4);
    });
}

TEST_P(connect_by_name_test, an_address_is_connected_to_without_a_lookup) {
    auto listener = listen_at("127.0.0.1");
    run([&]() -> task<> {
        connect_report report;
        EXPECT_TRUE(co_await async_connect("127.0.0.1", port_of(listener), {.report = &report}));
        EXPECT_THAT(tried(report), ElementsAre("127.0.0.1"));
        EXPECT_EQ(error_of(co_await async_connect("127.0.0.1", 1, {.family = v6})),
                  errc::name_not_found);
        EXPECT_EQ(error_of(co_await async_connect("", 1)), std::errc::invalid_argument);
        EXPECT_EQ(error_of(co_await async_connect("127.1", 1)), std::errc::invalid_argument);
    });
    EXPECT_EQ(resolver->threads(), 0U);
}

TEST_P(connect_by_name_test, localhost_works_with_the_resolver_of_the_system) {
    auto listener = listen_at("127.0.0.1");
    static auto& system = *new detail::name_resolver{
        &detail::sys::look_up, detail::name_resolver::limits{}}; // lives forever, as usual
    const detail::name_resolver::replacement real{system};
    run([&]() -> task<> { EXPECT_TRUE(co_await async_connect("localhost", port_of(listener))); });
}

TEST_P(connect_by_name_test, the_next_address_follows_a_refusal) {
    auto listener = listen_at("127.0.0.5");
    run([&]() -> task<> {
        connect_report report;
        const std::vector<std::string_view> six{"127.0.0.2", "127.0.0.4"};
        const std::vector<std::string_view> four{"127.0.0.3", "127.0.0.5"};
        auto connecting = connect_to_both(six, four, port_of(listener), {.report = &report});
        auto stream = co_await std::move(connecting);
        EXPECT_TRUE(stream) << error_of(stream).message();
        EXPECT_THAT(tried(report), ElementsAre("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"));
        for (std::size_t each = 0; each < 3; ++each) {
            EXPECT_EQ(report.attempts[each].error, refused);
            EXPECT_LE(report.attempts[each].ended, report.attempts[each + 1].started);
        }
    });
}

TEST_P(connect_by_name_test, a_silent_address_delays_the_next_by_the_attempt_delay) {
    const testing::full_listener silent{endpoint{or_throw(ip_address::parse("127.0.0.2")), 0}};
    has(v6, {"127.0.0.2"});
    has(v4, {"127.0.0.3"});
    auto listener = listen_at("127.0.0.3", silent.at().port());
    run([&]() -> task<> {
        const std::size_t before = testing::open_descriptors();
        connect_report report;
        {
            auto stream = co_await async_connect(
                "host", silent.at().port(),
                {.attempt_delay = 20ms, .resolution_delay = 2s, .report = &report});
            EXPECT_TRUE(stream) << error_of(stream).message();
            if (!stream) co_return;
            EXPECT_EQ(or_throw(stream->remote_endpoint()), or_throw(listener.local_endpoint()));
            // The loser has already been joined and closed.
            EXPECT_EQ(testing::open_descriptors(), before + 1);
        }
        EXPECT_THAT(tried(report), ElementsAre("127.0.0.2", "127.0.0.3"));
        EXPECT_EQ(report.attempts[0].error, canceled);
        EXPECT_FALSE(report.attempts[1].error);
        // Since the call: a thread may be delayed before its first attempt begins.
        EXPECT_GE(report.attempts[1].started, 20ms);
        EXPECT_GE(report.attempts[0].ended, report.attempts[1].started);
    });
}

TEST_P(connect_by_name_test, ipv4_waits_only_the_resolution_delay_for_ipv6) {
    has(v4, {"127.0.0.2"}); // IPv6 never answers
    auto listener = listen_at("127.0.0.2");
    run([&]() -> task<> {
        connect_report report;
        auto stream = co_await async_connect("host", port_of(listener), {.report = &report});
        EXPECT_TRUE(stream) << error_of(stream).message();
        if (!stream) co_return;
        EXPECT_GE(report.attempts[0].started, 50ms);
        EXPECT_EQ(report.lookup_v6, canceled);
    });
    EXPECT_EQ(resolver->questions(), 1U); // the abandoned one
}

TEST_P(connect_by_name_test, both_delays_use_the_clock_of_the_loop) {
    constexpr int a_while = 300; // a busy loop reads its clock only now and then
    testing::manual_clock clock;
    clock.set_automatic(false);
    remake_loop({.clock = &clock});
    const testing::full_listener silent{endpoint{or_throw(ip_address::parse("127.0.0.2")), 0}};
    auto listener = listen_at("127.0.0.3", silent.at().port());
    run([&]() -> task<> {
        connect_report report;
        auto connecting = spawn([&]() -> task<> {
            EXPECT_TRUE(co_await async_connect("host", silent.at().port(), {.report = &report}));
        });
        co_await until([&] { return resolver.begun() == 2; });
        has(v4, {"127.0.0.2"});
        co_await until([&] { return resolver->questions() == 1; });
        co_await turns(a_while);
        clock.advance(49ms);
        co_await turns(a_while);
        EXPECT_EQ(report.attempts.size(), 0U);
        clock.advance(2ms);
        co_await turns(a_while);
        EXPECT_EQ(report.attempts.size(), 1U);

        has(v6, {"127.0.0.3"});
        co_await until([&] { return resolver->questions() == 0; });
        clock.advance(249ms);
        co_await turns(a_while);
        EXPECT_EQ(report.attempts.size(), 1U);
        clock.advance(2ms);
        co_await connecting;
        EXPECT_THAT(tried(report), ElementsAre("127.0.0.2", "127.0.0.3"));
        EXPECT_EQ(report.attempts[0].started, 51ms);
        EXPECT_EQ(report.attempts[1].started, 302ms);
    });
}

TEST_P(connect_by_name_test, ipv6_is_used_before_ipv4_has_answered) {
    has(v6, {"127.0.0.2"});
    auto listener = listen_at("127.0.0.2");
    run([&]() -> task<> { EXPECT_TRUE(co_await async_connect("host", port_of(listener))); });
}

TEST_P(connect_by_name_test, a_late_answer_is_used) {
    has(v6, {"127.0.0.2"});
    auto listener = listen_at("127.0.0.3");
    run([&]() -> task<> {
        connect_report report;
        auto connecting = spawn([&]() -> task<> {
            EXPECT_TRUE(co_await async_connect("host", port_of(listener), {.report = &report}));
        });
        co_await until([&] { return !report.attempts.empty() && report.attempts[0].ended > 0ns; });
        co_await turns(5);
        EXPECT_FALSE(connecting.done());
        has(v4, {"127.0.0.3"});
        co_await connecting;
        EXPECT_THAT(tried(report), ElementsAre("127.0.0.2", "127.0.0.3"));
    });
}

TEST_P(connect_by_name_test, when_all_fail_the_last_error_and_every_attempt_are_reported) {
    const silent_port silent;
    run([&]() -> task<> {
        connect_report report;
        report.attempts.resize(7); // left over from an earlier call
        const std::vector<std::string_view> six{"127.0.0.2", "127.0.0.4"};
        const std::vector<std::string_view> four{"127.0.0.3"};
        auto connecting = connect_to_both(six, four, silent.number(), {.report = &report});
        const auto stream = co_await std::move(connecting);
        EXPECT_EQ(error_of(stream), refused);
        EXPECT_THAT(tried(report), ElementsAre("127.0.0.2", "127.0.0.3", "127.0.0.4"));
        for (const auto& each : report.attempts)
            EXPECT_EQ(each.error, refused);
    });
}

TEST_P(connect_by_name_test, an_unreachable_address_does_not_hide_a_refusal) {
    has(v6, {});
    has(v4, {"127.0.0.2", "127.0.0.3"});
    resolver.answer("far", v6, {});
    resolver.answer("far", v4, {"255.255.255.255"}); // TCP cannot connect to the broadcast address
    has(v4, {"127.0.0.2", "255.255.255.255"});
    const silent_port silent;
    run([&]() -> task<> {
        connect_report report;
        const auto stream = co_await async_connect("host", silent.number(), {.report = &report});
        EXPECT_EQ(error_of(stream), refused);
        EXPECT_THAT(tried(report), ElementsAre("127.0.0.2", "255.255.255.255"));
        EXPECT_EQ(report.attempts[1].error, std::errc::network_unreachable);
        EXPECT_EQ(error_of(co_await async_connect("far", 80)), std::errc::network_unreachable);
    });
}

TEST_P(connect_by_name_test, a_name_without_an_address_fails_with_the_error_of_its_lookup) {
    has(v6, {});
    resolver.fail("host", v4, EAI_AGAIN);
    has(v4, {});
    resolver.fail("down", v6, EAI_AGAIN);
    resolver.fail("down", v4, EAI_NONAME);
    run([&]() -> task<> {
        EXPECT_EQ(error_of(co_await async_connect("host", 80)), errc::name_not_found);
        const auto down = co_await async_connect("down", 80);
        EXPECT_EQ(error_of(down), errc::name_lookup_failed);
        EXPECT_EQ(error_of(down).message(), ::gai_strerror(EAI_AGAIN));
    });
}

TEST_P(connect_by_name_test, a_time_limit_covers_lookup_and_attempts) {
    const testing::full_listener silent;
    run([&]() -> task<> {
        const auto start = std::chrono::steady_clock::now();
        EXPECT_EQ(error_of(co_await async_connect("host", 80, {.timeout = 20ms})),
                  errc::deadline_exceeded);
        EXPECT_EQ(error_of(co_await with_timeout(async_connect("host", 80), 20ms)),
                  errc::deadline_exceeded);
        EXPECT_GE(std::chrono::steady_clock::now() - start, 40ms);

        connect_report report;
        EXPECT_EQ(error_of(co_await async_connect("127.0.0.1", silent.at().port(),
                                                  {.timeout = 20ms, .report = &report})),
                  errc::deadline_exceeded);
        EXPECT_THAT(tried(report), ElementsAre("127.0.0.1"));
        EXPECT_EQ(report.attempts[0].error, errc::deadline_exceeded);
        EXPECT_GE(report.attempts[0].ended, 20ms);

        has(v6, {});
        has(v4, {"127.0.0.1"});
        EXPECT_EQ(error_of(co_await async_connect(silent.at(), {.timeout = 20ms})),
                  errc::deadline_exceeded);
        for (const auto limit : {0ns, std::chrono::nanoseconds::min()}) {
            EXPECT_EQ(
                error_of(co_await async_connect("host", silent.at().port(), {.timeout = limit})),
                errc::deadline_exceeded);
        }
    });
}

TEST_P(connect_by_name_test, a_huge_limit_is_no_limit) {
    has(v6, {});
    has(v4, {"127.0.0.1"});
    auto listener = listen_at("127.0.0.1");
    run([&]() -> task<> {
        EXPECT_TRUE(co_await async_connect("host", port_of(listener),
                                           {.timeout = std::chrono::nanoseconds::max(),
                                            .attempt_delay = std::chrono::nanoseconds::max(),
                                            .resolution_delay = std::chrono::nanoseconds::max()}));
        EXPECT_TRUE(co_await async_connect("host", port_of(listener),
                                           {.attempt_delay = std::chrono::nanoseconds::min(),
                                            .resolution_delay = std::chrono::nanoseconds::min()}));
    });
}

// The stop comes at every turn in the life of a connect: lookups, a silent address, a refusal,
// success.
TEST_P(connect_by_name_test, a_stop_at_any_moment_leaves_nothing_behind) {
    const testing::full_listener silent{endpoint{or_throw(ip_address::parse("127.0.0.2")), 0}};
    auto listener = listen_at("127.0.0.4", silent.at().port());
    const std::size_t before = testing::open_descriptors();
    bool succeeded = false;
    for (int at = 0; at < 400 && !succeeded; ++at) {
        run([&]() -> task<> {
            const std::string host = "host-" + std::to_string(at);
            auto connecting = spawn(
                [](std::string name, std::uint16_t port) -> task<result<tcp_stream>> {
                    co_return co_await async_connect(name, port, {.attempt_delay = 10ms});
                },
                host, silent.at().port());
            for (int turn = 0; turn < at; ++turn) {
                if (turn == 3) resolver.answer(host, v6, {"127.0.0.2", "127.0.0.4"});
                if (turn == 5) resolver.answer(host, v4, {"127.0.0.3"});
                // Time passes as well.
                if (turn > 8) {
                    co_await async_sleep(1ms);
                } else {
                    co_await yield();
                }
            }
            connecting.request_stop();
            const auto stream = co_await connecting;
            succeeded = stream.has_value();
            if (!stream) {
                EXPECT_EQ(error_of(stream), canceled);
            }
        });
        ASSERT_EQ(testing::open_descriptors(), before) << "stopped at turn " << at;
    }
    EXPECT_TRUE(succeeded);
}

TEST_P(connect_by_name_test, works_with_combinators_and_with_stop) {
    has(v6, {});
    has(v4, {"127.0.0.1"});
    auto listener = listen_at("127.0.0.1");
    const std::uint16_t port = port_of(listener);
    run([&]() -> task<> {
        const auto first =
            co_await when_any(async_connect("host", port), async_connect("nobody", port));
        EXPECT_EQ(first.index, 0U);
        const auto both = co_await when_all(async_connect("host", port),
                                            async_connect("host", port, {.family = v4}));
        EXPECT_TRUE(std::get<0>(both));
        EXPECT_TRUE(std::get<1>(both));
        std::stop_source source;
        source.request_stop();
        EXPECT_EQ(error_of(co_await with_stop(source.get_token(), async_connect("host", port))),
                  canceled);
    });
}

TEST_P(connect_by_name_test, a_socket_that_connected_to_itself_is_refused) {
    has(v6, {});
    constexpr std::string_view alone = "127.0.0.93"; // not used by other programs
    has(v4, {alone});
    run([&]() -> task<> {
        for (const std::string_view name : {std::string_view{"host"}, alone}) {
            const endpoint itself{or_throw(ip_address::parse(alone)), port_of(listen_at(alone))};
            EXPECT_EQ(error_of(co_await async_connect(name, itself.port(), {.from = itself})),
                      refused);
        }
    });
}

TEST_P(connect_by_name_test, a_local_address_decides_the_family) {
    has(v4, {"127.0.0.1"});
    auto listener = listen_at("127.0.0.1");
    run([&]() -> task<> {
        const endpoint from = or_throw(endpoint::parse("127.0.0.77:0"));
        auto stream = co_await async_connect("host", port_of(listener), {.from = from});
        EXPECT_TRUE(stream) << error_of(stream).message();
        if (!stream) co_return;
        EXPECT_EQ(or_throw(stream->local_endpoint()).address(), from.address());
        EXPECT_EQ(error_of(co_await async_connect("host", 1, {.from = from, .family = v6})),
                  std::errc::address_family_not_supported);
    });
    for (const auto& each : resolver.questions())
        EXPECT_EQ(each.family, v4);
}

TEST_P(connect_by_name_test, a_lack_of_descriptors_is_reported) {
    has(v6, {});
    has(v4, {"127.0.0.1", "127.0.0.2"});
    auto listener = listen_at("127.0.0.1");
    run([&]() -> task<> {
        const testing::descriptor_limit limit;
        EXPECT_EQ(error_of(co_await async_connect("host", port_of(listener))),
                  std::errc::too_many_files_open);
    });
}

TEST_P(connect_by_name_test, the_end_of_the_loop_ends_a_race) {
    const testing::full_listener silent{endpoint{or_throw(ip_address::parse("127.0.0.2")), 0}};
    for (const bool answered : {false, true}) {
        if (answered) {
            has(v6, {"127.0.0.2"});
            has(v4, {"127.0.0.2"});
        }
        std::error_code end;
        connect_report report;
        remake_loop();
        loop().spawn([&]() -> task<> {
            end = error_of(co_await async_connect("host", silent.at().port(),
                                                  {.attempt_delay = 10ms, .report = &report}));
        });
        do {
            EXPECT_FALSE(loop().run_for(2ms));
        } while (report.attempts.size() < (answered ? 2U : 0U));
        destroy_loop();
        EXPECT_EQ(end, canceled);
        EXPECT_EQ(report.attempts.size(), answered ? 2U : 0U);
    }
}

TEST_P(connect_by_name_test, many_at_once_share_two_lookups) {
    auto listener = listen_at("127.0.0.1");
    run([&]() -> task<> {
        std::vector<task<result<tcp_stream>>> all;
        for (int each = 0; each < 20; ++each)
            all.push_back(async_connect("host", port_of(listener)));
        auto joined = spawn(
            [](std::vector<task<result<tcp_stream>>> tasks) -> task<std::size_t> {
                std::size_t connected = 0;
                for (const auto& each : co_await when_all(std::move(tasks)))
                    connected += each.has_value();
                co_return connected;
            },
            std::move(all));
        co_await until([&] { return resolver.begun() == 2; });
        has(v6, {});
        has(v4, {"127.0.0.1"});
        EXPECT_EQ(co_await joined, 20U);
        EXPECT_EQ(resolver.begun(), 2U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, connect_by_name_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
