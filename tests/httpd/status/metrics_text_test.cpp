#include "httpd/status/metrics_text.hpp"

#include "httpd/status/figures_sample.hpp"
#include "support/promtool.hpp"

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace httpd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(metrics_text_test, promtool_finds_nothing_to_complain_about) {
    if (!simplenet::testing::has_promtool()) GTEST_SKIP() << "promtool is missing";

    simplenet::testing::expect_good_metrics(metrics_text(testing::sample_figures()));
    simplenet::testing::expect_good_metrics(metrics_text({}));
}

TEST(metrics_text_test, has_every_figure) {
    const auto text = metrics_text(testing::sample_figures());

    for (
        const std::string_view line : {
            R"(simplenet_httpd_requests_total{status="none"} 1)",
            R"(simplenet_httpd_requests_total{status="5xx"} 6)",
            R"(simplenet_httpd_body_bytes_total 1000)",
            R"(simplenet_httpd_incomplete_answers_total 8)",
            R"(simplenet_httpd_tls_requests_total 9)",
            R"(simplenet_httpd_site_requests_total{site="example.org",status="2xx"} 3)",
            R"(simplenet_httpd_site_body_bytes_total{site="example.org"} 70)",
            R"(simplenet_httpd_connections_accepted_total{address="127.0.0.1:80"} 10)",
            R"(simplenet_httpd_connections_refused_total{address="127.0.0.1:80"} 1)",
            R"(simplenet_httpd_connections_failed_total{address="127.0.0.1:80"} 2)",
            R"(simplenet_httpd_handshakes_failed_total{address="[::1]:443"} 4)",
            R"(simplenet_httpd_connections{address="127.0.0.1:80",loop="1"} 3)",
            R"(simplenet_httpd_certificate_expiry_timestamp_seconds{file="/etc/site.pem"} 1129600)",
            R"(simplenet_httpd_certificate_expiry_timestamp_seconds{file="/etc/old.pem"} 913600)",
            R"(simplenet_httpd_info{version="1.2.3"} 1)",
            R"(simplenet_httpd_reloads_total{result="ok"} 5)",
            R"(simplenet_httpd_reloads_total{result="failed"} 1)",
            R"(simplenet_httpd_reload_latest_failed 1)",
            R"(simplenet_httpd_log_lines_lost_total{log="access"} 11)",
            R"(simplenet_httpd_log_lines_lost_total{log="error"} 12)",
            R"(simplenet_httpd_log_messages_suppressed_total 13)",
            R"(process_resident_memory_bytes 4096)",
            R"(process_open_fds 7)",
            R"(process_max_fds 1024)",
            R"(process_cpu_seconds_total 1.5)",
            R"(process_start_time_seconds 999000)",
        })
        EXPECT_THAT(text, HasSubstr(std::string{"\n"}.append(line).append("\n")));
}

TEST(metrics_text_test, backends_have_their_health) {
    const auto text = metrics_text(testing::sample_figures());
    const std::string php = R"({site="example.org",route="*.php",backend="unix:/run/php.sock"} )";
    const std::string api = R"({site="example.org",route="/api/*",backend="127.0.0.1:9000"} )";

    EXPECT_THAT(text, HasSubstr("\nsimplenet_httpd_backend_up" + php + "0\n"));
    EXPECT_THAT(text, HasSubstr("\nsimplenet_httpd_backend_up" + api + "1\n"));
    EXPECT_THAT(text, HasSubstr("\nsimplenet_httpd_backend_active" + api + "1\n"));
    EXPECT_THAT(text, HasSubstr("\nsimplenet_httpd_backend_answers_total" + api + "20\n"));
    EXPECT_THAT(text, HasSubstr("\nsimplenet_httpd_backend_failures_total" + php + "3\n"));
}

TEST(metrics_text_test, durations_are_a_histogram) {
    const auto text = metrics_text(testing::sample_figures());
    const std::string name = "\nsimplenet_httpd_request_duration_seconds";

    EXPECT_THAT(text, HasSubstr(name + R"(_bucket{le="1.024e-06"} 1)"));
    EXPECT_THAT(text, HasSubstr(name + R"(_bucket{le="0.000524288"} 1)"));
    EXPECT_THAT(text, HasSubstr(name + R"(_bucket{le="0.001048576"} 19)"));
    EXPECT_THAT(text, HasSubstr(name + R"(_bucket{le="137.438953472"} 19)"));
    EXPECT_THAT(text, HasSubstr(name + R"(_bucket{le="+Inf"} 20)"));
    EXPECT_THAT(text, HasSubstr(name + "_sum 200\n"));
    EXPECT_THAT(text, HasSubstr(name + "_count 20\n"));
}

TEST(metrics_text_test, labels_are_escaped) {
    EXPECT_THAT(metrics_text(testing::sample_figures()),
                HasSubstr(R"(site_body_bytes_total{site="hostile\"\\\n?"} 0)"));
}

TEST(metrics_text_test, equal_servers_and_backends_are_one_sample) {
    auto figures = testing::sample_figures();
    figures.servers.push_back(figures.servers[0]);
    figures.upstreams.push_back(figures.upstreams[0]);

    const auto text = metrics_text(figures);

    EXPECT_THAT(text, HasSubstr(R"(accepted_total{address="127.0.0.1:80"} 20)"));
    EXPECT_THAT(text, HasSubstr(R"(backend="127.0.0.1:9000"} 40)"));
}

TEST(metrics_text_test, what_is_not_there_has_no_metric) {
    EXPECT_THAT(metrics_text({}), Not(HasSubstr("simplenet_httpd_backend")));
    EXPECT_THAT(metrics_text({}), Not(HasSubstr("simplenet_httpd_certificate")));
}

} // namespace
} // namespace httpd
