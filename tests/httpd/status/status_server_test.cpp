#include "httpd/status/status_server.hpp"

#include "httpd/process/listening_sockets.hpp"
#include "httpd/status/status_page.hpp"
#include "support/promtool.hpp"
#include "support/served_group.hpp"

#include <simplenet/blocking/tcp_stream.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

namespace httpd {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class status_server_test : public simplenet::testing::served_test {
protected:
    void SetUp() override {
        served_test::SetUp();
        if (IsSkipped()) return;
        group_.emplace(make_group(2));
        board_->answered({.status = 200, .body_bytes = 5, .site = "example.org"});
        auto sockets = *open_sockets(*group_, simplenet::endpoint::loopback(0), {});
        server_.emplace(*status_server::adopt(*group_, std::move(sockets), board_,
                                              {"status.example.org", "*.example.net"}));
    }
    void TearDown() override {
        server_.reset();
        group_.reset();
    }

    [[nodiscard]] std::string ask(const std::string& request,
                                  const std::string& host = "127.0.0.1") const {
        auto stream = *simplenet::blocking::tcp_stream::connect(server_->local_endpoint());
        const std::string whole =
            host.empty() ? request + " HTTP/1.0\r\n\r\n"
                         : request + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
        EXPECT_TRUE(stream.write_all(whole));
        std::string answer;
        std::array<std::byte, 4096> some;
        while (const auto count = stream.read_some(some))
            answer.append(reinterpret_cast<const char*>(some.data()), *count);
        return answer;
    }
    [[nodiscard]] static std::string body_of(const std::string& answer) {
        return answer.substr(answer.find("\r\n\r\n") + 4);
    }

    const std::shared_ptr<status_board> board_ = std::make_shared<status_board>("1.2.3");

private:
    std::optional<simplenet::event_loop_group> group_;
    std::optional<status_server> server_;
};

TEST_P(status_server_test, health_is_503_once_the_program_ends) {
    board_->end();

    const auto answer = ask("GET /health");

    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
    EXPECT_EQ(body_of(answer), "ending\n");
}

TEST_P(status_server_test, health_is_ok) {
    const auto answer = ask("GET /health");

    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
    EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: text/plain; charset=utf-8\r\n"));
    EXPECT_EQ(body_of(answer), "ok\n");
}

TEST_P(status_server_test, metrics_are_ours_and_those_of_the_library) {
    const auto answer = ask("GET /metrics");

    EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8"));
    EXPECT_THAT(answer, HasSubstr("\nsimplenet_httpd_requests_total{status=\"2xx\"} 1\n"));
    EXPECT_THAT(answer, HasSubstr("\nsimplenet_loop_turns_total{"));
    if (simplenet::testing::has_promtool())
        simplenet::testing::expect_good_metrics(body_of(answer));
}

TEST_P(status_server_test, the_page_runs_only_its_own_script) {
    const auto answer = ask("GET /");

    EXPECT_THAT(answer, HasSubstr("\r\nContent-Security-Policy: default-src 'none'; connect-src "
                                  "'self'; img-src data:; script-src 'sha256-"));
    EXPECT_THAT(answer, HasSubstr("frame-ancestors 'none'\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"));
    EXPECT_EQ(body_of(answer), status_page);
    EXPECT_EQ(status_script_hash.size(), 44U);
}

TEST_P(status_server_test, the_figures_of_the_page_are_json) {
    const auto answer = ask("GET /status.json");

    EXPECT_THAT(answer, HasSubstr("\r\nContent-Type: application/json\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\nCache-Control: no-store\r\n"));
    EXPECT_THAT(body_of(answer), StartsWith(R"({"version":"1.2.3",)"));
    EXPECT_THAT(answer, HasSubstr(R"("sites":[{"name":"example.org","bytes":5,)"));
}

TEST_P(status_server_test, head_has_no_body) {
    EXPECT_THAT(ask("HEAD /metrics"), EndsWith("\r\n\r\n"));
}

TEST_P(status_server_test, serves_nothing_else) {
    for (const std::string path : {"/x", "/metrics/", "/index.html", "/status", "/..%2f"})
        EXPECT_THAT(ask("GET " + path), StartsWith("HTTP/1.1 404 ")) << path;
    for (const std::string method : {"POST", "PUT", "DELETE"})
        EXPECT_THAT(ask(method + " /metrics"), StartsWith("HTTP/1.1 405 ")) << method;
}

TEST_P(status_server_test, a_name_that_is_not_configured_gets_no_figures) {
    for (const std::string host : {"evil.example", "status.example.org.evil.example", "example.net",
                                   "127.0.0.1.evil.example", "localhost.evil.example:8081"})
        for (const std::string path : {"/", "/metrics", "/status.json"})
            EXPECT_THAT(ask("GET " + path, host), StartsWith("HTTP/1.1 421 ")) << host << path;
}

TEST_P(status_server_test, health_answers_to_every_name) {
    EXPECT_THAT(ask("GET /health", "balanced.example"), StartsWith("HTTP/1.1 200 "));
}

TEST_P(status_server_test, addresses_localhost_and_configured_names_get_figures) {
    for (const std::string host :
         {"127.0.0.1:8081", "[::1]:8081", "[::1]", "localhost", "LOCALHOST:8081",
          "Status.Example.org:8081", "status.example.org.", "a.b.example.net", ""})
        EXPECT_THAT(ask("GET /metrics", host), StartsWith("HTTP/1.1 200 ")) << host;
}

TEST_P(status_server_test, figures_of_the_program_are_asked_for_each_time) {
    int asked = 0;
    board_->set_sources({.certificates = [&] {
        return std::vector<certificate_figures>(static_cast<std::size_t>(++asked));
    }});
    EXPECT_THAT(ask("GET /status.json"), HasSubstr(R"("certificates":[{)"));

    board_->set_sources({});
    board_->reloaded(false);

    EXPECT_THAT(ask("GET /status.json"), HasSubstr(R"("certificates":[],"reloads":0,)"
                                                   R"("reloads_failed":1,)"
                                                   R"("reload_latest_failed":true)"));
    EXPECT_EQ(asked, 1);
}

TEST_P(status_server_test, requests_are_small) {
    EXPECT_THAT(ask("GET /" + std::string(2000, 'x')), StartsWith("HTTP/1.1 414 "));
}

INSTANTIATE_TEST_SUITE_P(backends, status_server_test, simplenet::testing::real_backends,
                         simplenet::testing::backend_name);

} // namespace
} // namespace httpd
