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

/// The reset waits until the first answer is received. Only allocations fail: a socket whose
/// SO_LINGER cannot be set sends no reset.
class asking_for_a_broken_one : public serving_http {
    task<result<std::string>> talk(endpoint at) override {
        auto stream = co_await or_return(co_await async_connect(at));
        const std::string_view both =
            "GET /file HTTP/1.1\r\nHost: h\r\n\r\nGET /broken HTTP/1.0\r\n\r\n";
        co_await or_return(co_await async_write_all(stream, both));
        std::string all;
        const auto ended = co_await testing::read_all(stream, all);
        is_reset_ = !ended;
        if (is_reset_) {
            const auto body = take_body(all); // of the first
            if (!body) co_return fail(body);
            co_return *body == streamed_text() ? "the first, then a reset "
                                               : "another, then a reset ";
        }
        const bool is_there = all.find("HTTP/1.1 200", 1) != std::string::npos; // the second
        if (is_there) co_return "it is cut, but looks complete";
        co_return fail(std::errc::connection_aborted); // before it
    }
};
TEST_P(http_until_close_faults_test, a_broken_answer_behind_another) {
    fail_allocations_everywhere<asking_for_a_broken_one>();
}

INSTANTIATE_TEST_SUITE_P(backends, http_until_close_faults_test, testing::real_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
