// Faults of an HTTP server that echoes bodies, see http_faults.hpp.

#include "faults/http_faults.hpp"

#include <string>

namespace simplenet::v0 {
namespace {

using testing::serving_http;

class http_echo_faults_test : public testing::http_server_faults_test {};

class asking_for_echoes : public serving_http {
    task<result<std::string>> talk(endpoint at) override {
        auto asking =
            ask(at, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nfirst"
                    "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
                    "Connection: close\r\n\r\n3\r\nsec\r\n3;e\r\nond\r\n0\r\nT: t\r\n\r\n");
        std::string all = co_await or_return(co_await std::move(asking));
        const std::string first = co_await or_return(take_body(all));
        const std::string second = co_await or_return(take_body(all));
        co_return first + " " + second + " " + all;
    }
};
TEST_P(http_echo_faults_test, echoes) {
    fail_everywhere<asking_for_echoes>();
}

INSTANTIATE_TEST_SUITE_P(backends, http_echo_faults_test, testing::real_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
