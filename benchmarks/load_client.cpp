// A neutral load client: raw sockets and epoll, without the library, so that every server has the
// same peer. Echo: each connection keeps `--pipeline` messages in flight. Built twice:
// tls_load_client speaks TLS (channel.hpp).
//
//   --port N  --connections N  --size BYTES  --round-trips N (all together)  --pipeline N
//   --host A.B.C.D  --peer PID (also report its processor time)  --warm-up N
//   --threads N (thread n has its share of connections, on the nth processor of the affinity mask)
//   --churn (a connection for each round trip)
//   --storm (all connections are made at once, make one round trip and end, repeatedly)
//   --copies N (the server sends each message back that many times)
//   --sources N (connect from 127.0.0.1, 127.0.0.2 ...: each has 28 thousand ports)
//   --resume (with --churn: each connection of TLS resumes a session of an earlier one)
//   --drain BYTES (send nothing and read that many bytes, all together)
//   --push BYTES (send that many, all together, `--size` at a time; the server answers each MiB of
//   a connection with one byte)
//   --one-by-one (each connection makes its first round trip before the next one is opened)
//   --hold (keep the connections until standard input ends)  --spin (never sleep)
//   --mark (SIGUSR2 to the peer before and after the measurement, for count_instructions)
//
// Prints one line of name=value pairs; times in nanoseconds.

#include "arguments.hpp"
#include "channel.hpp"
#include "processors.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::exit(1);
}

std::int64_t read_clock(clockid_t clock) {
    timespec at{};
    if (clock_gettime(clock, &at) != 0) return 0;
    return std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}
std::int64_t now() {
    return read_clock(CLOCK_MONOTONIC);
}

/// Latencies in buckets of about 3 % (32 for each power of two): no allocation while measuring.
class histogram {
public:
    void add(std::int64_t ns) {
        const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 1));
        const int magnitude = 63 - __builtin_clzll(value);
        const std::uint64_t part = magnitude < 5 ? value : value >> (magnitude - 5);
        ++buckets_[static_cast<std::size_t>(magnitude) * 32 + (part & 31)];
        ++count_;
        largest_ = std::max(largest_, ns);
    }
    void add(const histogram& other) {
        for (std::size_t at = 0; at < buckets_.size(); ++at)
            buckets_[at] += other.buckets_[at];
        count_ += other.count_;
        largest_ = std::max(largest_, other.largest_);
    }
    [[nodiscard]] std::int64_t percentile(double part) const {
        auto left = static_cast<std::uint64_t>(part * static_cast<double>(count_));
        for (std::size_t at = 0; at < buckets_.size(); ++at) {
            if (buckets_[at] > left) {
                const auto magnitude = at / 32;
                const std::uint64_t low = at & 31;
                if (magnitude < 5) return static_cast<std::int64_t>(low);
                return static_cast<std::int64_t>((32 + low) << (magnitude - 5));
            }
            left -= buckets_[at];
        }
        return largest_;
    }
    [[nodiscard]] std::int64_t largest() const { return largest_; }

private:
    std::array<std::uint64_t, 64 * 32> buckets_{};
    std::uint64_t count_ = 0;
    std::int64_t largest_ = 0;
};

struct settings {
    sockaddr_in to{};
    std::size_t size = 64;
    std::uint64_t pipeline = 1;
    std::uint64_t copies = 1;
    unsigned sources = 1;
    bool churn = false;
    bool resume = false;
    bool push = false;
    bool one_by_one = false;
    bool spin = false;
};

constexpr std::uint64_t push_unit = 1 << 20;

struct connection {
    bench::channel peer;
    std::uint64_t to_send = 0; // bytes of started messages
    std::uint64_t to_receive = 0;
    std::uint64_t begun = 0; // messages; their start times are in client::started_
    std::uint64_t answered = 0;
};

class client {
public:
    explicit client(const settings& how, std::size_t connections)
        : how_{how}
        , channels_{how.resume}
        , message_(how.size, 'x')
        , into_(std::max<std::size_t>(how.size, 65536))
        , connections_(connections)
        , started_(connections * how.pipeline) {
        epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
        if (epoll_ < 0) fail("epoll_create1");
        if (how.one_by_one) {
            open_one_by_one();
        } else {
            open_all();
        }
    }

    void open_all() {
        for (connection& each : connections_)
            open(each);
    }
    void open_one_by_one() {
        for (connection& each : connections_) {
            left_to_start_ = 1;
            left_to_finish_ = 1;
            open(each);
            start_message(each);
            finish();
        }
    }
    void close_all() {
        for (connection& each : connections_) {
            each.peer.close();
            each = {};
        }
    }

    void start_storms() {
        close_all();
        storming_ = true;
    }
    void storm(std::uint64_t round_trips) {
        histogram all;
        for (std::uint64_t done = 0; done < round_trips; done += connections_.size()) {
            open_all();
            run(std::min<std::uint64_t>(connections_.size(), round_trips - done));
            close_all();
            all.add(latencies);
        }
        latencies = all;
    }

