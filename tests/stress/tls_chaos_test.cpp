// TLS streams over every transport are read and written in every way, while most operations are
// stopped or have a limit, from the handshake on; some ends close. Each byte tells its position:
// none may be lost, duplicated or reordered, and an end of stream needs a close_notify. The peer is
// another stream, or OpenSSL together with a sealer of records that changes its keys at any moment.
//
// A failure prints a seed; SIMPLENET_SEED=<seed> starts with that one.

#include "tls/raw_tls.hpp"
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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <openssl/ssl.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::placed_bytes;
using testing::raw_side;

struct round_of_tls : testing::random_stops {
    using random_stops::random_stops;

    std::uint64_t operations = 0;
    std::uint64_t stops = 0;
    std::uint64_t closes = 0;
    std::uint64_t bytes = 0;
    std::uint64_t updates = 0; // of keys, by a raw peer
    std::uint64_t answers = 0;
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
    template <class Other>
    void verify(const Other& other) const {
        if (read_ended_) {
            EXPECT_EQ(read_, other.written()) << "an end before the last byte";
        }
        if (round_.any_closes) return;
        EXPECT_TRUE(ended_);
        EXPECT_EQ(other.read(), written_) << "bytes are missing";
    }
    [[nodiscard]] std::uint64_t read() const noexcept { return read_; }
    [[nodiscard]] std::uint64_t written() const noexcept { return written_; }

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
        if (&over == &read_over_) read_ended_ = why == errc::end_of_stream;
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
    bool read_ended_ = false; // by close_notify
    bool ended_ = false;
};

/// An end that says what no stream of the library says: KeyUpdates and records without data, at any
/// moment, and records of any size. OpenSSL reads.
template <class S>
class raw_end {
public:
    raw_end(round_of_tls& in, S over, raw_side plays, std::uint64_t reads, std::uint64_t writes)
        : round_{in}
        , version_{in.random.percent(80) ? TLS1_3_VERSION : TLS1_2_VERSION}
        , peer_{std::move(over), plays, version_}
        , incoming_{reads}
        , outgoing_{writes}
        , sends_left_{in.random.up_to(40)} {
        SSL_set_msg_callback(peer_.ssl(), &raw_end::saw_message);
        SSL_set_msg_callback_arg(peer_.ssl(), this);
    }
    raw_end(const raw_end&) = delete;
    raw_end& operator=(const raw_end&) = delete;

    task<> talk() {
        shaken_ = co_await peer_.handshake();
        EXPECT_TRUE(shaken_ || round_.any_closes);
        if (!shaken_) co_return;
        sealer_.emplace(peer_);
        co_await when_all(read_everything(), write_everything());
    }
    task<> close_some_time() {
        co_await testing::turns(static_cast<int>(round_.random.up_to(100)));
        ++round_.closes;
        peer_.transport().close();
    }
    /// @pre All tasks have ended.
    template <class Other>
    void verify(const Other& other) const {
        EXPECT_FALSE(was_asked_) << "our stream asked for other keys";
        EXPECT_LE(answers_, requests_);
        round_.answers += answers_;
        if (ended_) {
            EXPECT_EQ(read_, other.written()) << "an end before the last byte";
        }
        if (round_.any_closes) return;
        EXPECT_TRUE(ended_);
    }
    [[nodiscard]] std::uint64_t read() const noexcept { return read_; }
    [[nodiscard]] std::uint64_t written() const noexcept { return written_; }

private:
    static void saw_message(int sent, int, int type, const void* data, std::size_t size, SSL*,
                            void* self) {
        const auto* const bytes = static_cast<const unsigned char*>(data);
        if (sent != 0 || type != SSL3_RT_HANDSHAKE || bytes[0] != SSL3_MT_KEY_UPDATE) return;
        ++static_cast<raw_end*>(self)->answers_;
        if (bytes[size - 1] != SSL_KEY_UPDATE_NOT_REQUESTED)
            static_cast<raw_end*>(self)->was_asked_ = true;
    }

    task<> read_everything() {
        std::size_t count = 0;
        const auto read_once = [&](SSL* ssl) {
            return SSL_read_ex(ssl, memory_.data(), memory_.size(), &count);
        };
        for (;;) {
            const bool made = co_await peer_.until_done(read_once);
            if (!made) break;
            const auto bytes = std::span{memory_}.first(count);
            const auto mistake = incoming_.mistake(read_, bytes);
            EXPECT_FALSE(mistake) << *mistake;
            read_ += count;
        }
        ended_ = (SSL_get_shutdown(peer_.ssl()) & SSL_RECEIVED_SHUTDOWN) != 0;
    }

