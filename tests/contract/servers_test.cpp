// Servers as the contract spells them.

#include <simplenet/simplenet.hpp>

#include "support/backend_test.hpp"

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace {

using namespace simplenet;
using namespace std::chrono_literals;

template <class T>
constexpr bool is_options = std::is_aggregate_v<T> && std::is_trivially_destructible_v<T> &&
                            std::is_trivially_copyable_v<T>;

static_assert(is_options<server_options> && is_options<local_server_options> &&
              is_options<run_server_options>);
static_assert(server_options{}.accept == accept_mode::automatic);
static_assert(server_options{}.balance == simplenet::balance::least_connections);
static_assert(server_options{}.max_connections == 0 && server_options{}.full == when_full::wait);
static_assert(server_options{}.idle_timeout == 0s && server_options{}.no_delay);
static_assert(server_options{}.listen.accept_ahead == 64);
static_assert(server_options{}.proxy == proxy_protocol::none);
static_assert(server_options{}.proxy_sources.empty() && server_options{}.proxy_timeout == 5s);
static_assert(server_options{}.on_handler_exception == nullptr &&
              server_options{}.context == nullptr);
static_assert(std::same_as<decltype(server_options::idle_timeout), std::chrono::nanoseconds>);
static_assert(
    std::same_as<decltype(server_options::proxy_sources), std::span<const std::string_view>>);
static_assert(std::same_as<decltype(server_options::on_handler_exception),
                           void (*)(std::exception_ptr, void*)>);
static_assert(local_server_options{}.balance == simplenet::balance::least_connections);
static_assert(local_server_options{}.full == when_full::wait);
static_assert(run_server_options{}.grace == 10s && run_server_options{}.on_listening == nullptr);
static_assert(run_server_options{}.context == nullptr && run_server_options{}.group.loops == 0);
static_assert(
    std::same_as<decltype(run_server_options::on_listening), void (*)(tcp_server&, void*)>);

// All names of the enumerations.
[[maybe_unused]] constexpr std::array accept_modes{accept_mode::automatic, accept_mode::reuse_port,
                                                   accept_mode::single_acceptor};
[[maybe_unused]] constexpr std::array balances{balance::round_robin, balance::least_connections};
[[maybe_unused]] constexpr std::array fulls{when_full::wait, when_full::reset};
[[maybe_unused]] constexpr std::array proxies{proxy_protocol::none, proxy_protocol::required};

static_assert(std::movable<tcp_server> && !std::copyable<tcp_server>);
static_assert(std::movable<local_server> && !std::copyable<local_server>);
static_assert(std::same_as<decltype(connection_info::peer), endpoint>);
static_assert(std::same_as<decltype(connection_info::local), endpoint>);
static_assert(std::same_as<decltype(connection_info::number), std::uint64_t>);
static_assert(std::same_as<decltype(connection_info::proxied), bool>);
static_assert(std::same_as<decltype(shutdown_report::drained), std::size_t>);
static_assert(std::same_as<decltype(shutdown_report::cut), std::size_t>);
static_assert(std::same_as<decltype(server_statistics::accepted), std::uint64_t>);
static_assert(std::same_as<decltype(server_statistics::refused), std::uint64_t>);
static_assert(std::same_as<decltype(server_statistics::ended), std::uint64_t>);
static_assert(std::same_as<decltype(server_statistics::failed), std::uint64_t>);
static_assert(std::same_as<decltype(server_statistics::open), std::size_t>);
static_assert(std::same_as<decltype(server_statistics::open_by_loop), std::vector<std::size_t>>);
static_assert(std::same_as<decltype(inherited_listener::name), std::string>);
static_assert(std::same_as<decltype(inherited_listener::socket), unique_fd>);
static_assert(
    std::same_as<decltype(inherited_listeners()), result<std::vector<inherited_listener>>>);

// Handlers of every shape. Each says which one it is.

task<> say(tcp_stream stream, std::string_view what) {
    or_throw(co_await async_write_all(stream, what));
}
task<> plain(tcp_stream stream) {
    return say(std::move(stream), "plain");
}
task<> informed(tcp_stream stream, connection_info info) {
    EXPECT_EQ(info.peer.address(), ip_address::loopback_v4());
    EXPECT_NE(info.local.port(), 0);
    EXPECT_EQ(info.number, 1U);
    EXPECT_FALSE(info.proxied);
    return say(std::move(stream), "informed");
}
task<result<>> reporting(tcp_stream stream) {
    co_await say(std::move(stream), "reporting");
    co_return result<>{};
}
task<result<>> informed_and_reporting(tcp_stream stream, const connection_info& info) {
    EXPECT_EQ(info.number, 1U);
    co_await say(std::move(stream), "both");
    co_return fail(std::errc::protocol_error);
}
struct functor {
    std::string text;
    task<> operator()(tcp_stream stream) const { return say(std::move(stream), text); }
};
struct changing_functor {
    int count = 0;
    task<> operator()(tcp_stream stream, connection_info) {
        ++count;
        return say(std::move(stream), "changing");
    }
};

task<std::string> all_of(endpoint from) {
    auto stream = or_throw(co_await async_connect(from));
    std::string text;
    std::array<char, 64> piece;
    while (auto count = co_await stream.read_some(piece))
        text.append(piece.data(), *count);
    co_return text;
}

class contract_servers : public simplenet::testing::own_loops_test {
protected:
    [[nodiscard]] static loop_options loop() { return {.backend = GetParam()}; }
    [[nodiscard]] static event_loop_group make_group() {
        return or_throw(event_loop_group::create({.loops = 2, .loop = loop()}));
    }
    template <class Handler>
    static std::string answer_of(Handler&& handler) {
        auto group = make_group();
        auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0)));
        static_assert(std::same_as<decltype(server.serve(handler)), result<>>);
        EXPECT_TRUE(server.serve(std::forward<Handler>(handler)));
        return simplenet::run(all_of(server.local_endpoint()), loop());
    }
};

