// Faults in every call, completion and allocation of a request to a FastCGI backend: connecting,
// spooling a body, sending it, and reading an answer with messages.

#include "http/fastcgi/fastcgi_exchange.hpp"
#include "http/gateway/spooled_body.hpp"
#include "responder.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/or_return.hpp>
#include <simplenet/http.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::fault_scenario;
using namespace http::detail;

/// A body of a few bytes.
class small_source {
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

class asking_a_backend : public fault_scenario {
    static task<result<>> answer(tcp_listener& listener) {
        auto stream = co_await listener.accept();
        if (!stream) co_return fail(stream);
        listener.close(); // a request that is repeated is refused
        std::string text;
        std::array<char, 512> buffer;
        while (!text.ends_with(testing::record(5, ""))) {
            const auto count = co_await stream->read_some(mutable_buffer{buffer});
            if (!count) co_return fail(count);
            text.append(buffer.data(), *count);
        }
        const std::string bytes =
            testing::err("a message\n") + testing::answer_of("Status: 201\n\nthe text");
        const auto sent = co_await async_write_all(*stream, bytes);
        if (!sent) co_return fail(sent);
        co_return result<>{};
    }
    task<result<>> ask(std::string address) {
        const std::array backends{http::backend{address}};
        const auto set = std::make_shared<const backend_set>(backends);
        const fastcgi_settings settings{{.backends = backends}, "/app"};
        backend_connections connections{set, {}};
        std::chrono::nanoseconds wait = std::chrono::seconds{10};
        backend_marks tried;
        backend_lease lease = *set->pick(tried);
        small_source source;
        spooled_body body{"/nowhere"};
        const auto filled = co_await body.fill(source);
        if (!filled) co_return filled;
        auto connection = co_await connections.borrow(lease, {}, wait);
        if (!connection) co_return fail(connection);
        const std::string front{fastcgi::begin_request(true).data(), 16};
        request_sender sender{front, body, body.size(), std::chrono::hours{1}};
        message_lines messages{&asking_a_backend::take, this};
        fastcgi_exchange exchange{settings, connections, lease, *std::move(connection),
                                  sender,   messages};
        const auto opened = co_await exchange.open();
        if (!opened) co_return opened;
        got_ += std::to_string(exchange.head().status()) + ' ';
        std::array<char, 5> buffer;
        for (;;) {
            const auto count = co_await exchange.read_some(mutable_buffer{buffer});
            if (!count && count.error() == errc::end_of_stream) co_return result<>{};
            if (!count) co_return fail(count);
            got_.append(buffer.data(), *count);
        }
    }
    static void take(const http::gateway_report& what, void* context) {
        static_cast<asking_a_backend*>(context)->got_ += what.text;
    }
    task<result<std::string>> play() override {
        auto listener = co_await or_return(tcp_listener::bind(endpoint::loopback(0)));
        const auto at = co_await or_return(listener.local_endpoint());
        const std::string address = "127.0.0.1:" + std::to_string(at.port());
        co_await or_return(co_await gather(answer(listener), ask(address)));
        co_return got_;
    }
    std::string got_;
};

class fastcgi_faults_test : public testing::fail_everywhere_test {};

TEST_P(fastcgi_faults_test, a_body_and_an_answer_with_messages) {
    fail_everywhere<asking_a_backend>();
}

INSTANTIATE_TEST_SUITE_P(backends, fastcgi_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
