// publish SUBSCRIBERS MESSAGES_A_TURN ROUNDS BACKEND: one publisher sends 64-byte messages to all
// subscribers, some in each turn of the loop. Measures the publisher's CPU time per message and
// subscriber in three ways: queued_writer, a separate write for each message, and the mixture (the
// first one at once, the rest queued).

#include <simplenet/simplenet.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace simplenet;

namespace {

constexpr std::string_view message{
    "0123456789012345678901234567890123456789012345678901234567890123", 64};

/// Reads and discards everything, in a separate process.
void subscribe(std::uint16_t port, int count) {
    const int watched = ::epoll_create1(0);
    std::vector<blocking::tcp_stream> streams;
    for (int made = 0; made < count; ++made) {
        streams.push_back(or_throw(blocking::tcp_stream::connect(endpoint::loopback(port))));
        epoll_event event{.events = EPOLLIN, .data = {.fd = streams.back().native_handle()}};
        ::epoll_ctl(watched, EPOLL_CTL_ADD, event.data.fd, &event);
    }
    std::array<epoll_event, 256> events;
    for (int open = count; open != 0;) {
        const int ready = ::epoll_wait(watched, events.data(), 256, -1);
        for (int at = 0; at < ready; ++at) {
            const int fd = events[static_cast<std::size_t>(at)].data.fd;
            if (::recv(fd, nullptr, 1U << 20U, MSG_TRUNC) > 0) continue;
            ::epoll_ctl(watched, EPOLL_CTL_DEL, fd, nullptr);
            --open;
        }
    }
}

double cpu_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

enum class way { queued, written, mixed };

task<> publish(std::vector<queued_writer<tcp_stream>>& to, way how, int a_turn, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        for (int each = 0; each < a_turn; ++each) {
            for (auto& subscriber : to) {
                if (how == way::written || (how == way::mixed && each == 0)) {
                    or_throw(co_await async_write_all(subscriber.stream(), message));
                } else {
                    or_throw(subscriber.enqueue(message));
                }
            }
        }
        // Ends the turn: the enqueued bytes are sent.
        for (auto& subscriber : to)
            or_throw(co_await subscriber.flush());
    }
}

task<> measure(int subscribers, int a_turn, int rounds) {
    auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
    const auto port = or_throw(listener.local_endpoint()).port();
    if (::fork() == 0) {
        subscribe(port, subscribers);
        std::_Exit(0);
    }
    std::vector<queued_writer<tcp_stream>> to;
    for (int made = 0; made < subscribers; ++made) {
        to.emplace_back(or_throw(co_await listener.accept()));
        or_throw(to.back().stream().set_no_delay(true));
    }
    co_await publish(to, way::queued, a_turn, rounds / 10);
    for (const auto how :
         {way::queued, way::written, way::mixed, way::queued, way::written, way::mixed}) {
        const double before = cpu_seconds();
        co_await publish(to, how, a_turn, rounds);
        const double each = (cpu_seconds() - before) / rounds / a_turn / subscribers;
        std::printf("%s %.0f ns  ",
                    how == way::queued    ? "queued"
                    : how == way::written ? "written"
                                          : "mixed",
                    each * 1e9);
    }
    std::printf("\n");
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    const backend which = std::string_view{argv[4]} == "epoll" ? backend::epoll : backend::io_uring;
    run(measure(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3])), {.backend = which});
    ::wait(nullptr);
}