TEST_P(contract_servers, handlers_have_every_shape) {
    EXPECT_EQ(answer_of(plain), "plain");
    EXPECT_EQ(answer_of(&informed), "informed");
    EXPECT_EQ(answer_of(reporting), "reporting");
    EXPECT_EQ(answer_of(&informed_and_reporting), "both");
    EXPECT_EQ(answer_of(functor{"functor"}), "functor");
    EXPECT_EQ(answer_of(changing_functor{}), "changing");
    const std::string text = "captured";
    auto named = [text](tcp_stream stream) -> task<> { co_await say(std::move(stream), text); };
    EXPECT_EQ(answer_of(named), "captured");
    EXPECT_EQ(answer_of([&text](tcp_stream stream, connection_info) -> task<result<>> {
                  co_await say(std::move(stream), text);
                  co_return result<>{};
              }),
              "captured");
    EXPECT_EQ(answer_of([text = text](tcp_stream stream, const auto& info) mutable -> task<> {
                  text += std::to_string(info.number);
                  co_await say(std::move(stream), text);
              }),
              "captured1");
}

void count_exception(std::exception_ptr, void* context) {
    ++*static_cast<int*>(context);
}

TEST_P(contract_servers, servers_have_their_members) {
    auto group = make_group();
    const std::array<std::string_view, 2> sources{"127.0.0.1", "10.0.0.0/8"};
    int exceptions = 0;
    auto made = tcp_server::listen(group, endpoint::loopback(0),
                                   {.accept = accept_mode::single_acceptor,
                                    .balance = balance::round_robin,
                                    .max_connections = 100,
                                    .full = when_full::reset,
                                    .idle_timeout = 1h,
                                    .no_delay = false,
                                    .listen = {.backlog = 16, .accept_ahead = 0},
                                    .proxy = proxy_protocol::none,
                                    .proxy_sources = sources,
                                    .proxy_timeout = 1s,
                                    .on_handler_exception = count_exception,
                                    .context = &exceptions});
    static_assert(std::same_as<decltype(made), result<tcp_server>>);
    tcp_server server = or_throw(std::move(made));
    EXPECT_NE(server.local_endpoint().port(), 0);
    or_throw(server.serve(plain));

    result<std::vector<unique_fd>> listeners = server.duplicate_listeners();
    ASSERT_TRUE(listeners);
    ASSERT_EQ(listeners->size(), 1U);
    std::vector<nonblocking::tcp_listener> adopted;
    adopted.push_back(or_throw(nonblocking::tcp_listener::adopt(std::move((*listeners)[0]))));
    tcp_server successor = or_throw(tcp_server::adopt(group, std::move(adopted)));
    EXPECT_EQ(successor.local_endpoint(), server.local_endpoint());

    const server_statistics now = std::as_const(server).statistics();
    EXPECT_EQ(now.accepted + now.refused + now.ended + now.failed, 0U);
    EXPECT_EQ(now.open, 0U);
    EXPECT_EQ(now.open_by_loop.size(), 2U);

    static_assert(std::same_as<decltype(server.shutdown(1s)), task<shutdown_report>>);
    static_assert(std::same_as<decltype(server.request_shutdown(1s)), void>);
    server.request_shutdown(0s);
    const shutdown_report report = simplenet::run(server.shutdown(1s), loop());
    EXPECT_EQ(report.drained + report.cut, 0U);
    successor = std::move(server);
}