    /// Reads bytes that the server sends unasked.
    void drain(std::uint64_t bytes) {
        std::uint64_t left = bytes;
        wait_for([&] { return left != 0; },
                 [&](connection& of) {
                     const ssize_t count = of.peer.recv(into_.data(), into_.size());
                     if (count < 0 && errno == EAGAIN) return;
                     if (count <= 0) fail("recv");
                     left -= std::min(left, static_cast<std::uint64_t>(count));
                 });
    }

    /// Sends at least that many bytes, and waits until the server has read them.
    void push(std::uint64_t bytes) {
        const std::uint64_t units = (bytes + push_unit - 1) / push_unit;
        std::uint64_t unanswered = 0;
        for (connection& each : connections_) {
            each.to_receive = (units + connections_.size() - 1) / connections_.size();
            each.to_send = each.to_receive * push_unit;
            unanswered += each.to_receive;
            send(each);
        }
        wait_for([&] { return unanswered != 0; },
                 [&](connection& of) {
                     while (true) { // edge-triggered
                         const ssize_t count = of.peer.recv(into_.data(), into_.size());
                         if (count < 0 && errno == EAGAIN) break;
                         if (count <= 0) fail("recv");
                         unanswered -= static_cast<std::uint64_t>(count);
                     }
                     if (of.to_send != 0) send(of);
                 });
    }

    void run(std::uint64_t round_trips) {
        latencies = {};
        resumed = 0;
        left_to_start_ = round_trips;
        left_to_finish_ = round_trips;
        for (connection& each : connections_) {
            for (std::uint64_t at = 0; at < how_.pipeline; ++at)
                start_message(each);
        }
        finish();
    }

    histogram latencies;
    std::uint64_t resumed = 0; // connections of --churn

private:
    void finish() {
        wait_for([this] { return left_to_finish_ != 0; },
                 [this](connection& of) {
                     receive(of);
                     if (of.to_send != 0) send(of);
                 });
    }

