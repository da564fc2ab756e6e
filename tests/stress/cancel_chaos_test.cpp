// Streams are read and written in every possible way, while a third of the operations is stopped,
// timed out or cut off by close(), at random. Each byte tells its position: none may be lost,
// duplicated or reordered, whatever was stopped when.
//
// A failure prints a seed; SIMPLENET_SEED=<seed> starts with that one. The loop's decisions are
// then the same, but not the timing of the kernel's reports, nor the other threads.

#include "stress/end_of_chaos.hpp"
#include "support/backend_test.hpp"
#include "support/descriptors.hpp"
#include "support/full_form.hpp"
#include "support/random_stop.hpp"
#include "support/raw_peer.hpp"
#include "support/resources.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::end_of_chaos;
using testing::round_of_chaos;
using testing::short_or_full;

class cancel_chaos_test : public testing::backend_test {
protected:
    /// Rounds of chaos until there were enough operations.
    template <class Stream, class Connect>
    void rage(Connect connect) {
        const std::uint64_t enough = short_or_full<std::uint64_t>(12'000, 1'000'000);
        const std::uint64_t first = testing::first_seed();
        const auto start = std::chrono::steady_clock::now();
        testing::stopping_thread stopping;
        std::uint64_t operations = 0;
        std::uint64_t stops = 0;
        std::uint64_t closes = 0;
        std::uint64_t lingered = 0;
        std::uint64_t bytes = 0;
        std::uint64_t seed = first;
        const auto passed = [&] { return std::chrono::steady_clock::now() - start; };
        for (; operations < enough; ++seed) {
            round_of_chaos round{seed, stopping};
            one_round<Stream>(round, seed, connect);
            operations += round.operations;
            stops += round.stops;
            closes += round.closes;
            lingered += round.lingered;
            bytes += round.bytes;
            if (HasFailure() || IsSkipped()) return;
        }
        EXPECT_GT(stops * 20, operations) << "too few operations were stopped to test anything";
        const double seconds = std::chrono::duration<double>(passed()).count();
        testing::report_figures(std::to_string(operations) + " operations, " +
                                std::to_string(stops) + " stopped, " + std::to_string(closes) +
                                " connections closed, " + std::to_string(lingered) +
                                " of them lingering, " + std::to_string(bytes >> 20U) +
                                " MiB, seeds " + std::to_string(first) + " to " +
                                std::to_string(seed - 1) + ", " + std::to_string(seconds) + " s");
    }

private:
    template <class Stream, class Connect>
    void one_round(round_of_chaos& round, std::uint64_t seed, Connect connect) {
        const ::testing::ScopedTrace trace{__FILE__, __LINE__,
                                           "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
        destroy_loop();
        const auto before = testing::resources::now();
        loop_options options;
        options.queue_depth = round.random.one_of({8U, 256U});
        options.read_ahead = round.random.one_of<std::size_t>({1, 4096, 64 * 1024});
        round.many_buffers = round.random.percent(60);
        if (!round.many_buffers) options.receive_pool = 1; // two
        round.lingers = round.random.percent(30);
        // Two ends that linger stop their reads first: none may then wait for the other's end.
        round.shields = !round.lingers;
        remake_loop(options);
        if (IsSkipped()) return;
        {
            std::vector<std::unique_ptr<end_of_chaos<Stream>>> ends;
            const std::size_t connections = 1 + round.random.up_to(5);
            for (std::size_t each = 0; each < connections; ++each) {
                const int size = round.random.one_of({0, 4096, 16384});
                auto [one, other] = connect(testing::buffer_sizes{.ours = size, .theirs = size});
                const std::uint64_t forth = 2 * (seed * 64 + each);
                ends.push_back(std::make_unique<end_of_chaos<Stream>>(round, std::move(one), forth,
                                                                      forth + 1));
                ends.push_back(std::make_unique<end_of_chaos<Stream>>(round, std::move(other),
                                                                      forth + 1, forth));
                ends[2 * each]->connect_with(*ends[2 * each + 1]);
                ends[2 * each + 1]->connect_with(*ends[2 * each]);
            }
            for (const auto& each : ends) {
                loop().spawn(each->read_everything());
                loop().spawn(each->write_everything());
                if (round.random.percent(8)) loop().spawn(each->close_some_time());
            }
            if (round.random.percent(10)) loop().spawn(end_the_loop(round));
            if (!ends_in_time(round)) {
                ADD_FAILURE() << "it hangs";
                loop().dump_tasks(std::cerr);
                for (const auto& each : ends)
                    std::cerr << testing::kernel_state(each->native_handle());
                round.loop_ends = true;
            }
            destroy_loop(); // the ends outlive the loop
            for (const auto& each : ends)
                each->verify();
        }
        testing::expect_nothing_left(before);
    }

    /// Runs the round to its end. False: it hangs. It may take long: with a small buffer Linux
    /// advertises less than a segment at times, and then gets one piece for each of the sender's
    /// probes, which are 200 ms apart.
    bool ends_in_time(const round_of_chaos& round) {
        std::uint64_t before = 0;
        do {
            still_alive();
            before = round.bytes;
            if (loop().run_for(std::min(testing::test_limit * 4, 40s))) return true;
        } while (round.bytes != before);
        return false;
    }

    task<> end_the_loop(round_of_chaos& round) {
        co_await testing::turns(static_cast<int>(round.random.up_to(300)));
        round.loop_ends = true;
        loop().stop();
    }
};

TEST_P(cancel_chaos_test, no_byte_of_a_tcp_stream_is_lost_duplicated_or_reordered) {
    rage<tcp_stream>([](testing::buffer_sizes sizes) {
        auto [one, other] = testing::tcp_ends(sizes);
        return std::pair{testing::make_tcp_stream(std::move(one)),
                         testing::make_tcp_stream(std::move(other))};
    });
}

TEST_P(cancel_chaos_test, no_byte_of_a_local_stream_is_lost_duplicated_or_reordered) {
    rage<local_stream>([](testing::buffer_sizes sizes) {
        auto [one, other] = testing::local_ends(sizes);
        return std::pair{testing::make_local_stream(std::move(one)),
                         testing::make_local_stream(std::move(other))};
    });
}

INSTANTIATE_TEST_SUITE_P(backends, cancel_chaos_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
