// Serves one file over HTTP to every client, whatever it requests.
// Lesson: with async_send_file() the kernel moves the bytes, and a big file starves nobody.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace simplenet;
using namespace std::chrono_literals;

/// Reads up to the empty line that ends a request. The content of the request does not matter here.
task<result<>> read_request(tcp_stream& peer) {
    std::array<char, 1024> some;
    std::string head;
    while (head.find("\r\n\r\n") == std::string::npos) {
        if (head.size() > 8192) co_return fail(errc::limit_exceeded);
        const auto count = co_await peer.read_some(some);
        if (!count) co_return fail(count);
        head.append(some.data(), *count);
    }
    co_return result<>{};
}

//! [send]
// file: opened once for all clients; sending neither uses nor moves its offset.
task<result<>> answer(tcp_stream& peer, int file) {
    if (auto asked = co_await with_timeout(read_request(peer), 10s); !asked) co_return asked;

    struct stat now{};
    if (::fstat(file, &now) != 0) co_return fail(std::errc::io_error);
    const auto size = static_cast<std::uint64_t>(now.st_size);
    const std::string head =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(size) +
        "\r\n\r\n";

    const transfer_result sent = co_await async_send_file(peer, file, 0, size, {.head = head});
    if (!sent) co_return fail(sent); // sent.error().transferred bytes were sent
    // Fewer: the file was truncated meanwhile. The client sees an answer that ends too early.
    if (*sent != head.size() + size) co_return fail(std::errc::io_error);
    co_return result<>{};
}
//! [send]

/// Reads to the end of the stream and ignores the content.
task<> drop_the_rest(tcp_stream& peer) {
    while (const auto bytes = co_await peer.receive()) {
    }
}

task<> serve_one(tcp_stream peer, int file) {
    if (const auto done = co_await answer(peer, file); !done) {
        std::cerr << "a client was not served: " << done.error().message() << '\n';
        co_return;
    }
    // Reads whatever else the client sends, such as the body of a POST, for a while: closing with
    // unread input sends a reset, which can cost the client the end of the file.
    static_cast<void>(peer.shutdown_write());
    static_cast<void>(co_await with_timeout(drop_the_rest(peer), 2s));
}

task<result<>> serve(tcp_listener listener, int file) {
    example::announce(listener);
    co_return co_await with_group([&](task_group& clients) -> task<result<>> {
        for (;;) {
            auto peer = co_await listener.accept();
            if (!peer) co_return fail(peer);
            clients.spawn(serve_one(*std::move(peer), file));
        }
    });
}

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "file_send FILE [--port N] [--backend automatic|epoll|io_uring]"};
    const auto port = given.port(given.option("--port").value_or("8000"), 0);
    const auto backend = given.backend();
    const std::string path{given.next("FILE")};
    given.finish();

    // Nonblocking: open(2) would block on a FIFO without a writer. For files it makes no
    // difference.
    const unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    struct stat about{};
    if (!file || ::fstat(file.get(), &about) != 0)
        return example::failed(path, {errno, std::system_category()});
    if (!S_ISREG(about.st_mode)) { // nothing else has a size and offsets
        std::cerr << path << ": not a regular file\n";
        return EXIT_FAILURE;
    }
    auto listener = tcp_listener::bind(endpoint::loopback(port));
    if (!listener) return example::failed("cannot listen", listener.error());
    try {
        const auto ended = run(serve(*std::move(listener), file.get()), {.backend = backend});
        if (ended || ended.error() == std::errc::operation_canceled) return 0; // a normal end
        return example::failed("cannot accept connections", ended.error());
    } catch (const std::system_error& error) {
        return example::failed("cannot make an event loop", error.code());
    }
}
