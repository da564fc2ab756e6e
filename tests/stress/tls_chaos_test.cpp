// TLS streams over every transport are read and written in every way, while most operations are
// stopped or have a limit, from the handshake on; some ends close. Each byte tells its position:
// none may be lost, duplicated or reordered, and an end of stream needs a close_notify.
//
// A failure prints a seed; SIMPLENET_SEED=<seed> starts with that one.

#include "tls/tls_pair.hpp"

#include "support/backend_test.hpp"
#include "support/full_form.hpp"
#include "support/placed_bytes.hpp"
#include "support/placed_file.hpp"
#include "support/random_stop.hpp"
#include "support/raw_peer.hpp"
#include "support/resources.hpp"

#include <simplenet/simplenet.hpp>
#include <simplenet/tls.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::placed_bytes;
using testing::was_stopped;

struct round_of_tls : testing::random_stops {
    using random_stops::random_stops;

    std::uint64_t operations = 0;
    std::uint64_t stops = 0;
    std::uint64_t closes = 0;
    std::uint64_t bytes = 0;
    bool any_closes = false;
};

/// One end of a connection.
template <class S>
class end_of_tls {
public:
    end_of_tls(round_of_tls& in, tls::stream<S> stream, std::uint64_t reads, std::uint64_t writes)
        : round_{in}
        , stream_{std::move(stream)}
        , incoming_{reads}
        , outgoing_{writes}
        , writes_left_{in.random.up_to(30)} {}

    task<> read_everything() {
        while (!read_over_)
            co_await read_once();
    }
    task<> write_everything() {
        for (; writes_left_ != 0 && !write_over_; --writes_left_)
            co_await write_once();
        while (!write_over_) {
            ++round_.operations;
            const result<> ended = co_await round_.perhaps_stopped(stream_.shutdown_write());
            if (ended) {
                write_over_ = ended_ = true;
            } else {
                failed(ended.error(), write_over_);
            }
        }
    }
    task<> close_some_time() {
        co_await testing::turns(static_cast<int>(round_.random.up_to(100)));
        ++round_.closes;
        stream_.close();
    }
    /// @pre All tasks have ended.
    void verify(const end_of_tls& other) const {
        if (round_.any_closes) return;
        EXPECT_TRUE(ended_);
        EXPECT_EQ(other.read_, written_) << "bytes are missing";
    }

private:
    task<> read_once() {
        ++round_.operations;
        const auto into = std::span{memory_}.first(round_.random.size(memory_.size()));
        switch (round_.random.up_to(3)) {
        case 0: {
            const result<> there = co_await round_.perhaps_stopped(stream_.readable());
            if (!there) failed(there.error(), read_over_);
            co_return;
        }
        case 1: {
            const auto count = co_await round_.perhaps_stopped(async_read_exact(stream_, into));
            take(into.first(count ? *count : count.error().transferred));
            if (!count) failed(count.error().code, read_over_);
            co_return;
        }
        case 2: {
            auto lease = co_await round_.perhaps_stopped(stream_.receive());
            if (lease) take({lease->data(), lease->size()});
            if (!lease) failed(lease.error(), read_over_);
            co_return;
        }
        default: {
            const auto count = co_await round_.perhaps_stopped(stream_.read_some(into));
            if (count) take(into.first(*count));
            if (!count) failed(count.error(), read_over_);
        }
        }
    }
    void take(std::span<const std::byte> bytes) {
        const auto mistake = incoming_.mistake(read_, bytes);
        EXPECT_FALSE(mistake) << *mistake;
        read_ += bytes.size();
        round_.bytes += bytes.size();
        std::ranges::fill(memory_, std::byte{0xee});
    }

