// asio::ssl's side of the TLS scenarios: C++20 coroutines, a coroutine for each connection, one
// io_context(1), or with --loops one on each thread. Built twice, for epoll and for io_uring, as
// asio_server.cpp is.

#include "processors.hpp"
#include "tls_options.hpp"

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>

#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;

namespace {

using client = asio::ssl::stream<tcp::socket>;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

awaitable<void> echo(client stream, std::size_t size) {
    auto [failed] = co_await stream.async_handshake(client::server, as_result);
    if (failed) co_return;
    const auto buffer = std::make_unique<std::byte[]>(size);
    while (true) {
        auto [error, count] =
            co_await stream.async_read_some(asio::buffer(buffer.get(), size), as_result);
        if (error) break;
        auto [unsent, sent] =
            co_await asio::async_write(stream, asio::buffer(buffer.get(), count), as_result);
        if (unsent) break;
    }
}

awaitable<void> source(client stream, std::size_t size) {
    auto [failed] = co_await stream.async_handshake(client::server, as_result);
    if (failed) co_return;
    const std::vector<std::byte> block(size);
    while (true) {
        auto [error, sent] = co_await asio::async_write(stream, asio::buffer(block), as_result);
        if (error) break;
    }
}

awaitable<void> sink(client stream, std::size_t size) {
    auto [failed] = co_await stream.async_handshake(client::server, as_result);
    if (failed) co_return;
    const auto buffer = std::make_unique<std::byte[]>(size);
    std::size_t unanswered = 0;
    while (true) {
        auto [error, count] =
            co_await stream.async_read_some(asio::buffer(buffer.get(), size), as_result);
        if (error) break;
        for (unanswered += count; unanswered >= bench::sink_unit; unanswered -= bench::sink_unit) {
            auto [unsent, sent] =
                co_await asio::async_write(stream, asio::buffer("!", 1), as_result);
            if (unsent) co_return;
        }
    }
}

awaitable<void> accept_all(tcp::acceptor listener, asio::ssl::context& with,
                           bench::server_options how) {
    while (true) {
        auto [error, socket] = co_await listener.async_accept(as_result);
        if (error) continue;
        socket.set_option(tcp::no_delay{true});
        client stream{std::move(socket), with};
        const auto executor = listener.get_executor();
        if (how.mode == "source") {
            asio::co_spawn(executor, source(std::move(stream), how.block), asio::detached);
        } else if (how.mode == "sink") {
            asio::co_spawn(executor, sink(std::move(stream), how.buffer), asio::detached);
        } else {
            asio::co_spawn(executor, echo(std::move(stream), how.buffer), asio::detached);
        }
    }
}

using reuse_port = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

tcp::acceptor listen_on(asio::io_context& context, std::uint16_t port, bool shared) {
    tcp::acceptor listener{context};
    listener.open(tcp::v4());
    listener.set_option(tcp::acceptor::reuse_address{true});
    if (shared) listener.set_option(reuse_port{true});
    listener.bind({asio::ip::address_v4::loopback(), port});
    listener.listen(4096);
    return listener;
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments words{argc, argv};
#ifdef BOOST_ASIO_HAS_IO_URING_AS_DEFAULT
    const char* const backend = "io_uring";
#else
    const char* const backend = "epoll";
#endif
    auto given = bench::tls_options::read(words, backend);
    asio::ssl::context with{asio::ssl::context::tlsv13_server};
    with.use_certificate_chain_file(given.certificate);
    with.use_private_key_file(given.key, asio::ssl::context::pem);

    const std::size_t loops = given.loops == 0 ? 1 : given.loops;
    std::vector<std::unique_ptr<asio::io_context>> contexts;
    for (std::size_t each = 0; each < loops; ++each) {
        contexts.push_back(std::make_unique<asio::io_context>(1));
        tcp::acceptor listener = listen_on(*contexts.back(), given.common.port, loops > 1);
        given.common.port = listener.local_endpoint().port();
        asio::co_spawn(*contexts.back(), accept_all(std::move(listener), with, given.common),
                       asio::detached);
    }
    bench::print_port(given.common.port);
    if (given.loops == 0) {
        contexts.front()->run();
        return 0;
    }
    std::vector<std::jthread> threads;
    for (std::size_t each = 0; each < loops; ++each) {
        threads.emplace_back([&context = *contexts[each], each, pin = given.pin] {
            if (pin) bench::pin_to(each);
            context.run();
        });
    }
}
