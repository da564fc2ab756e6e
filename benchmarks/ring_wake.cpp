// Two threads, each asleep in its io_uring, wake each other alternately: with an eventfd that the
// ring polls, as the library does, or with IORING_OP_MSG_RING. Experiment E3 of
// docs/development/performance-findings.md.
//
//   ring_wake --how eventfd|message --round-trips N
//
// Prints nanoseconds of wall time and of processor time (both threads) per round trip.

#include "arguments.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace {

void check(int result, const char* what) {
    if (result >= 0) return;
    std::fprintf(stderr, "%s: %s\n", what, std::strerror(-result));
    std::exit(1);
}

std::int64_t read_clock(clockid_t clock) {
    timespec at{};
    clock_gettime(clock, &at);
    return std::int64_t{at.tv_sec} * 1'000'000'000 + at.tv_nsec;
}

constexpr std::uint64_t wake_up = 1;

/// One of the two. Created and used by its own thread.
class sleeper {
public:
    explicit sleeper(bool by_message)
        : by_message_{by_message} {
        io_uring_params parameters{};
        parameters.flags =
            IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN;
        check(io_uring_queue_init_params(64, &ring_, &parameters), "io_uring_setup");
        event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (by_message_) return;
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
        io_uring_prep_poll_multishot(entry, event_, POLLIN);
        entry->user_data = wake_up;
        io_uring_submit(&ring_);
    }
    sleeper(const sleeper&) = delete;
    sleeper& operator=(const sleeper&) = delete;
    ~sleeper() {
        io_uring_queue_exit(&ring_);
        ::close(event_);
    }

    void sleep() {
        while (true) {
            io_uring_cqe* seen = nullptr;
            const int outcome = io_uring_submit_and_wait(&ring_, 1);
            if (outcome < 0 && outcome != -EINTR) check(outcome, "io_uring_enter");
            bool woken = false;
            while (io_uring_peek_cqe(&ring_, &seen) == 0) {
                woken = woken || seen->user_data == wake_up;
                io_uring_cqe_seen(&ring_, seen);
            }
            if (woken) return;
        }
    }
    void wake(const sleeper& other) {
        if (!by_message_) {
            const std::uint64_t one = 1;
            static_cast<void>(!::write(other.event_, &one, sizeof one));
            return;
        }
        // Submitted with the enter of the next sleep(): no extra system call.
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
        io_uring_prep_msg_ring(entry, other.ring_.ring_fd, 0, wake_up, 0);
        entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
        entry->user_data = 0;
    }
    void flush() { io_uring_submit(&ring_); }

private:
    bool by_message_;
    io_uring ring_{};
    int event_ = -1;
};

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const bool by_message = given.text("how", "eventfd") == "message";
    const auto round_trips = given.number("round-trips", 20000);
    given.done();

    std::atomic<sleeper*> first = nullptr;
    std::atomic<sleeper*> second = nullptr;
    std::thread other{[&] {
        sleeper mine{by_message};
        second = &mine;
        while (first == nullptr) {
        }
        for (std::size_t at = 0; at < round_trips; ++at) {
            mine.sleep();
            mine.wake(*first);
        }
        mine.flush();
        while (first != nullptr) {
        }
    }};
    {
        sleeper mine{by_message};
        first = &mine;
        while (second == nullptr) {
        }
        const std::int64_t start = read_clock(CLOCK_MONOTONIC);
        const std::int64_t used = read_clock(CLOCK_PROCESS_CPUTIME_ID);
        for (std::size_t at = 0; at < round_trips; ++at) {
            mine.wake(*second);
            mine.sleep();
        }
        const auto count = static_cast<double>(round_trips);
        std::printf("wall_ns=%.0f cpu_ns=%.0f\n",
                    static_cast<double>(read_clock(CLOCK_MONOTONIC) - start) / count,
                    static_cast<double>(read_clock(CLOCK_PROCESS_CPUTIME_ID) - used) / count);
        first = nullptr;
        other.join();
    }
}
