// Faults in every call, completion and allocation of a client: connecting, an upload, a redirect,
// reuse, and a compressed answer.

#include "compressed.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/or_return.hpp>
#include <simplenet/http.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::fault_scenario;

/// Reads until `end`.
task<result<>> read_to(tcp_stream& from, std::string_view end) {
    std::string text;
    std::array<char, 512> buffer;
    while (!text.ends_with(end)) {
        const auto count = co_await from.read_some(mutable_buffer{buffer});
        if (!count) co_return fail(count);
        text.append(buffer.data(), *count);
    }
    co_return result<>{};
}

/// A body of three bytes.
class short_source {
public:
    task<result<std::size_t>> read_some(mutable_buffer into) {
        if (left_ == 0) co_return fail(errc::end_of_stream);
        --left_;
        into.data()[0] = std::byte{'x'};
        co_return std::size_t{1};
    }

private:
    int left_ = 3;
};

class posting_and_getting : public fault_scenario {
    task<result<>> serve(tcp_listener& listener) {
        auto stream = co_await listener.accept();
        if (!stream) co_return fail(stream);
        listener.close(); // a request that is repeated is refused
        const auto posted = co_await read_to(*stream, "0\r\n\r\n");
        if (!posted) co_return posted;
        const std::string redirect = "HTTP/1.1 303 There\r\nLocation: /there\r\n"
                                     "Content-Length: 3\r\n\r\nout";
        const auto sent = co_await async_write_all(*stream, redirect);
        if (!sent) co_return fail(sent);
        const auto asked = co_await read_to(*stream, "\r\n\r\n");
        if (!asked) co_return asked;
        const std::string answer = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
                                   "Transfer-Encoding: chunked\r\n\r\n" +
                                   chunk(testing::gzipped("the text")) + "0\r\nDigest: 1\r\n\r\n";
        const auto answered = co_await async_write_all(*stream, answer);
        if (!answered) co_return fail(answered);
        co_return result<>{};
    }
    static std::string chunk(const std::string& data) {
        constexpr std::string_view digits = "0123456789abcdef";
        return std::string{digits[data.size() / 16], digits[data.size() % 16]} + "\r\n" + data +
               "\r\n";
    }
    task<result<>> ask(std::string url) {
        http::client web{{.redirects = 1}};
        short_source source;
        auto answer = co_await web.send({.method = "POST", .url = url, .stream = source});
        if (!answer) co_return fail(answer);
        auto body = co_await answer->read_all(100);
        if (!body) co_return fail(body);
        got_ = *body + ", " + std::string{answer->trailers().find("Digest").value_or("none")};
        co_return result<>{};
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        const std::string url = "http://127.0.0.1:" + std::to_string(at.port()) + "/";
        co_await or_return(co_await gather(serve(listener), ask(url)));
        co_return got_;
    }
    std::string got_;
};

class http_client_faults_test : public testing::fail_everywhere_test {};

TEST_P(http_client_faults_test, an_upload_a_redirect_and_a_compressed_answer) {
    fail_everywhere<posting_and_getting>();
}

INSTANTIATE_TEST_SUITE_P(backends, http_client_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
