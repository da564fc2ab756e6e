// The code of docs/usage/udp.md.

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <vector>

using namespace simplenet;
using namespace std::chrono_literals;

//! [ask]
// One question and one answer. Datagrams get lost, so up to three tries.
task<result<std::string>> ask(endpoint server, std::string question) {
    auto socket = udp_socket::connect(server); // receives from this peer only
    if (!socket) co_return fail(socket);
    std::array<char, 1500> buffer;
    result<udp_datagram> answer;
    for (int tries = 0; tries < 3; ++tries) {
        // May report that nobody received the previous question: then this one is not sent.
        if (auto sent = co_await socket->send(question); !sent) co_return fail(sent);
        answer = co_await with_timeout(socket->receive(buffer), 500ms);
        if (answer) co_return std::string{buffer.data(), answer->size};
        if (answer.error() != errc::deadline_exceeded) break; // refused or stopped
    }
    co_return fail(answer);
}
//! [ask]

//! [batch]
// Asks every member at once and counts the answers that arrive within a second.
task<result<std::size_t>> roll_call(udp_socket& socket, std::span<const endpoint> members) {
    std::vector<outgoing_datagram> calls;
    for (const endpoint& each : members)
        calls.push_back({.data = "here?", .to = each});
    const auto sent = co_await socket.send_batch(calls);
    // A failure reports how many were sent, which tells which one was not.
    if (!sent) co_return fail(sent);

    std::array<std::array<std::byte, 64>, 16> memory;
    std::array<incoming_datagram, 16> answers;
    for (std::size_t at = 0; at < answers.size(); ++at)
        answers[at].into = memory[at];
    const auto deadline = std::chrono::steady_clock::now() + 1s;
    std::size_t present = 0;
    while (present < members.size()) {
        const auto count = co_await with_deadline(socket.receive_batch(answers), deadline);
        if (!count) break;
        present += *count; // answers[0] to answers[*count - 1]
    }
    co_return present;
}
//! [batch]

//! [segmented]
// Many datagrams of one size to one peer: one system call, and the kernel splits the buffer.
task<transfer_result> send_file(udp_socket& socket, endpoint to, std::span<const std::byte> file) {
    co_return co_await socket.send_segmented(file, 1200, to);
}

// At the other end one receive returns many of them.
task<result<>> receive_file(udp_socket& socket, std::vector<std::string>& pieces) {
    if (auto set = socket.enable_gro(); !set) co_return set;
    std::vector<std::byte> buffer(65'536);
    while (true) {
        const auto got = co_await socket.receive_from(buffer);
        if (!got) co_return fail(got);
        datagrams_of(buffer, *got, [&](mutable_buffer each) {
            pieces.emplace_back(reinterpret_cast<const char*>(each.data()), each.size());
        });
    }
}
//! [segmented]

//! [errors]
// An unconnected socket is not told that nobody listens, unless it asks to be.
task<result<>> send_and_watch(udp_socket& socket, std::span<const endpoint> members) {
    if (auto set = socket.set_receive_errors(true); !set) co_return set;
    for (const endpoint& each : members) {
        const auto sent = co_await socket.send_to("news", each);
        if (sent) continue;
        // This datagram was not sent: the error is about an earlier one. Which?
        while (const auto told = socket.take_error()) {
            if (told->code == std::errc::connection_refused) {
                // nobody listens at told->to
            }
        }
    }
    co_return {};
}
//! [errors]

//! [group]
// Receives what is sent to a multicast group. With several interfaces, choose one.
result<udp_socket> listen_to(const endpoint& group, unsigned interface) {
    const auto any = group.address().is_v4() ? ip_address::any_v4() : ip_address::any_v6();
    auto socket = udp_socket::bind({any, group.port()}, {.reuse_address = true});
    if (!socket) return socket;
    if (auto joined = socket->join_group(group.address(), interface); !joined) return fail(joined);
    return socket;
}
//! [group]

//! [local]
// Sends to a daemon on this machine by the path of its socket.
task<result<>> log_line(std::string_view line) {
    const auto daemon = local_endpoint::parse("/dev/log");
    if (!daemon) co_return fail(daemon);
    auto socket = local_datagram::connect(*daemon);
    if (!socket) co_return fail(socket);
    if (auto sent = co_await socket->send(line); !sent) co_return fail(sent);
    co_return {};
}
//! [local]
