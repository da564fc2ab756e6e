// How evenly a tcp_server spreads connections over its loops: opens connections that say nothing,
// and compares the busiest loop with the mean.
//
//   --backend epoll|io_uring   --loops N   --connections N
//   --balance least_connections|round_robin (with a listener for each loop: as the kernel chooses)
//   --accept automatic|single_acceptor
//   --way steady (one after the other)   storm (all connect at once, from four addresses)
//         churn (a storm; then random connections end while others connect, four times as many:
//         the worst moment counts)
//   --repetitions N (each with a new server)   --seed N
//
// Prints the median and the worst of the repetitions: busiest=1.02 worst_busiest=1.03

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

using namespace simplenet;

namespace {

[[noreturn]] void fail_with(const char* what) {
    std::perror(what);
    std::exit(1);
}

task<> wait_for_end(tcp_stream stream) {
    std::array<std::byte, 64> buffer;
    while (co_await stream.read_some(buffer)) {
    }
}

/// Sockets without the library, so that the client neither helps nor disturbs the loops.
class clients {
public:
    explicit clients(std::uint16_t port)
        : port_{port} {}

    /// With `at_once` the handshake goes on after the return.
    void open(std::size_t count, bool at_once) {
        const int flags = SOCK_STREAM | SOCK_CLOEXEC | (at_once ? SOCK_NONBLOCK : 0);
        for (std::size_t each = 0; each < count; ++each) {
            unique_fd socket{::socket(AF_INET, flags, 0)};
            if (!socket) fail_with("socket");
            const std::uint32_t source = at_once ? INADDR_LOOPBACK + next_++ % 4 : INADDR_LOOPBACK;
            const sockaddr_in from = address(source, 0);
            if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) {
                fail_with("bind");
            }
            const sockaddr_in to = address(INADDR_LOOPBACK, port_);
            const int connected =
                ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
            if (connected != 0 && errno != EINPROGRESS) fail_with("connect");
            sockets_.push_back(std::move(socket));
        }
    }

    void close_random(std::size_t count, std::mt19937& random) {
        for (std::size_t each = 0; each < count && !sockets_.empty(); ++each) {
            std::swap(sockets_[random() % sockets_.size()], sockets_.back());
            // With a reset, which uses up no port.
            const linger abort{.l_onoff = 1, .l_linger = 0};
            ::setsockopt(sockets_.back().get(), SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
            sockets_.pop_back();
        }
    }

    [[nodiscard]] std::size_t count() const { return sockets_.size(); }

private:
    static sockaddr_in address(std::uint32_t host, std::uint16_t port) {
        sockaddr_in made{};
        made.sin_family = AF_INET;
        made.sin_addr.s_addr = htonl(host);
        made.sin_port = htons(port);
        return made;
    }

    std::uint16_t port_;
    std::uint32_t next_ = 0;
    std::vector<unique_fd> sockets_;
};

/// Until the server has seen everything that the clients did.
server_statistics settled(const tcp_server& server, std::size_t open, std::uint64_t accepted) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    for (;;) {
        auto now = server.statistics();
        if (now.open == open && now.accepted == accepted) return now;
        if (std::chrono::steady_clock::now() > limit) {
            std::fprintf(stderr, "%zu connections are open instead of %zu\n", now.open, open);
            std::exit(1);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
}

double busiest(const server_statistics& of) {
    const std::size_t most = std::ranges::max(of.open_by_loop);
    return static_cast<double>(most * of.open_by_loop.size()) / static_cast<double>(of.open);
}

double measure(event_loop_group& group, const server_options& options, std::size_t connections,
               std::string_view way, std::mt19937& random) {
    auto server = or_throw(tcp_server::listen(group, endpoint::loopback(0), options));
    or_throw(server.serve(wait_for_end));
    clients load{server.local_endpoint().port()};
    load.open(connections, way != "steady");
    std::uint64_t accepted = connections;
    double worst = busiest(settled(server, connections, accepted));
    if (way == "churn") {
        const std::size_t part = std::max<std::size_t>(connections / 20, 1);
        while (accepted < 5 * connections) {
            load.close_random(part, random);
            load.open(part, true);
            accepted += part;
            worst = std::max(worst, busiest(settled(server, connections, accepted)));
        }
    }
    load.close_random(load.count(), random);
    return worst;
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    loop_options loop;
    loop.backend = given.text("backend", "epoll") == "epoll" ? backend::epoll : backend::io_uring;
    const auto loops = static_cast<unsigned>(given.number("loops", 2));
    const std::size_t connections = given.number("connections", 1000);
    server_options options{.listen = {.backlog = 4096}};
    if (given.text("balance", "least_connections") == "round_robin") {
        options.balance = balance::round_robin;
    }
    if (given.text("accept", "automatic") == "single_acceptor") {
        options.accept = accept_mode::single_acceptor;
    }
    const std::string_view way = given.text("way", "steady");
    const std::size_t repetitions = std::max(given.number("repetitions", 10), 1UL);
    std::mt19937 random{static_cast<std::mt19937::result_type>(given.number("seed", 1))};
    given.done();

    auto group = or_throw(event_loop_group::create({.loops = loops, .loop = loop}));
    std::vector<double> found;
    for (std::size_t each = 0; each < repetitions; ++each)
        found.push_back(measure(group, options, connections, way, random));
    std::ranges::sort(found);
    std::printf("busiest=%.4f worst_busiest=%.4f\n", found[found.size() / 2], found.back());
}
