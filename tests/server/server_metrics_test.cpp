#include "server/server_metrics.hpp"

#include "support/child_process.hpp"
#include "support/promtool.hpp"
#include "support/served_group.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/insight/write_metrics.hpp>
#include <simplenet/io/loop_event.hpp>
#include <simplenet/server/local_server.hpp>

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class server_metrics_test : public served_test {};

std::string all_metrics() {
    std::ostringstream text;
    write_metrics(text);
    return std::move(text).str();
}

std::string labels_of(const tcp_server& server, int number) {
    return "{server=\"" + std::to_string(number) + "\",address=\"" +
           server.local_endpoint().to_string() + '"';
}

TEST_P(server_metrics_test, a_server_is_printed_while_it_serves) {
    auto group = make_group(2);
    std::optional server{or_throw(tcp_server::listen(group, endpoint::loopback(0)))};
    EXPECT_THAT(all_metrics(), Not(HasSubstr("simplenet_server")));
    EXPECT_TRUE(server->serve(wait_for_peer));
    const std::string labels = labels_of(*server, 0);
    auto peers = connect(server->local_endpoint(), 3);
    const auto has = [&](const std::string& text) {
        return eventually([&] { return all_metrics().find(text) != std::string::npos; });
    };
    EXPECT_TRUE(has("\nsimplenet_server_accepted_total" + labels + "} 3\n"));
    EXPECT_THAT(all_metrics(), HasSubstr("\nsimplenet_server_open" + labels + ",loop=\"1\"} "));
    peers.clear();
    EXPECT_TRUE(has("\nsimplenet_server_ended_total" + labels + "} 3\n"));
    EXPECT_THAT(all_metrics(), HasSubstr("\nsimplenet_server_failed_total" + labels + "} 0\n"));
    EXPECT_THAT(all_metrics(), HasSubstr("\nsimplenet_server_refused_total" + labels + "} 0\n"));
    server.reset();
    EXPECT_THAT(all_metrics(), Not(HasSubstr("simplenet_server")));
}

TEST_P(server_metrics_test, prometheus_accepts_those_of_several_servers) {
    if (!has_promtool()) GTEST_SKIP() << "without promtool";
    auto group = make_group(2);
    auto first = or_throw(tcp_server::listen(group, endpoint::loopback(0)));
    auto second = or_throw(tcp_server::listen(group, endpoint::loopback(0)));
    const temporary_directory directory;
    auto third = or_throw(
        local_server::listen(group, or_throw(local_endpoint::parse(directory / "a \"server\""))));
    EXPECT_TRUE(first.serve(wait_for_peer));
    EXPECT_TRUE(second.serve(wait_for_peer));
    EXPECT_TRUE(third.serve([](local_stream) -> task<> { co_return; }));
    const std::string text = all_metrics();
    EXPECT_THAT(text, HasSubstr("a \\\"server\\\""));
    expect_good_metrics(text);
}

TEST_P(server_metrics_test, a_server_that_was_shut_down_keeps_its_figures_to_its_end) {
    auto group = make_group(1);
    std::optional server{or_throw(tcp_server::listen(group, endpoint::loopback(0)))};
    EXPECT_TRUE(server->serve(wait_for_peer));
    shut_down(*server, 0s);
    EXPECT_THAT(all_metrics(),
                HasSubstr("simplenet_server_accepted_total" + labels_of(*server, 0)));
    auto moved = std::move(*server);
    server.reset();
    EXPECT_THAT(all_metrics(), HasSubstr("simplenet_server_accepted_total"));
}

// --- events --------------------------------------------------------------------------------------

/// The events of all loops, as text.
class events_of_loops {
public:
    [[nodiscard]] loop_options options() {
        loop_options with;
        with.on_event = [](const loop_event& event, void* context) {
            auto& self = *static_cast<events_of_loops*>(context);
            const std::lock_guard lock{self.guard_};
            self.texts_.push_back(std::string{to_string(event.kind)} + ": " +
                                  std::string{event.text});
        };
        with.event_context = this;
        return with;
    }
    [[nodiscard]] bool has(std::string_view text) {
        const std::lock_guard lock{guard_};
        return std::ranges::any_of(
            texts_, [text](const std::string& each) { return each.find(text) != each.npos; });
    }

private:
    std::mutex guard_;
    std::vector<std::string> texts_;
};

TEST_P(server_metrics_test, a_full_server_tells_whom_it_refuses) {
    events_of_loops events;
    auto group = make_group(1, events.options());
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0),
                                              {.max_connections = 1, .full = when_full::reset}));
    EXPECT_TRUE(server.serve(wait_for_peer));
    const auto first = connect(server.local_endpoint());
    // The connection may be reset before connect() returns.
    const auto client = blocking::tcp_stream::connect(server.local_endpoint());
    EXPECT_TRUE(eventually([&] {
        return events.has("connection_refused: the server at " +
                          server.local_endpoint().to_string() +
                          " refuses a connection from 127.0.0.1:") &&
               events.has(": the server is full");
    }));
}

TEST_P(server_metrics_test, a_connection_without_a_proxy_header_is_told) {
    events_of_loops events;
    auto group = make_group(1, events.options());
    auto server = or_throw(
        tcp_server::listen(group, endpoint::loopback(0), {.proxy = proxy_protocol::required}));
    EXPECT_TRUE(server.serve(wait_for_peer));
    auto client = connect(server.local_endpoint());
    client.send("GET / HTTP/1.1\r\n");
    EXPECT_TRUE(eventually([&] { return events.has("no PROXY header of a known proxy"); }));
}

TEST_P(server_metrics_test, connections_that_change_loops_are_told) {
    events_of_loops events;
    auto group = make_group(2, events.options());
    auto server = or_throw(tcp_server::listen(
        group, endpoint::loopback(0),
        {.accept = accept_mode::single_acceptor, .balance = balance::round_robin}));
    EXPECT_TRUE(server.serve(wait_for_peer));
    const auto peers = connect(server.local_endpoint(), 2);
    EXPECT_TRUE(eventually([&] {
        return events.has("handed_over: connection 1 goes from loop 0 of the server to loop 1");
    }));
}

INSTANTIATE_TEST_SUITE_P(backends, server_metrics_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
