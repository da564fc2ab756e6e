// Our side of the TLS scenarios; tls_asio_server.cpp is its counterpart. The options are those of
// tls_options.hpp; --read-mode readable: a connection that waits has no buffer.

#include "tls_options.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace simplenet;

namespace {

using client = tls::stream<tcp_stream>;

task<> echo(client stream, std::size_t size) {
    const auto buffer = std::make_unique<std::byte[]>(size);
    while (auto count = co_await stream.read_some({buffer.get(), size})) {
        if (!co_await async_write_all(stream, const_buffer{buffer.get(), *count})) break;
    }
}

task<> echo_borrowing(client stream, std::size_t size) {
    while (auto ready = co_await stream.readable()) {
        const scratch buffer = scratch::borrow(size);
        const auto count = co_await stream.read_some(buffer);
        if (!count) break;
        if (!co_await async_write_all(stream, const_buffer{buffer.data(), *count})) break;
    }
}

task<> source(client stream, std::size_t size) {
    const std::vector<std::byte> block(size);
    while (co_await async_write_all(stream, block)) {
    }
}

task<> sink(client stream, std::size_t size) {
    const auto buffer = std::make_unique<std::byte[]>(size);
    std::size_t unanswered = 0;
    while (auto count = co_await stream.read_some({buffer.get(), size})) {
        for (unanswered += *count; unanswered >= bench::sink_unit; unanswered -= bench::sink_unit)
            if (!co_await async_write_all(stream, "!")) co_return;
    }
}

task<> serve(client stream, const bench::server_options& how, bool borrows) {
    if (how.mode == "source") return source(std::move(stream), how.block);
    if (how.mode == "sink") return sink(std::move(stream), how.buffer);
    return borrows ? echo_borrowing(std::move(stream), how.buffer)
                   : echo(std::move(stream), how.buffer);
}

task<> accept_all(tcp_listener listener, const tls::context& with, const bench::server_options& how,
                  bool borrows) {
    while (auto stream = co_await listener.accept()) {
        static_cast<void>(stream->set_no_delay(true));
        spawn(serve(client{*std::move(stream), with}, how, borrows)).detach();
    }
}

int failed(std::string_view what) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(what.size()), what.data());
    return 1;
}

int serve_on_loops(const bench::tls_options& given, const loop_options& loop,
                   const tls::context& with, bool borrows) {
    auto group = event_loop_group::create(
        {.loops = static_cast<unsigned>(given.loops), .pin = given.pin, .loop = loop});
    if (!group) return failed(group.error().message());
    auto server = tls::server::listen(*group, endpoint::loopback(given.common.port), with);
    if (!server) return failed(server.error().message());
    const auto serves = server->serve([&given, borrows](client stream) {
        return serve(std::move(stream), given.common, borrows);
    });
    if (!serves) return failed(serves.error().message());
    bench::print_port(server->local_endpoint().port());
    group->join(); // until it is killed
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments words{argc, argv};
    const auto wanted = words.text("backend", "epoll");
    const bool borrows = words.text("read-mode", "read_some") == "readable";
    const auto given = bench::tls_options::read(words, wanted);
    const loop_options options{.backend = wanted == "epoll" ? backend::epoll : backend::io_uring};
    std::string detail;
    const auto context = tls::context::server({.certificate_chain_file = given.certificate,
                                               .private_key_file = given.key,
                                               .minimum = tls::version::tls_1_3},
                                              &detail);
    if (!context) return failed(detail);
    if (given.loops != 0) return serve_on_loops(given, options, *context, borrows);

    auto loop = event_loop::create(options);
    auto listener = tcp_listener::bind(endpoint::loopback(given.common.port), {.backlog = 4096});
    if (!loop || !listener) return failed((loop ? listener.error() : loop.error()).message());
    bench::print_port(listener->local_endpoint()->port());
    loop->spawn(accept_all(*std::move(listener), *context, given.common, borrows)).detach();
    loop->run();
}
