// Our side of the scenarios that are not echo: a source, a server that answers through a
// queued_writer, and one that answers HTTP requests with a file. The counterpart of the first two
// is asio_server.cpp, of the third web_servers.py.
//
//   --file BYTES   the size of the file
//   --answer WAY   how head and file are sent: joined by async_send_file() or apart

#include "server_options.hpp"

#include <simplenet/simplenet.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

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

struct file_answer {
    unique_fd file;
    std::uint64_t size = 0;
    std::string head;
    bool joined = true;

    file_answer(std::uint64_t size, bool joined)
        : size(size)
        , joined(joined) {
        file.reset(::memfd_create("answer", MFD_CLOEXEC));
        if (!file || ::ftruncate(file.get(), static_cast<off_t>(size)) != 0) {
            std::perror("memfd_create");
            std::exit(1);
        }
        head = "HTTP/1.1 200 OK\r\nServer: bench\r\nDate: Tue, 24 Nov 2026 10:00:00 GMT\r\n"
               "Content-Type: text/html\r\nLast-Modified: Tue, 24 Nov 2026 09:00:00 GMT\r\n"
               "Connection: keep-alive\r\nETag: \"6923b2f0-264\"\r\nAccept-Ranges: bytes\r\n"
               "Content-Length: " +
               std::to_string(size) + "\r\n\r\n";
    }
};

task<> answer_files(tcp_stream stream, const file_answer& answer) {
    std::string request;
    while (auto size = co_await async_read_until(stream, request, "\r\n\r\n", 8192)) {
        request.erase(0, *size);
        if (!answer.joined && !co_await async_write_all(stream, answer.head)) co_return;
        const send_file_options around{.head = answer.joined ? answer.head : const_buffer{}};
        if (!co_await async_send_file(stream, answer.file.get(), 0, answer.size, around)) co_return;
    }
}

task<> accept_all(tcp_listener listener, bench::server_options how, const file_answer& answer) {
    while (auto stream = co_await listener.accept()) {
        static_cast<void>(stream->set_no_delay(true));
        if (how.mode == "source") {
            spawn(source(*std::move(stream), how.block)).detach();
        } else if (how.mode == "file") {
            spawn(answer_files(*std::move(stream), answer)).detach();
        } else {
            spawn(queue(*std::move(stream), how.buffer, how.copies)).detach();
        }
    }
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto wanted = given.text("backend", "epoll");
    const auto how = bench::server_options::read(given, wanted, {"source", "queue", "file"});
    const auto way = given.text("answer", "joined");
    if (way != "joined" && way != "apart") bench::server_options::unknown("answer", way);
    const file_answer answer{given.number("file", 612), way == "joined"};
    given.done();

    auto loop =
        event_loop::create({.backend = wanted == "epoll" ? backend::epoll : backend::io_uring});
    auto listener = tcp_listener::bind(endpoint::loopback(how.port), {.backlog = 4096});
    if (!loop || !listener) {
        std::fprintf(stderr, "%s\n", (loop ? listener.error() : loop.error()).message().c_str());
        return 1;
    }
    bench::print_port(listener->local_endpoint()->port());
    loop->spawn(accept_all(*std::move(listener), how, answer)).detach();
    loop->run();
}
