// Sends its input to a TLS server and prints what the server sends, both at once, like
// openssl-s_client(1). The status is 0 if the server has ended the connection in order, with a
// close_notify.
// Lesson: a stream is read and written at once, and each direction ends on its own.

#include "tls_arguments.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include <unistd.h>

using namespace simplenet;
using namespace std::chrono_literals;

namespace {

struct settings {
    example::host_and_port to;
    std::string name; // that the server's certificate must have
    tls::context context;
};

// The descriptors of the program may be files, pipes or terminals. They are shared with other
// programs, so they stay as they are: wait until one is ready, then read or write once.
task<std::size_t> read_input(mutable_buffer into) { // 0: the end
    for (;;) {
        if (!co_await async_wait_readable(STDIN_FILENO)) co_return 0;
        const ssize_t count = ::read(STDIN_FILENO, into.data(), into.size());
        if (count >= 0) co_return static_cast<std::size_t>(count);
        if (errno != EAGAIN && errno != EINTR) co_return 0;
    }
}
task<result<>> print(const_buffer bytes) {
    while (!bytes.empty()) {
        if (auto ready = co_await async_wait_writable(STDOUT_FILENO); !ready) co_return ready;
        // A pipe that is ready takes so many without blocking, see pipe(7).
        const auto some = bytes.first(std::min<std::size_t>(bytes.size(), PIPE_BUF));
        const ssize_t count = ::write(STDOUT_FILENO, some.data(), some.size());
        if (count >= 0) {
            bytes = bytes.subspan(static_cast<std::size_t>(count));
        } else if (errno != EAGAIN && errno != EINTR) {
            co_return fail(std::error_code{errno, std::system_category()});
        }
    }
    co_return result<>{};
}

//! [talk]
task<> send_input(tls::stream<tcp_stream>& server) {
    std::array<char, 16384> buffer;
    while (const auto count = co_await read_input(buffer)) {
        // If it fails, print_answers() will say why.
        if (!co_await async_write_all(server, std::string_view{buffer.data(), count})) co_return;
    }
    std::ignore = co_await server.shutdown_write(); // the server may still answer
}

task<int> print_answers(tls::stream<tcp_stream>& server, const std::string& where) {
    while (true) {
        const auto bytes = co_await server.receive();
        // Only a close_notify is the end of the stream. Without it the error is
        // tls::errc::truncated.
        if (!bytes && bytes.error() == errc::end_of_stream) co_return EXIT_SUCCESS;
        if (!bytes) co_return example::tls_failed(where, bytes.error(), server.error_detail());
        if (auto printed = co_await print(*bytes); !printed)
            co_return example::failed("cannot write the output", printed.error());
    }
}

// Ends with the connection; the input may last longer.
task<int> talk(tls::stream<tcp_stream>& server, const std::string& where) {
    int status = EXIT_FAILURE;
    auto body = [&](task_group& group) -> task<> {
        group.spawn(send_input(server));
        status = co_await print_answers(server, where);
        group.request_stop();
    };
    std::ignore = co_await with_group(body);
    co_return status;
}
//! [talk]

void describe(const tls::connection_info& info, const std::string& where) {
    std::cerr << "connected to " << where << ": " << example::to_string(info.version) << ", "
              << info.cipher;
    if (!info.alpn.empty()) std::cerr << ", " << info.alpn;
    std::cerr << ", certificate of " << info.peer_certificate->subject() << std::endl;
}

//! [connect]
task<int> run_client(const settings& given) {
    const std::string where = given.to.to_string();
    const auto limit = std::chrono::steady_clock::now() + 10s;
    auto connected = co_await with_deadline(
        async_connect(given.to.host, given.to.port, {.no_delay = true}), limit);
    if (!connected) co_return example::failed(where, connected.error());
    // tls::async_connect() would do both, but it verifies the name to which it connects. --name may
    // be another one.
    tls::stream<tcp_stream> server{
        *std::move(connected), given.context, {.server_name = given.name}};
    if (auto shaken = co_await with_deadline(server.handshake(), limit); !shaken)
        co_return example::tls_failed(where, shaken.error(), server.error_detail());
    describe(server.info(), where);

    co_return co_await talk(server, where);
}
//! [connect]

} // namespace

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "tls_client --connect HOST:PORT [--ca FILE] [--name HOST] "
                             "[--alpn a,b] [--cert FILE --key FILE] "
                             "[--backend automatic|epoll|io_uring]"};
    auto to =
        example::read_host_and_port(given, "--connect", given.option("--connect").value_or(""));
    const std::string name{given.option("--name").value_or(to.host)};
    const auto alpn = example::parts_of(given.option("--alpn").value_or(""));
    tls::client_config config;
    config.ca_file = given.option("--ca").value_or(""); // none: the system's
    config.alpn = alpn;
    config.certificate_chain_file = given.option("--cert").value_or("");
    config.private_key_file = given.option("--key").value_or("");
    const auto backend = given.backend();
    given.finish();

    std::string detail;
    auto context = tls::context::client(config, &detail);
    if (!context)
        return example::tls_failed("cannot use the certificates", context.error(), detail);
    const settings chosen{std::move(to), name, *std::move(context)};
    try {
        return run(run_client(chosen), {.backend = backend});
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