    template <class More, class Ready>
    void wait_for(More more, Ready ready) {
        std::array<epoll_event, 256> events{};
        while (more()) {
            const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()),
                                           how_.spin ? 0 : -1);
            if (count < 0 && errno != EINTR) fail("epoll_wait");
            for (int at = 0; at < count; ++at)
                ready(*static_cast<connection*>(events[static_cast<std::size_t>(at)].data.ptr));
        }
    }

    void open(connection& of) {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) fail("socket");
        const int on = 1;
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (how_.churn) {
            // End with a reset: thousands of connections a second would use up the ports.
            const linger abort{.l_onoff = 1, .l_linger = 0};
            ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof abort);
        }
        if (how_.sources > 1) {
            ::setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
            sockaddr_in from{};
            from.sin_family = AF_INET;
            from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + opened_++ % how_.sources);
            if (::bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) {
                fail("bind");
            }
        }
        if (::connect(fd, reinterpret_cast<const sockaddr*>(&how_.to), sizeof how_.to) != 0) {
            fail("connect");
        }
        of.peer.open(fd, channels_);
        epoll_event event{.events = how_.push ? EPOLLIN | EPOLLOUT | EPOLLET : EPOLLIN,
                          .data = {.ptr = &of}};
        if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
    }

    void start_message(connection& of) {
        if (left_to_start_ == 0) return;
        --left_to_start_;
        started(of, of.begun++) = now();
        of.to_send += how_.size;
        of.to_receive += how_.size * how_.copies;
        send(of);
    }

    /// When message number `which` of a connection began; keeps the times of messages in flight.
    std::int64_t& started(const connection& of, std::uint64_t which) {
        const auto index = static_cast<std::uint64_t>(&of - connections_.data());
        return started_[index * how_.pipeline + which % how_.pipeline];
    }

    void send(connection& of) {
        while (of.to_send != 0) {
            const std::size_t part = (of.to_send - 1) % how_.size + 1;
            const ssize_t sent = of.peer.send(message_.data(), part);
            if (sent < 0 && errno == EAGAIN) return; // more room comes with the echo
            if (sent < 0) fail("send");
            of.to_send -= static_cast<std::uint64_t>(sent);
        }
    }

    void receive(connection& of) {
        const ssize_t count = of.peer.recv(into_.data(), into_.size());
        if (count < 0 && errno == EAGAIN) return;
        if (count <= 0) fail("recv");
        const std::uint64_t reply = how_.size * how_.copies;
        const std::uint64_t before = (of.to_receive + reply - 1) / reply;
        of.to_receive -= static_cast<std::uint64_t>(count);
        const std::uint64_t after = (of.to_receive + reply - 1) / reply;
        for (std::uint64_t done = after; done != before; ++done) {
            const std::int64_t at = now();
            latencies.add(at - started(of, of.answered++));
            --left_to_finish_;
            if (how_.churn && !storming_) {
                resumed += of.peer.resumed() ? 1 : 0;
                of.peer.close();
                of = {};
                open(of);
            }
            start_message(of);
        }
    }

    settings how_;
    bench::channel_settings channels_;
    std::vector<char> message_;
    std::vector<char> into_;
    std::vector<connection> connections_;
    std::vector<std::int64_t> started_; // for each connection as many as it may have in flight
    int epoll_ = -1;
    bool storming_ = false;
    unsigned opened_ = 0; // connections, of all times
    std::uint64_t left_to_start_ = 0;
    std::uint64_t left_to_finish_ = 0;
};

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    settings how;
    how.to.sin_family = AF_INET;
    how.to.sin_port = htons(static_cast<std::uint16_t>(given.number("port", 0)));
    const std::string host{given.text("host", "127.0.0.1")};
    if (::inet_pton(AF_INET, host.c_str(), &how.to.sin_addr) != 1) fail("--host");
    how.size = given.number("size", 64);
    how.pipeline = given.number("pipeline", 1);
    how.copies = given.number("copies", 1);
    how.sources = static_cast<unsigned>(given.number("sources", 1));
    const bool storm = given.flag("storm");
    how.churn = given.flag("churn") || storm;
    how.resume = given.flag("resume");
    how.one_by_one = given.flag("one-by-one");
    const auto drain = given.number("drain", 0);
    const auto push = given.number("push", 0);
    how.push = push != 0;
    const bool hold = given.flag("hold");
    how.spin = given.flag("spin");
    const auto connections = given.number("connections", 1);
    const auto round_trips = given.number("round-trips", 10000);
    const auto warm_up = given.number("warm-up", 0);
    const auto peer = static_cast<pid_t>(given.number("peer", 0));
    const bool mark = given.flag("mark");
    const auto threads = std::clamp(given.number("threads", 1), 1UL, connections);
    given.done();

    clockid_t peer_clock{};
    if (peer != 0 && ::clock_getcpuclockid(peer, &peer_clock) != 0) fail("--peer");

    std::int64_t peer_before = 0;
    std::int64_t own_before = 0;
    std::int64_t before = 0;
    const auto begin = [&]() noexcept {
        peer_before = peer != 0 ? read_clock(peer_clock) : 0;
        own_before = read_clock(CLOCK_PROCESS_CPUTIME_ID);
        if (mark) ::kill(peer, SIGUSR2);
        before = now();
    };
    histogram latencies;
    std::uint64_t resumed = 0;
    const auto end = [&]() noexcept {
        const std::int64_t wall = now() - before;
        if (mark) ::kill(peer, SIGUSR2);
        const std::int64_t own = read_clock(CLOCK_PROCESS_CPUTIME_ID) - own_before;
        const std::int64_t other = peer != 0 ? read_clock(peer_clock) - peer_before : 0;
        std::printf(
            "connections=%lu size=%zu round_trips=%lu pipeline=%llu wall_ns=%lld "
            "own_cpu_ns=%lld peer_cpu_ns=%lld p50_ns=%lld p90_ns=%lld p99_ns=%lld "
            "p999_ns=%lld max_ns=%lld resumed=%llu\n",
            connections, how.size, round_trips, static_cast<unsigned long long>(how.pipeline),
            static_cast<long long>(wall), static_cast<long long>(own),
            static_cast<long long>(other), static_cast<long long>(latencies.percentile(0.5)),
            static_cast<long long>(latencies.percentile(0.9)),
            static_cast<long long>(latencies.percentile(0.99)),
            static_cast<long long>(latencies.percentile(0.999)),
            static_cast<long long>(latencies.largest()), static_cast<unsigned long long>(resumed));
        std::fflush(stdout);
        // All connections still exist.
        while (hold && std::getchar() != EOF) {
        }
    };
    std::barrier all_warm{static_cast<std::ptrdiff_t>(threads), begin};
    std::barrier all_done{static_cast<std::ptrdiff_t>(threads), end};
    std::mutex adding;
    const auto work = [&](unsigned long which) {
        const auto share = [&](unsigned long amount) {
            return amount / threads + (which < amount % threads ? 1 : 0);
        };
        client load{how, share(connections)};
        const auto measure = [&](std::uint64_t amount) {
            if (drain != 0) {
                load.drain(amount);
            } else if (push != 0) {
                load.push(amount);
            } else if (storm) {
                load.storm(amount);
            } else {
                load.run(amount);
            }
        };
        if (storm) load.start_storms();
        if (warm_up != 0) measure(share(warm_up));
        all_warm.arrive_and_wait();
        measure(share(drain != 0 ? drain : push != 0 ? push : round_trips));
        {
            const std::lock_guard lock{adding};
            latencies.add(load.latencies);
            resumed += load.resumed;
        }
        all_done.arrive_and_wait();
    };
    if (threads == 1) {
        work(0);
        return 0;
    }
    std::vector<std::jthread> workers;
    for (unsigned long each = 0; each < threads; ++each) {
        workers.emplace_back([&work, each] {
            bench::pin_to(each);
            work(each);
        });
    }
}
