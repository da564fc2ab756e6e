// Sends messages to an echo server, one after another, and checks every byte of the answers.
// Lesson: a program that is one task: run() creates the loop, runs the task and returns its result.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace simplenet;
using namespace std::chrono_literals;

// If no error code of the system fits, a program defines its own; this example reuses an existing
// one.
constexpr auto wrong_bytes = std::errc::bad_message;

task<result<>> exchange(endpoint server, std::size_t round_trips, std::size_t size) {
    auto stream = co_await with_timeout(async_connect(server, {.no_delay = true}), 5s);
    if (!stream) co_return fail(stream);
    // From here on a server that goes silent is an error, instead of hanging the program.
    stream->set_idle_timeout(10s);

    // Each message is a different window of these bytes, so an echo that is late by one is noticed.
    std::vector<unsigned char> random(size + 256);
    std::ranges::generate(random, std::independent_bits_engine<std::minstd_rand, 8, unsigned>{});
    std::vector<unsigned char> answer(size);

    for (std::size_t trip = 0; trip < round_trips; ++trip) {
        const auto message = std::span{random}.subspan(trip % 256, size);
        // Writing everything before reading is safe only while the message fits the buffers of both
        // kernels, hence the limit in main(). For larger messages do both at once: gather(write,
        // read).
        if (auto sent = co_await async_write_all(*stream, message); !sent) co_return fail(sent);
        if (auto got = co_await async_read_exact(*stream, answer); !got) co_return fail(got);
        if (!std::ranges::equal(message, answer)) co_return fail(wrong_bytes);
    }
    co_return result<>{};
}

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "echo_client ADDRESS PORT [--round-trips N] [--size BYTES] "
                             "[--backend automatic|epoll|io_uring]"};
    const auto round_trips = given.number<std::size_t>(
        "number of round trips", given.option("--round-trips").value_or("1000"), 1, 1'000'000'000);
    const auto size =
        given.number<std::size_t>("size", given.option("--size").value_or("64"), 1, 65536);
    const auto backend = given.backend();
    const auto address = given.address(given.next("ADDRESS"));
    const endpoint server{address, given.port(given.next("PORT"))};
    given.finish();

    try {
        const auto start = std::chrono::steady_clock::now();
        //! [run]
        // Runs exchange() to its end on a new loop, and returns its result.
        const result<> outcome = run(exchange(server, round_trips, size), {.backend = backend});
        if (!outcome) return example::failed("echo of " + server.to_string(), outcome.error());
        //! [run]
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        std::cout << round_trips << " round trips, "
                  << static_cast<std::size_t>(static_cast<double>(round_trips) / took.count())
                  << " per second\n";
        return example::printed();
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
