// What it costs to give another thread's loop a task and to wait for it, and to post, ours beside
// Boost.Asio's, on one processor.
//
//   --case get|await|post   --batch N (posts before the wait)   --count N (operations of a slice)
//   --rounds N   --backend epoll|io_uring   --cpu N (default: the first allowed one; -1: all)
//   --io (each of Asio's contexts waits for a socket, as those of servers do; one that never had
//   a socket sleeps on a condition variable, where our loops are always ready for one)
//
// get: a thread without a loop waits; await: a coroutine of another loop. post: a thread posts a
// batch and waits for the last one. A round has asio, ours, ours, asio. Prints medians of the wall
// time in nanoseconds per operation, the ratio ours / asio, and `control`: asio / asio, the slices
// from which its distance from 1 is chance.

#include "arguments.hpp"
#include "median.hpp"
#include "processors.hpp"

#include <simplenet/simplenet.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <boost/asio.hpp>

using namespace simplenet;

namespace {

struct settings {
    std::size_t count = 0;
    std::size_t batch = 0;
};

/// Nanoseconds per operation.
double timed(std::size_t count, auto work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> passed =
        std::chrono::steady_clock::now() - start;
    return passed.count() / static_cast<double>(count);
}

/// Posts `batch` callables by `post` and waits for the last one, until there were `count`.
double post_batches(const settings& how, auto post) {
    return timed(how.count, [&] {
        for (std::size_t done = 0; done < how.count; done += how.batch) {
            std::atomic<std::size_t> left = how.batch;
            for (std::size_t each = 0; each < how.batch; ++each) {
                post([&left] {
                    if (--left == 0) left.notify_one();
                });
            }
            for (std::size_t now = left; now != 0; now = left)
                left.wait(now);
            // The last callable may still be in notify_one(): it runs before this one.
            std::promise<void> over;
            post([&over] { over.set_value(); });
            over.get_future().wait();
        }
    });
}

class our_side {
public:
    explicit our_side(backend which)
        : loops_{or_throw(event_loop_group::create({.loops = 2, .loop = {.backend = which}}))} {}

    double get(const settings& how) {
        return timed(how.count, [&] {
            for (std::size_t each = 0; each < how.count; ++each) {
                if (loops_[0].spawn_remote(child()).get() != 1) std::abort();
            }
        });
    }
    double await(const settings& how) {
        auto measure = [](event_loop& other, std::size_t count) -> task<double> {
            const auto start = std::chrono::steady_clock::now();
            for (std::size_t each = 0; each < count; ++each) {
                if (co_await other.spawn_remote(child()) != 1) std::abort();
            }
            const std::chrono::duration<double, std::nano> passed =
                std::chrono::steady_clock::now() - start;
            co_return passed.count() / static_cast<double>(count);
        };
        return loops_[1].spawn_remote(measure(loops_[0], how.count)).get();
    }
    double post(const settings& how) {
        return post_batches(how, [&](auto call) { loops_[0].post(call); });
    }

private:
    static task<int> child() { co_return 1; }

    event_loop_group loops_;
};

namespace asio = boost::asio;

class asio_side {
public:
    explicit asio_side(bool with_io) {
        if (!with_io) return;
        for (auto& each : loops_)
            each.wait_for_socket();
    }
    ~asio_side() {
        for (auto& each : loops_)
            each.context.stop();
    }

    double get(const settings& how) {
        return timed(how.count, [&] {
            for (std::size_t each = 0; each < how.count; ++each) {
                if (asio::co_spawn(loops_[0].context, child(), asio::use_future).get() != 1)
                    std::abort();
            }
        });
    }
    double await(const settings& how) {
        auto measure = [](asio::io_context& other, std::size_t count) -> asio::awaitable<double> {
            const auto start = std::chrono::steady_clock::now();
            for (std::size_t each = 0; each < count; ++each) {
                if (co_await asio::co_spawn(other, child(), asio::use_awaitable) != 1) std::abort();
            }
            const std::chrono::duration<double, std::nano> passed =
                std::chrono::steady_clock::now() - start;
            co_return passed.count() / static_cast<double>(count);
        };
        return asio::co_spawn(loops_[1].context, measure(loops_[0].context, how.count),
                              asio::use_future)
            .get();
    }
    double post(const settings& how) {
        return post_batches(how, [&](auto call) { asio::post(loops_[0].context, call); });
    }

private:
    struct context_on_thread {
        void wait_for_socket() {
            socket.emplace(context, asio::ip::udp::v4());
            socket->async_wait(asio::ip::udp::socket::wait_error, [](auto) {});
        }

        asio::io_context context{1};
        // None without --io: even a closed one makes the context wait in epoll_wait(2).
        std::optional<asio::ip::udp::socket> socket;
        asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
        std::jthread thread{[this] { context.run(); }};
    };
    static asio::awaitable<int> child() { co_return 1; }

    context_on_thread loops_[2];
};

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    settings how;
    const std::string_view which = given.text("case", "get");
    how.batch = given.number("batch", 1);
    how.count = given.number("count", which == "post" ? 20'000 : 4'000);
    const auto rounds = given.number("rounds", 51);
    bench::choose_processor(given.text("cpu", "0"));
    const auto loops = given.text("backend", "epoll");
    const bool with_io = given.flag("io");
    given.done();
    our_side ours{loops == "epoll" ? backend::epoll : backend::io_uring};
    asio_side theirs{with_io};
    const auto measure = [&](auto& side) {
        if (which == "get") return side.get(how);
        if (which == "await") return side.await(how);
        if (which == "post") return side.post(how);
        std::exit(2);
    };
    measure(ours);
    measure(theirs);
    std::vector<double> our_times;
    std::vector<double> their_times;
    std::vector<double> ratios;
    std::vector<double> control;
    for (unsigned long round = 0; round < rounds; ++round) {
        const double before = measure(theirs);
        const double between = (measure(ours) + measure(ours)) / 2;
        const double after = measure(theirs);
        our_times.push_back(between);
        their_times.push_back((before + after) / 2);
        ratios.push_back(between * 2 / (before + after));
        control.push_back(before / after);
    }
    std::printf("ours_ns=%.0f asio_ns=%.0f ratio=%.3f control=%.3f\n", bench::median(our_times),
                bench::median(their_times), bench::median(ratios), bench::median(control));
}
