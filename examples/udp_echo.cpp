// A UDP server: returns every datagram to its sender, from the address it was sent to.
// Lesson: one call receives all available datagrams, another answers them; an empty datagram
// counts.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <span>
#include <string>
#include <system_error>
#include <utility>

using namespace simplenet;

//! [serve]
// Ends when receiving is stopped. Datagrams that arrive while we answer wait in the kernel, which
// drops them when its buffer is full: that is UDP.
task<result<>> serve(udp_socket socket) {
    static std::array<std::array<std::byte, 2048>, 32> memory;
    std::array<incoming_datagram, memory.size()> questions;
    std::array<outgoing_datagram, memory.size()> answers;
    for (std::size_t at = 0; at < memory.size(); ++at)
        questions[at].into = memory[at];

    while (true) {
        auto count = co_await socket.receive_batch(questions); // waits only for the first
        if (!count) co_return fail(count);

        std::size_t ready = 0;
        for (const incoming_datagram& each : std::span{questions}.first(*count)) {
            // Longer than our buffer: better no echo than a partial one.
            if (each.about.truncated) continue;
            answers[ready++] = {
                .data = each.data(), .to = each.about.from, .options = {.from = each.about.to}};
        }
        // Skips answers that cannot be sent (the sender may have forged its address).
        for (auto rest = std::span<const outgoing_datagram>{answers}.first(ready); !rest.empty();) {
            const auto sent = co_await socket.send_batch(rest);
            if (sent) break;
            if (sent.error() == std::errc::operation_canceled) co_return fail(sent);
            rest = rest.subspan(sent.error().transferred + 1);
        }
    }
}
//! [serve]

task<result<>> announce_and_serve(udp_socket socket) {
    example::announce(socket);
    co_return co_await serve(std::move(socket));
}

int main(int argc, char** argv) {
    const auto options = example::read_server_options(argc, argv, "udp_echo");

    auto socket = udp_socket::bind(options.at);
    if (!socket) return example::failed("cannot bind " + options.at.to_string(), socket.error());
    // Fills `about.to`: we are bound to the any-address and answer from the address that received
    // the datagram.
    if (auto set = socket->set_receive_packet_info(true); !set) {
        return example::failed("cannot ask for addresses", set.error());
    }
    try {
        const auto ended =
            run(announce_and_serve(*std::move(socket)), {.backend = options.backend});
        if (!ended && ended.error() != std::errc::operation_canceled) {
            return example::failed("cannot receive", ended.error());
        }
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
