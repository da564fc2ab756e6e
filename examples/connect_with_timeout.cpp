// Connects to a TCP server within a time limit.
// Lesson: a time limit wraps anything that is awaited, and the error says which limit expired.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <string>

using namespace simplenet;

//! [connect]
task<result<tcp_stream>> connect_within(endpoint to, std::chrono::milliseconds limit) {
    // This works for a read or for a task of a thousand lines too. When the time is up, every
    // operation that waits inside fails with errc::deadline_exceeded and cleans up; only then does
    // this return.
    co_return co_await with_timeout(async_connect(to), limit);
}
//! [connect]

int main(int argc, char** argv) {
    example::arguments given{
        argc, argv,
        "connect_with_timeout ADDRESS PORT [--timeout-ms N] [--backend automatic|epoll|io_uring]"};
    const std::chrono::milliseconds limit{given.number<std::uint32_t>(
        "time-out", given.option("--timeout-ms").value_or("1000"), 1, 3'600'000)};
    const auto backend = given.backend();
    const auto address = given.address(given.next("ADDRESS"));
    const endpoint server{address, given.port(given.next("PORT"))};
    given.finish();

    try {
        const auto stream = run(connect_within(server, limit), {.backend = backend});
        if (stream) {
            // The loop is gone and has closed the stream that it returned.
            std::cout << "connected to " << server.to_string() << '\n';
            return example::printed();
        }
        if (stream.error() == errc::deadline_exceeded) { // our limit ...
            std::cerr << server.to_string() << " did not answer within " << limit.count()
                      << " ms\n";
            return 1;
        }
        // ... or anything else, including the system's own limit (ETIMEDOUT).
        return example::failed("cannot connect to " + server.to_string(), stream.error());
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