TEST_P(contract_servers, handlers_learn_of_the_shutdown) {
    auto group = make_group();
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0)));
    or_throw(server.serve([](tcp_stream stream) -> task<> {
        EXPECT_FALSE(co_await this_task::server_stopping());
        or_throw(co_await async_write_all(stream, "!"));
        auto first = co_await when_any(stream.readable(), server_stop());
        EXPECT_EQ(first.index, 1U);
        EXPECT_TRUE(std::get<1>(first.values).has_value());
        EXPECT_TRUE(co_await this_task::server_stopping());
        const result<> again = co_await server_stop();
        EXPECT_TRUE(again);
    }));
    simplenet::run(
        [](tcp_server& ours) -> task<> {
            EXPECT_FALSE(co_await this_task::server_stopping());
            auto stream = or_throw(co_await async_connect(ours.local_endpoint()));
            std::array<char, 1> byte;
            or_throw(co_await stream.read_some(byte));
            const shutdown_report report = co_await ours.shutdown(1h);
            EXPECT_EQ(report.drained, 1U);
            EXPECT_EQ(report.cut, 0U);
        }(server),
        loop());
}

TEST_P(contract_servers, local_servers_are_the_same) {
    const std::string path = "/tmp/simplenet_contract_" + std::to_string(::getpid());
    const local_endpoint at = or_throw(local_endpoint::parse(path));
    {
        auto group = make_group();
        local_server server = or_throw(local_server::listen(
            group, at,
            {.balance = balance::round_robin, .max_connections = 4, .idle_timeout = 1h}));
        or_throw(server.serve([](local_stream stream, connection_info info) -> task<result<>> {
            EXPECT_EQ(info.credentials.pid, ::getpid());
            EXPECT_EQ(info.credentials.uid, ::getuid());
            EXPECT_EQ(info.credentials.gid, ::getgid());
            or_throw(co_await async_write_all(stream, "local"));
            co_return result<>{};
        }));
        EXPECT_EQ(server.local_endpoint(), at);
        simplenet::run(
            [](local_server& ours) -> task<> {
                auto stream = or_throw(co_await async_connect(ours.local_endpoint()));
                std::array<char, 5> text;
                or_throw(co_await async_read_exact(stream, text));
                stream.close();
                co_await ours.shutdown(1h);
            }(server),
            loop());
        EXPECT_EQ(server.statistics().ended, 1U);
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_P(contract_servers, nothing_is_inherited_here) {
    const auto none = inherited_listeners();
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->empty());
}

struct listening {
    std::stop_source stop;
    int told = 0;
};

TEST_P(contract_servers, a_server_runs_in_few_lines) {
    listening state;
    const result<shutdown_report> ended =
        run_server(endpoint::loopback(0), plain,
                   {.server = {.no_delay = true},
                    .group = {.loops = 2, .loop = loop()},
                    .grace = 1s,
                    .on_listening =
                        [](tcp_server& server, void* context) {
                            EXPECT_NE(server.local_endpoint().port(), 0);
                            auto& self = *static_cast<listening*>(context);
                            ++self.told;
                            self.stop.request_stop();
                        },
                    .context = &state},
                   state.stop.get_token());
    EXPECT_TRUE(ended);
    EXPECT_EQ(state.told, 1);
}

INSTANTIATE_TEST_SUITE_P(backends, contract_servers, simplenet::testing::real_backends,
                         simplenet::testing::backend_name);

} // namespace
