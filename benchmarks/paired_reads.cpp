// What reading costs on io_uring and on epoll, kernel included: processor time of one thread that
// sends through plain sockets and then lets a loop read, a little on each backend in turn.
//
//   --size BYTES (of a piece)   --pieces N (sent to each connection before it is read)
//   --connections N   --buffer BYTES (default: size)   --read-mode read_some|receive
//   --megabytes N (in each round)   --rounds N
//
// A round has epoll, io_uring, io_uring, epoll. Prints medians in nanoseconds per piece, the ratio
// io_uring / epoll, and `control`: epoll / epoll, the quarters from which its distance from 1 is
// chance.

#include "arguments.hpp"
#include "median.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/socket.h>

using namespace simplenet;

namespace {

struct settings {
    std::size_t size = 0;
    std::size_t pieces = 0;
    std::size_t connections = 0;
    std::size_t buffer = 0;
    std::size_t bytes = 0; // a quarter of a round
    bool receive = false;
};

std::int64_t processor_time() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// A loop with connections to itself, which its tasks read.
class reading_loop {
public:
    reading_loop(backend which, const settings& how)
        : how_{how}
        , loop_{made(event_loop::create({.backend = which}))}
        , message_(how.size * how.pieces) {
        auto listener = made(nonblocking::tcp_listener::bind(endpoint::loopback(0)));
        const auto here = made(listener.local_endpoint());
        for (std::size_t at = 0; at < how.connections; ++at) {
            peers_.push_back(made(blocking::tcp_stream::connect(here)));
            while (true) {
                auto accepted = listener.accept();
                if (!accepted) continue;
                loop_.spawn(read(tcp_stream{*std::move(accepted)})).detach();
                break;
            }
        }
    }

    /// Processor time of a piece, in nanoseconds.
    double measure() {
        const std::size_t burst = message_.size() * peers_.size();
        const std::size_t bursts = std::max<std::size_t>(how_.bytes / burst, 1);
        const auto start = processor_time();
        for (std::size_t round = 0; round < bursts; ++round) {
            left_ = burst;
            for (auto& each : peers_) {
                if (!each.write_some(message_)) std::abort();
            }
            loop_.run();
        }
        const auto passed = static_cast<double>(processor_time() - start);
        return passed / static_cast<double>(bursts * how_.pieces * peers_.size());
    }

private:
    template <class T>
    static T made(result<T> what) {
        if (what) return *std::move(what);
        std::fprintf(stderr, "%s\n", what.error().message().c_str());
        std::exit(1);
    }

    task<> read(tcp_stream stream) {
        if (how_.receive) {
            while (const auto got = co_await stream.receive())
                note(got->size());
        } else {
            const auto buffer = std::make_unique<std::byte[]>(how_.buffer);
            while (const auto got = co_await stream.read_some({buffer.get(), how_.buffer}))
                note(*got);
        }
    }
    void note(std::size_t count) {
        left_ -= count;
        if (left_ == 0) loop_.stop();
    }

    const settings& how_;
    event_loop loop_;
    std::vector<blocking::tcp_stream> peers_;
    std::vector<std::byte> message_;
    std::size_t left_ = 0;
};

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    settings how;
    how.size = given.number("size", 16384);
    how.pieces = given.number("pieces", 1);
    how.connections = given.number("connections", 100);
    how.buffer = given.number("buffer", how.size);
    how.receive = given.text("read-mode", "read_some") == "receive";
    how.bytes = given.number("megabytes", 32) << 20U;
    const auto rounds = given.number("rounds", 21);
    given.done();

    reading_loop epoll{backend::epoll, how};
    reading_loop uring{backend::io_uring, how};
    epoll.measure();
    uring.measure();
    std::vector<double> on_epoll;
    std::vector<double> on_uring;
    std::vector<double> ratios;
    std::vector<double> control;
    for (unsigned long round = 0; round < rounds; ++round) {
        const double before = epoll.measure();
        const double ours = (uring.measure() + uring.measure()) / 2;
        const double after = epoll.measure();
        on_epoll.push_back((before + after) / 2);
        on_uring.push_back(ours);
        ratios.push_back(ours * 2 / (before + after));
        control.push_back(before / after);
    }
    std::printf("epoll_ns=%.0f io_uring_ns=%.0f ratio=%.3f control=%.3f\n", bench::median(on_epoll),
                bench::median(on_uring), bench::median(ratios), bench::median(control));
}
