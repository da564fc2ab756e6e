// Faults of an answer that ends with the connection, see http_faults.hpp.

#include "faults/http_faults.hpp"

#include <string>

namespace simplenet::v0 {
namespace {

using testing::serving_http;
using testing::streamed_text;

class http_until_close_faults_test : public testing::http_server_faults_test {};

/// An end of the connection that is no reset is the end of the answer.
class asking_until_close : public serving_http {
    task<result<std::string>> talk(endpoint at) override {
        auto asking = ask(at, "GET /stream HTTP/1.0\r\n\r\n");
        std::string all = co_await or_return(co_await std::move(asking));
        const std::string body = co_await or_return(take_body(all));
        co_return body == streamed_text() ? "all " : "it is cut, but looks complete";
    }
};
TEST_P(http_until_close_faults_test, an_answer_until_the_end_of_the_connection) {
    fail_everywhere<asking_until_close>();
}

INSTANTIATE_TEST_SUITE_P(backends, http_until_close_faults_test, testing::real_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