    task<> write_once() {
        ++round_.operations;
        auto bytes = outgoing_.piece(written_, round_.random.size(100'000));
        const std::size_t middle = round_.random.up_to(bytes.size());
        const std::array<const_buffer, 3> parts{const_buffer{std::span{bytes}.first(middle)},
                                                const_buffer{},
                                                const_buffer{std::span{bytes}.subspan(middle)}};
        const std::span<const const_buffer> several{parts};
        result<std::size_t> count = 0;
        switch (round_.random.up_to(4)) {
        case 0:
            count = co_await round_.perhaps_stopped(stream_.write_some(const_buffer{bytes}));
            break;
        case 1:
            count = co_await round_.perhaps_stopped(stream_.write_some(several));
            break;
        case 2:
            count = round_.random.percent(50) ? stream_.try_write_some(several)
                                              : stream_.try_write_some(const_buffer{bytes});
            break;
        case 3: {
            file_.grow_to(written_ + bytes.size());
            const auto all = co_await round_.perhaps_stopped(
                async_send_file(stream_, file_.fd(), written_, bytes.size()));
            count = all ? *all : all.error().transferred;
            if (!all) failed(all.error().code, write_over_);
            break;
        }
        default: {
            const auto all =
                co_await round_.perhaps_stopped(async_write_all(stream_, const_buffer{bytes}));
            count = all ? *all : all.error().transferred;
            if (!all) failed(all.error().code, write_over_);
        }
        }
        std::ranges::fill(bytes, std::byte{0xdd});
        if (!count && count.error() != std::errc::operation_would_block) {
            failed(count.error(), write_over_);
        }
        written_ += count.value_or(0);
        if (round_.random.percent(20)) co_await testing::turns(3);
    }

    void failed(std::error_code why, bool& over) {
        if (why == std::errc::operation_canceled || why == errc::deadline_exceeded) {
            ++round_.stops; // or a close: the next operation tells
            return;
        }
        over = true;
        if (round_.any_closes) return;
        EXPECT_EQ(why, errc::end_of_stream) << stream_.error_detail();
    }

    round_of_tls& round_;
    tls::stream<S> stream_;
    const placed_bytes incoming_;
    const placed_bytes outgoing_;
    testing::placed_file file_{outgoing_};
    std::vector<std::byte> memory_ = std::vector<std::byte>(40'000);
    std::uint64_t read_ = 0;
    std::uint64_t written_ = 0;
    std::size_t writes_left_;
    bool read_over_ = false;
    bool write_over_ = false;
    bool ended_ = false;
};

class tls_chaos_test : public testing::backend_test {
protected:
    /// Rounds until there were enough operations. `connect` makes two ends of a transport.
    template <class S, class Connect>
    void rage(Connect connect) {
        const std::uint64_t enough = testing::short_or_full<std::uint64_t>(4'000, 300'000);
        const std::uint64_t first = testing::first_seed();
        const tls::context server = testing::server_with();
        const tls::context client = testing::client();
        testing::stopping_thread stopping;
        std::uint64_t seed = first;
        round_of_tls sum{seed, stopping};
        for (; sum.operations < enough; ++seed) {
            const ::testing::ScopedTrace trace{
                __FILE__, __LINE__, "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
            round_of_tls round{seed, stopping};
            one_round<S>(round, seed, server, client, connect);
            sum.operations += round.operations;
            sum.stops += round.stops;
            sum.closes += round.closes;
            sum.bytes += round.bytes;
            if (HasFailure() || IsSkipped()) return;
        }
        EXPECT_GT(sum.stops * 20, sum.operations) << "too few operations were stopped";
        testing::report_figures(std::to_string(sum.operations) + " operations, " +
                                std::to_string(sum.stops) + " stopped, " +
                                std::to_string(sum.closes) + " closes, " +
                                std::to_string(sum.bytes >> 20U) + " MiB, seeds " +
                                std::to_string(first) + " to " + std::to_string(seed - 1));
    }

private:
    template <class S, class Connect>
    void one_round(round_of_tls& round, std::uint64_t seed, const tls::context& server,
                   const tls::context& client, Connect connect) {
        still_alive();
        destroy_loop();
        const auto before = testing::resources::now();
        loop_options options;
        options.read_ahead = round.random.one_of<std::size_t>({1, 4096, 64 * 1024});
        if (round.random.percent(40)) options.receive_pool = 1; // two buffers
        remake_loop(options);
        if (IsSkipped()) return;
        {
            auto [one, other] = connect(round.random);
            end_of_tls<S> at_server{round, tls::stream<S>{std::move(one), server}, 2 * seed,
                                    2 * seed + 1};
            end_of_tls<S> at_client{
                round, tls::stream<S>{std::move(other), client, {.server_name = "localhost"}},
                2 * seed + 1, 2 * seed};
            round.any_closes = round.random.percent(20);
            for (auto* const each : {&at_server, &at_client}) {
                loop().spawn(each->read_everything());
                loop().spawn(each->write_everything());
            }
            if (round.any_closes) {
                loop().spawn(at_server.close_some_time());
                loop().spawn(at_client.close_some_time());
            }
            if (!loop().run_for(30s)) {
                ADD_FAILURE() << "it hangs";
                loop().dump_tasks(std::cerr);
            } else {
                at_server.verify(at_client);
                at_client.verify(at_server);
            }
            destroy_loop(); // the ends outlive the loop
        }
        testing::expect_nothing_left(before);
    }
};

testing::buffer_sizes small(testing::decisions& random) {
    const int size = random.one_of({0, 4096, 16384});
    return {.ours = size, .theirs = size};
}

TEST_P(tls_chaos_test, over_tcp) {
    rage<tcp_stream>([](testing::decisions& random) {
        auto [one, other] = testing::tcp_ends(small(random));
        return std::pair{testing::make_tcp_stream(std::move(one)),
                         testing::make_tcp_stream(std::move(other))};
    });
}

TEST_P(tls_chaos_test, over_unix_sockets) {
    rage<local_stream>([](testing::decisions& random) {
        auto [one, other] = testing::local_ends(small(random));
        return std::pair{testing::make_local_stream(std::move(one)),
                         testing::make_local_stream(std::move(other))};
    });
}

TEST_P(tls_chaos_test, in_memory) {
    rage<duplex_stream>([](testing::decisions& random) {
        return duplex(random.one_of<std::size_t>({30, 1000, 20'000, 500'000}));
    });
}

INSTANTIATE_TEST_SUITE_P(backends, tls_chaos_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