    task<> write_everything() {
        for (; sends_left_ != 0; --sends_left_) {
            for (std::size_t more = round_.random.up_to(8); more != 0; --more)
                seal_something();
            const bool sent = co_await send();
            if (!sent) co_return;
            if (round_.random.percent(30)) co_await testing::turns(3);
        }
        sealer_->seal({"\1\0", 2}, SSL3_RT_ALERT); // close_notify
        static_cast<void>(co_await send());
    }
    task<bool> send() {
        const std::string records = sealer_->take_records();
        if (records.empty()) co_return true;
        const auto sent = co_await async_write_all(peer_.transport(), records);
        EXPECT_TRUE(sent || round_.any_closes);
        co_return sent.has_value();
    }
    void seal_something() {
        // 32 of them in a row end the connection, by the tests of tls/peers_test.cpp.
        const bool may_be_silent = silent_ < 20;
        switch (may_be_silent ? round_.random.up_to(4) : 4) {
        case 0:
            sealer_->seal({});
            ++silent_;
            break;
        case 1:
        case 2:
            if (version_ == TLS1_3_VERSION) update_keys();
            break;
        default: {
            const auto bytes = outgoing_.piece(written_, round_.random.size(16'384));
            sealer_->seal({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
            written_ += bytes.size();
            silent_ = 0;
        }
        }
    }
    void update_keys() {
        const bool requests = round_.random.percent(50);
        requests_ += requests ? 1 : 0;
        sealer_->seal({requests ? "\x18\0\0\1\1" : "\x18\0\0\1\0", 5}, SSL3_RT_HANDSHAKE);
        sealer_->update_keys();
        ++silent_;
        ++round_.updates;
    }

    round_of_tls& round_;
    const int version_;
    testing::raw_tls_over<S> peer_;
    std::optional<testing::record_sealer> sealer_; // after the handshake
    const placed_bytes incoming_;
    const placed_bytes outgoing_;
    std::vector<std::byte> memory_ = std::vector<std::byte>(40'000);
    std::uint64_t read_ = 0;
    std::uint64_t written_ = 0;
    std::uint64_t requests_ = 0; // KeyUpdates that ask for one
    std::uint64_t answers_ = 0;
    std::size_t sends_left_;
    int silent_ = 0; // records in a row without data
    bool shaken_ = false;
    bool ended_ = false;
    bool was_asked_ = false;
};

class tls_chaos_test : public testing::backend_test {
protected:
    /// `connect` makes two ends of a transport.
    template <class S, class Connect>
    void between_streams(Connect connect) {
        rage(4'000, 300'000, [&](round_of_tls& round, std::uint64_t seed) {
            auto [one, other] = connect(round.random);
            end_of_tls<S> at_server{round, tls::stream<S>{std::move(one), server_}, 2 * seed,
                                    2 * seed + 1};
            end_of_tls<S> at_client{
                round, tls::stream<S>{std::move(other), client_, {.server_name = "localhost"}},
                2 * seed + 1, 2 * seed};
            play(round, at_server, at_client, [&] {
                for (auto* const each : {&at_server, &at_client})
                    spawn(*each);
            });
        });
    }
    /// The same with a raw peer in either role.
    template <class S, class Connect>
    void with_raw_peer(Connect connect) {
        const round_of_tls sum = rage(1'500, 100'000, [&](round_of_tls& round, std::uint64_t seed) {
            auto [one, other] = connect(round.random);
            const bool serves = round.random.percent(50);
            auto stream =
                serves ? tls::stream<S>{std::move(one), server_}
                       : tls::stream<S>{std::move(one), client_, {.server_name = "localhost"}};
            end_of_tls<S> ours{round, std::move(stream), 2 * seed, 2 * seed + 1};
            raw_end<S> raw{round, std::move(other), serves ? raw_side::client : raw_side::server,
                           2 * seed + 1, 2 * seed};
            play(round, ours, raw, [&] {
                spawn(ours);
                loop().spawn(raw.talk());
            });
        });
        if (HasFailure() || IsSkipped()) return;
        EXPECT_GT(sum.updates, 0U);
        EXPECT_GT(sum.answers, 0U);
    }

private:
    /// Rounds until there were enough operations; all together.
    template <class Round>
    round_of_tls rage(std::uint64_t in_short, std::uint64_t in_full, Round one_round) {
        const std::uint64_t enough = testing::short_or_full(in_short, in_full);
        const std::uint64_t first = testing::first_seed();
        testing::stopping_thread stopping;
        std::uint64_t seed = first;
        round_of_tls sum{seed, stopping};
        for (; sum.operations < enough; ++seed) {
            const ::testing::ScopedTrace trace{
                __FILE__, __LINE__, "to reproduce: SIMPLENET_SEED=" + std::to_string(seed)};
            round_of_tls round{seed, stopping};
            still_alive();
            destroy_loop();
            const auto before = testing::resources::now();
            begin(round);
            if (IsSkipped()) return sum;
            one_round(round, seed);
            testing::expect_nothing_left(before);
            sum.operations += round.operations;
            sum.stops += round.stops;
            sum.closes += round.closes;
            sum.bytes += round.bytes;
            sum.updates += round.updates;
            sum.answers += round.answers;
            if (HasFailure()) return sum;
        }
        EXPECT_GT(sum.stops * 20, sum.operations) << "too few operations were stopped";
        std::string figures = std::to_string(sum.operations) + " operations, " +
                              std::to_string(sum.stops) + " stopped, " +
                              std::to_string(sum.closes) + " closes, " +
                              std::to_string(sum.bytes >> 20U) + " MiB, ";
        if (sum.updates != 0) {
            figures += std::to_string(sum.updates) + " KeyUpdates, " + std::to_string(sum.answers) +
                       " answers, ";
        }
        testing::report_figures(figures + "seeds " + std::to_string(first) + " to " +
                                std::to_string(seed - 1));
        return sum;
    }
    void begin(round_of_tls& round) {
        loop_options options;
        options.read_ahead = round.random.one_of<std::size_t>({1, 4096, 64 * 1024});
        if (round.random.percent(40)) options.receive_pool = 1; // two buffers
        remake_loop(options);
    }
    template <class S>
    void spawn(end_of_tls<S>& end) {
        loop().spawn(end.read_everything());
        loop().spawn(end.write_everything());
    }
    template <class One, class Other, class Spawn>
    void play(round_of_tls& round, One& one, Other& other, Spawn spawn_both) {
        round.any_closes = round.random.percent(20);
        spawn_both();
        if (round.any_closes) {
            loop().spawn(one.close_some_time());
            loop().spawn(other.close_some_time());
        }
        if (!loop().run_for(30s)) {
            ADD_FAILURE() << "it hangs";
            loop().dump_tasks(std::cerr);
        } else {
            one.verify(other);
            other.verify(one);
        }
        destroy_loop(); // the ends outlive the loop
    }

    const tls::context server_ = testing::server_with();
    const tls::context client_ = testing::client();
};

testing::buffer_sizes small(testing::decisions& random) {
    const int size = random.one_of({0, 4096, 16384});
    return {.ours = size, .theirs = size};
}

auto over_tcp(testing::decisions& random) {
    auto [one, other] = testing::tcp_ends(small(random));
    return std::pair{testing::make_tcp_stream(std::move(one)),
                     testing::make_tcp_stream(std::move(other))};
}
auto over_unix_sockets(testing::decisions& random) {
    auto [one, other] = testing::local_ends(small(random));
    return std::pair{testing::make_local_stream(std::move(one)),
                     testing::make_local_stream(std::move(other))};
}
auto in_memory(testing::decisions& random) {
    return duplex(random.one_of<std::size_t>({30, 1000, 20'000, 500'000}));
}

TEST_P(tls_chaos_test, over_tcp) {
    between_streams<tcp_stream>(over_tcp);
}
TEST_P(tls_chaos_test, over_unix_sockets) {
    between_streams<local_stream>(over_unix_sockets);
}
TEST_P(tls_chaos_test, in_memory) {
    between_streams<duplex_stream>(in_memory);
}
TEST_P(tls_chaos_test, a_raw_peer_over_tcp) {
    with_raw_peer<tcp_stream>(over_tcp);
}
TEST_P(tls_chaos_test, a_raw_peer_in_memory) {
    with_raw_peer<duplex_stream>(in_memory);
}

INSTANTIATE_TEST_SUITE_P(backends, tls_chaos_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
