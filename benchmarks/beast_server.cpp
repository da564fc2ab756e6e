// Boost.Beast's side of http_answers: a fixed answer, C++20 coroutines, one io_context(1). The time
// limits are those of Beast's own examples.

#include "arguments.hpp"

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <chrono>
#include <cstdio>
#include <utility>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

namespace {

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

asio::awaitable<void> serve(tcp::socket socket) {
    socket.set_option(tcp::no_delay{true});
    beast::tcp_stream stream{std::move(socket)};
    beast::flat_buffer buffer;
    for (;;) {
        stream.expires_after(std::chrono::seconds{30});
        http::request<http::empty_body> asked;
        auto [error, read] = co_await http::async_read(stream, buffer, asked, as_result);
        if (error) break;
        http::response<http::string_body> answer{http::status::ok, asked.version()};
        answer.set(http::field::content_type, "text/plain");
        answer.keep_alive(asked.keep_alive());
        answer.body() = "Hello, world!\n";
        answer.prepare_payload();
        auto [failed, sent] = co_await http::async_write(stream, answer, as_result);
        if (failed || !answer.keep_alive()) break;
    }
}

asio::awaitable<void> accept(tcp::acceptor& listener) {
    for (;;) {
        auto [error, socket] = co_await listener.async_accept(as_result);
        if (!error)
            asio::co_spawn(listener.get_executor(), serve(std::move(socket)), asio::detached);
    }
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto port = static_cast<unsigned short>(given.number("port", 0));
    given.done();
    asio::io_context context{1};
    tcp::acceptor listener{context, {asio::ip::address_v4::loopback(), port}};
    std::printf("%u\n", static_cast<unsigned>(listener.local_endpoint().port()));
    std::fflush(stdout);
    asio::co_spawn(context, accept(listener), asio::detached);
    context.run();
}
