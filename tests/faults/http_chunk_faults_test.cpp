// Faults of an answer in chunks, see http_faults.hpp.

#include "faults/http_faults.hpp"

#include <string>

namespace simplenet::v0 {
namespace {

using testing::serving_http;

class http_chunk_faults_test : public testing::http_server_faults_test {};

class asking_for_chunks : public serving_http {
    task<result<std::string>> talk(endpoint at) override {
        auto asking = ask(at, "GET /stream HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        std::string all = co_await or_return(co_await std::move(asking));
        const std::string chunks = co_await or_return(take_body(all));
        co_return std::to_string(chunks.size()) + " bytes in chunks ";
    }
};
TEST_P(http_chunk_faults_test, an_answer_in_chunks) {
    fail_everywhere<asking_for_chunks>();
}

INSTANTIATE_TEST_SUITE_P(backends, http_chunk_faults_test, testing::real_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
