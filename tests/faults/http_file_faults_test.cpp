// Faults of a file as an answer, see http_faults.hpp.

#include "faults/http_faults.hpp"

#include <string>

namespace simplenet::v0 {
namespace {

using testing::serving_http;
using testing::streamed_text;

class http_file_faults_test : public testing::http_server_faults_test {};

class asking_for_a_file : public serving_http {
    task<result<std::string>> talk(endpoint at) override {
        auto asking = ask(at, "GET /file HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        std::string all = co_await or_return(co_await std::move(asking));
        const std::string body = co_await or_return(take_body(all));
        co_return body == streamed_text() ? "the file " : "another file";
    }
};
TEST_P(http_file_faults_test, a_file) {
    fail_everywhere<asking_for_a_file>();
}

INSTANTIATE_TEST_SUITE_P(backends, http_file_faults_test, testing::real_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
