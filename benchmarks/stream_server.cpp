// Our side of the scenarios that are not echo: a source, and a server that answers through a
// queued_writer. The counterpart is asio_server.cpp.

#include "server_options.hpp"

#include <simplenet/simplenet.hpp>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace simplenet;

namespace {

task<> source(tcp_stream stream, std::size_t size) {
    const std::vector<std::byte> block(size);
    while (co_await async_write_all(stream, block)) {
    }
}

task<> queue(tcp_stream stream, std::size_t size, std::size_t copies) {
    const auto buffer = std::make_unique<char[]>(size);
    queued_writer<tcp_stream> writer{std::move(stream)};
    while (auto count = co_await writer.stream().read_some(
               {reinterpret_cast<std::byte*>(buffer.get()), size})) {
        for (std::size_t at = 0; at < copies; ++at)
            if (!writer.enqueue(std::string(buffer.get(), *count))) co_return;
    }
}

task<> accept_all(tcp_listener listener, bench::server_options how) {
    while (auto stream = co_await listener.accept()) {
        static_cast<void>(stream->set_no_delay(true));
        if (how.mode == "source") {
            spawn(source(*std::move(stream), how.block)).detach();
        } else {
            spawn(queue(*std::move(stream), how.buffer, how.copies)).detach();
        }
    }
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto wanted = given.text("backend", "epoll");
    const auto how = bench::server_options::read(given, wanted, {"source", "queue"});
    given.done();

    auto loop =
        event_loop::create({.backend = wanted == "epoll" ? backend::epoll : backend::io_uring});
    auto listener = tcp_listener::bind(endpoint::loopback(how.port), {.backlog = 4096});
    if (!loop || !listener) {
        std::fprintf(stderr, "%s\n", (loop ? listener.error() : loop.error()).message().c_str());
        return 1;
    }
    bench::print_port(listener->local_endpoint()->port());
    loop->spawn(accept_all(*std::move(listener), how)).detach();
    loop->run();
}
