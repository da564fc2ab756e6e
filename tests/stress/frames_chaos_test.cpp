// Frames of all formats cross connections in both directions while their reads and writes are
// stopped at any moment. Each frame arrives once, whole and in order; after a write that was
// stopped in the middle of one, the peer sees the frames before it, and knows that one was cut off.

#include "support/backend_test.hpp"
#include "support/full_form.hpp"
#include "support/placed_bytes.hpp"
#include "support/random_stop.hpp"
#include "support/raw_peer.hpp"
#include "support/resources.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::decisions;
using testing::placed_bytes;
using testing::short_or_full;

/// What all connections of a round share.
struct round_of_frames : testing::random_stops {
    using random_stops::random_stops;

    std::uint64_t frames = 0; // received
    std::uint64_t stops = 0;
    std::uint64_t cuts = 0;
};

/// The frames of one direction: both ends know them all.
class frame_sequence {
public:
    frame_sequence(std::uint64_t seed, std::size_t longest)
        : seed_{seed}
        , longest_{longest} {}

    [[nodiscard]] std::vector<std::byte> operator[](std::uint64_t number) const {
        decisions random{seed_ * 1000 + number};
        const std::size_t size = random.percent(10) ? 0 : random.size(longest_);
        return placed_bytes{seed_ ^ number}.piece(0, size);
    }

private:
    std::uint64_t seed_;
    std::size_t longest_;
};

/// One direction of a connection.
class frame_stream {
public:
    frame_stream(round_of_frames& in, std::uint64_t seed, local_stream& from, local_stream& to)
        : round_{in}
        , format_{.prefix =
                      in.random.one_of({frame_prefix::u8, frame_prefix::u16, frame_prefix::u32,
                                        frame_prefix::u64, frame_prefix::varint}),
                  .order = in.random.one_of({std::endian::big, std::endian::little})}
        , longest_{format_.prefix == frame_prefix::u8 ? 255U : 60'000U}
        , frames_{seed, longest_}
        , left_{1 + in.random.up_to(60)}
        , writer_{from, format_}
        , reader_{to, format_} {}

    task<> write_all() {
        while (written_ < left_ && !writer_.is_cut()) {
            const std::vector<std::byte> body = frames_[written_];
            const result<> outcome = co_await round_.perhaps_stopped(write(body), 40);
            if (outcome) {
                ++written_;
            } else {
                EXPECT_TRUE(testing::was_stopped(outcome)) << outcome.error().message();
                ++round_.stops;
            }
        }
        if (writer_.is_cut()) {
            ++round_.cuts;
            const std::vector<std::byte> body = frames_[written_];
            const result<> refused = co_await writer_.write_frame(body);
            EXPECT_TRUE(!refused && refused.error() == std::errc::broken_pipe);
        }
        EXPECT_TRUE(writer_.stream().shutdown_write());
    }
    task<> read_all() {
        for (;;) {
            const std::vector<std::byte> expected = frames_[read_];
            const bool too_little = !expected.empty() && round_.random.percent(10);
            const std::size_t limit = too_little ? expected.size() - 1 : longest_;
            const auto got = co_await round_.perhaps_stopped(reader_.read_frame(limit), 60);
            if (got) {
                EXPECT_TRUE(std::ranges::equal(*got, expected)) << "frame " << read_;
                ++read_;
                ++round_.frames;
            } else if (testing::was_stopped(got)) {
                ++round_.stops;
            } else if (got.error() == errc::end_of_stream) {
                break;
            } else {
                EXPECT_TRUE(too_little && got.error() == errc::limit_exceeded)
                    << got.error().message();
            }
        }
    }
    /// @pre Both have ended.
    void verify() const {
        EXPECT_EQ(read_, written_) << "frames were lost";
        EXPECT_EQ(!reader_.peek().empty(), writer_.is_cut());
    }

private:
    // In one buffer or in several.
    task<result<>> write(std::span<const std::byte> body) {
        if (round_.random.percent(50)) co_return co_await writer_.write_frame(const_buffer{body});
        std::vector<const_buffer> parts;
        while (!body.empty()) {
            const std::size_t size = round_.random.up_to(body.size());
            parts.emplace_back(body.first(size));
            body = body.subspan(size);
        }
        co_return co_await writer_.write_frame(std::span<const const_buffer>{parts});
    }

    round_of_frames& round_;
    const frame_format format_;
    const std::size_t longest_; // bytes
    const frame_sequence frames_;
    const std::uint64_t left_; // frames to write
    frame_writer<local_stream&> writer_;
    frame_reader<local_stream&> reader_;
    std::uint64_t written_ = 0;
    std::uint64_t read_ = 0;
};

class frames_chaos_test : public testing::backend_test {
protected:
    void one_round(round_of_frames& round, std::uint64_t seed) {
        const ::testing::ScopedTrace trace{__FILE__, __LINE__,
                                           "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
        destroy_loop();
        const auto before = testing::resources::now();
        remake_loop({.read_ahead = round.random.one_of<std::size_t>({1, 4096, 64 * 1024})});
        if (IsSkipped()) return;
        {
            // Frames are the same on all streams; Unix domain sockets do not wait for
            // acknowledgements.
            using connection = std::pair<local_stream, local_stream>;
            std::vector<std::unique_ptr<connection>> connections;
            std::vector<std::unique_ptr<frame_stream>> directions;
            for (std::size_t each = 1 + round.random.up_to(4); each != 0; --each) {
                const int size = round.random.one_of({0, 4096, 16384});
                auto [ours, theirs] = testing::local_ends({.ours = size, .theirs = size});
                connections.push_back(
                    std::make_unique<connection>(testing::make_local_stream(std::move(ours)),
                                                 testing::make_local_stream(std::move(theirs))));
                auto& [one, other] = *connections.back();
                const std::uint64_t number = 2 * (seed * 64 + each);
                directions.push_back(std::make_unique<frame_stream>(round, number, one, other));
                directions.push_back(std::make_unique<frame_stream>(round, number + 1, other, one));
            }
            for (const auto& each : directions) {
                loop().spawn(each->write_all());
                loop().spawn(each->read_all());
            }
            still_alive();
            if (!loop().run_for(testing::test_limit * 4)) {
                ADD_FAILURE() << "somebody waits forever";
                loop().dump_tasks(std::cerr);
            }
            destroy_loop();
            for (const auto& each : directions)
                each->verify();
        }
        testing::expect_nothing_left(before);
    }
};

TEST_P(frames_chaos_test, each_frame_arrives_once_whole_and_in_order) {
    const std::uint64_t rounds = short_or_full<std::uint64_t>(25, 3000);
    const std::uint64_t first = testing::first_seed();
    testing::stopping_thread stopping;
    std::uint64_t frames = 0;
    std::uint64_t stops = 0;
    std::uint64_t cuts = 0;
    for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
        round_of_frames round{seed, stopping};
        one_round(round, seed);
        if (HasFailure() || IsSkipped()) return;
        frames += round.frames;
        stops += round.stops;
        cuts += round.cuts;
    }
    EXPECT_GT(stops * 20, frames) << "too few were stopped to test anything";
    testing::report_figures(std::to_string(rounds) + " rounds, " + std::to_string(frames) +
                            " frames, " + std::to_string(stops) + " stops, " +
                            std::to_string(cuts) + " in the middle of a frame, seeds from " +
                            std::to_string(first));
}

INSTANTIATE_TEST_SUITE_P(backends, frames_chaos_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
