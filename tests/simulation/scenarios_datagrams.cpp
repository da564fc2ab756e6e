// UDP datagrams, which the network may lose, and local ones, which it may not.

#include "simulation/scenario_parts.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::simulation {

namespace {

using namespace std::chrono_literals;

// --- datagrams

task<> udp_receiver(world& in, udp_socket& socket, std::vector<std::uint8_t>& seen) {
    std::vector<std::byte> bytes(2000);
    for (;;) {
        const auto got =
            co_await with_timeout(socket.receive_from(mutable_buffer{bytes}), in.some_time(3ms));
        if (!got) {
            if (got.error() == errc::deadline_exceeded) {
                expect_nothing_there(in, socket, got.error());
                continue;
            }
            co_return;
        }
        in.expect(got->size >= 4 && !got->truncated, "a datagram arrives completely");
        std::uint32_t number = 0;
        std::memcpy(&number, bytes.data(), sizeof number);
        const bool known = number < seen.size();
        in.expect(known, "a datagram is one that was sent");
        if (!known) co_return;
        ++seen[number];
        in.expect(seen[number] <= 2, "only the network duplicates datagrams");
        for (std::size_t at = 4; at < got->size; ++at) {
            if (bytes[at] != flow::at(number, at)) {
                in.expect(false, "a datagram is what was sent");
                co_return;
            }
        }
    }
}

task<> datagrams(world& in) {
    auto receiver = or_throw(udp_socket::bind(server_address()));
    auto sender = or_throw(udp_socket::bind(or_throw(endpoint::parse("10.0.0.1:0"))));
    std::vector<std::uint8_t> seen(in.random.size_up_to(200));
    auto receiving = spawn(udp_receiver(in, receiver, seen));
    for (std::uint32_t number = 0; number < seen.size(); ++number) {
        std::vector<std::byte> bytes(4 + in.random.below(1500));
        for (std::size_t at = 0; at < bytes.size(); ++at)
            bytes[at] = flow::at(number, at);
        std::memcpy(bytes.data(), &number, sizeof number);
        const auto sent = co_await sender.send_to(const_buffer{bytes}, server_address());
        in.expect(sent.has_value(), "a datagram can be sent");
        if (in.random.chance(200)) static_cast<void>(co_await async_sleep(in.some_time(1ms)));
    }
    static_cast<void>(co_await async_sleep(200ms));
    receiving.request_stop();
    co_await receiving;
    if (in.net.like().lost == 0) {
        for (const auto each : seen)
            in.expect(each != 0, "datagrams that the network does not lose arrive");
    }
}

task<> local_sender(world& in, local_datagram& from, std::uint32_t count) {
    for (std::uint32_t number = 0; number < count; ++number) {
        std::array<std::byte, 8> bytes{};
        std::memcpy(bytes.data(), &number, sizeof number);
        const auto sent = co_await with_timeout(from.send(const_buffer{bytes}), in.some_time(3ms));
        if (sent) continue;
        in.expect(sent.error() == errc::deadline_exceeded,
                  "a local datagram eventually finds room");
        --number; // try again
    }
}

task<> local_datagrams(world& in) {
    auto ends = or_throw(local_datagram::pair());
    const auto count = static_cast<std::uint32_t>(in.random.size_up_to(200));
    auto sending = spawn(local_sender(in, ends.first, count));
    std::array<std::byte, 100> bytes{};
    for (std::uint32_t expected = 0; expected < count;) {
        if (in.random.chance(100)) static_cast<void>(co_await async_sleep(in.some_time(2ms)));
        const auto got =
            co_await with_timeout(ends.second.receive(mutable_buffer{bytes}), in.some_time(5ms));
        if (!got) {
            in.expect(got.error() == errc::deadline_exceeded, "a local datagram arrives");
            expect_nothing_there(in, ends.second, got.error());
            continue;
        }
        std::uint32_t number = 0;
        std::memcpy(&number, bytes.data(), sizeof number);
        in.expect(got->size == 8 && number == expected, "all local datagrams arrive, and in order");
        if (!in.failure.empty()) break;
        ++expected;
    }
    sending.request_stop();
    co_await sending;
}

constexpr std::array<scenario, 2> datagram_table{{
    {"datagrams", datagrams},
    {"local_datagrams", local_datagrams},
}};

} // namespace

std::span<const scenario> datagram_scenarios() noexcept {
    return datagram_table;
}

} // namespace simplenet::v0::simulation
