// What it costs to hand connections over from one loop to another in batches.
//
//   --connections N (of a batch)   --rounds N   --backend epoll|io_uring
//   --cpu N (default: the first allowed one; -1: all)
//
// A round sends one byte to each connection. The loop that has them reads the bytes, and when it
// has read all, it gives all connections to the other loop, where they are read next. In every
// second round they are given to a task of the same loop instead, so that the difference is the
// cost of handing over.
//
// Prints the processor time of the two loops in nanoseconds per connection: medians over the
// rounds, their difference, and the wake-ups of a batch.

#include "arguments.hpp"
#include "median.hpp"
#include "processors.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <pthread.h>

using namespace simplenet;

namespace {

/// Nanoseconds of processor time of the thread with this clock.
double read_clock(clockid_t clock) {
    timespec at{};
    if (::clock_gettime(clock, &at) != 0) std::abort();
    return static_cast<double>(at.tv_sec) * 1e9 + static_cast<double>(at.tv_nsec);
}

/// Connections that travel between two loops.
class course {
public:
    course(backend which, std::size_t connections)
        : loops_{or_throw(event_loop_group::create({.loops = 2, .loop = {.backend = which}}))}
        , connections_{connections} {
        for (std::size_t each = 0; each != 2; ++each)
            clocks_[each] = loops_[each].spawn_remote(own_clock()).get();
        arrived_.reserve(connections);
    }

    /// Gives the connections to the first loop.
    void connect() {
        auto listener = or_throw(blocking::tcp_listener::bind(endpoint::loopback(0)));
        for (std::size_t each = 0; each != connections_; ++each) {
            peers_.push_back(
                or_throw(blocking::tcp_stream::connect(or_throw(listener.local_endpoint()))));
            or_throw(peers_.back().set_no_delay(true));
            auto accepted = or_throw(listener.accept());
            tcp_stream stream{or_throw(nonblocking::tcp_stream::from(std::move(accepted)))};
            or_throw(result<>{hand_over(loops_[at_], std::move(stream), serve, std::ref(*this))});
        }
        wait_for_all();
    }

    /// Processor time of both loops for one connection.
    double round(bool hands_over) {
        hands_over_ = hands_over;
        waiting_ = 0;
        const double before = read_clock(clocks_[0]) + read_clock(clocks_[1]);
        static constexpr std::byte one{'x'};
        for (auto& each : peers_)
            if (!each.write_all(const_buffer{&one, 1})) std::abort();
        wait_for_all();
        const double after = read_clock(clocks_[0]) + read_clock(clocks_[1]);
        if (hands_over) at_ = 1 - at_;
        return (after - before) / static_cast<double>(connections_);
    }

    [[nodiscard]] std::uint64_t wake_ups() const { return loops_.metrics().wake_ups; }

private:
    static task<clockid_t> own_clock() {
        clockid_t clock{};
        if (::pthread_getcpuclockid(::pthread_self(), &clock) != 0) std::abort();
        co_return clock;
    }
    static task<> serve(tcp_stream stream, course& on) {
        if (++on.waiting_ == on.connections_) on.waiting_.notify_one();
        std::array<std::byte, 16> into;
        const auto count = co_await stream.read_some(into);
        if (count) on.has_read(std::move(stream));
    }
    void has_read(tcp_stream stream) {
        arrived_.push_back(std::move(stream));
        if (arrived_.size() != connections_) return;
        event_loop& other = loops_[1 - at_];
        for (tcp_stream& each : arrived_) {
            if (hands_over_) {
                hand_over(other, std::move(each), serve, std::ref(*this));
            } else {
                spawn(serve, std::move(each), std::ref(*this));
            }
        }
        arrived_.clear();
    }
    void wait_for_all() {
        for (std::size_t now = waiting_; now != connections_; now = waiting_)
            waiting_.wait(now);
    }

    event_loop_group loops_;
    const std::size_t connections_;
    std::array<clockid_t, 2> clocks_{};
    std::vector<blocking::tcp_stream> peers_;
    std::atomic<std::size_t> waiting_ = 0;
    std::size_t at_ = 0; // the loop that has the connections
    bool hands_over_ = false;
    std::vector<tcp_stream> arrived_; // of the loop that has the connections
};

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto connections = given.number("connections", 100);
    const auto rounds = given.number("rounds", 200);
    const auto which = given.text("backend", "epoll");
    bench::choose_processor(given.text("cpu", "0"));
    given.done();
    course on{which == "epoll" ? backend::epoll : backend::io_uring, connections};
    on.connect();
    std::vector<double> handed;
    std::vector<double> kept;
    std::vector<double> differences;
    std::vector<double> wake_ups;
    for (unsigned long each = 0; each != rounds; ++each) {
        const double stays = on.round(false);
        const std::uint64_t before = on.wake_ups();
        const double goes = on.round(true);
        wake_ups.push_back(static_cast<double>(on.wake_ups() - before));
        handed.push_back(goes);
        kept.push_back(stays);
        differences.push_back(goes - stays);
    }
    std::printf("handed_ns=%.0f kept_ns=%.0f difference_ns=%.0f wake_ups=%.0f\n",
                bench::median(handed), bench::median(kept), bench::median(differences),
                bench::median(wake_ups));
}
