// The ways in which a peer can end a connection, during each kind of operation on it. The results
// of all operations are the table in docs/usage/errors.md, the same on both backends. A connection
// that is half closed costs nothing.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/full_form.hpp"
#include "support/processor_time.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <poll.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::raw_peer;
using testing::turns;

enum class transport : std::uint8_t { tcp, local };

/// What the peer does.
enum class ending : std::uint8_t {
    half_close,   // shutdown(SHUT_WR)
    close,        // after it has read everything
    unread_close, // with bytes that it has not read
    reset,        // SO_LINGER 0, then close; like close on a Unix domain socket
};

/// What this side is doing at that moment.
enum class doing : std::uint8_t {
    reading,     // a read waits
    writing,     // a write waits for room
    both,        // a read and a write wait
    nothing,     // afterwards it reads and writes
    silent,      // afterwards it writes, then reads
    half_closed, // it has shut down writing, and reads
};

struct parameter {
    transport over;
    ending how;
    doing meanwhile;
    backend on;
};

/// The results of the operations, in the order of the calls.
struct observations {
    std::string pending_read; // the operations that were waiting
    std::string pending_write;
    std::string first_read, second_read; // afterwards, and after the bytes sent before
    std::string first_write, second_write;
    std::string shutdown;

    bool operator==(const observations&) const = default;
};

std::ostream& operator<<(std::ostream& to, const observations& seen) {
    return to << "\n    {.pending_read = \"" << seen.pending_read << "\", .pending_write = \""
              << seen.pending_write << "\",\n     .first_read = \"" << seen.first_read
              << "\", .second_read = \"" << seen.second_read << "\",\n     .first_write = \""
              << seen.first_write << "\", .second_write = \"" << seen.second_write
              << "\", .shutdown = \"" << seen.shutdown << "\"}";
}

std::string words_for(std::error_code error) {
    if (!error) return "ok";
    if (error == errc::end_of_stream) return "end";
    if (error == errc::deadline_exceeded) return "waits";
    if (error == std::errc::connection_reset) return "reset";
    if (error == std::errc::broken_pipe) return "broken pipe";
    if (error == std::errc::not_connected) return "not connected";
    return error.message();
}

bool writes(doing meanwhile) {
    return meanwhile == doing::writing || meanwhile == doing::both;
}
bool reads(doing meanwhile) {
    return meanwhile == doing::reading || meanwhile == doing::both ||
           meanwhile == doing::half_closed;
}

observations expected_of(const parameter& asked);

class peer_endings_test : public ::testing::TestWithParam<parameter> {
protected:
    void SetUp() override {
        const backend on = GetParam().on;
        auto made = event_loop::create({.backend = on});
        if (!made && made.error() == errc::backend_unavailable) return testing::leave_out(on);
        loop_.emplace(*std::move(made));
    }

    template <class Stream>
    void watch(testing::raw_connection<Stream> connection) {
        observations seen;
        loop_->spawn(play(connection.ours, connection.theirs, seen));
        ASSERT_TRUE(loop_->run_for(testing::test_limit + 2 * quiet_time));
        EXPECT_EQ(seen, expected_of(GetParam()));
    }

private:
    // Long enough to detect spinning; in the full form, to measure it.
    const std::chrono::milliseconds quiet_time = testing::short_or_full(40ms, 10'000ms);

    template <class Stream>
    task<> play(Stream& ours, raw_peer& theirs, observations& seen) {
        const auto [over, how, meanwhile, on] = GetParam();
        // Both sides use the connection before it ends.
        const result<std::size_t> greeted = co_await ours.write_some("hello");
        EXPECT_TRUE(greeted);
        EXPECT_EQ(theirs.receive(5), "hello");
        theirs.send("hello");
        std::array<char, 64> buffer;
        const result<std::size_t> answer = co_await ours.read_some(buffer);
        EXPECT_EQ(answer.value_or(0), 5U);

        if (how == ending::unread_close && !writes(meanwhile)) {
            const result<std::size_t> sent = co_await ours.write_some("unread");
            EXPECT_TRUE(sent);
            testing::await(theirs.fd(), POLLIN);
        }
        if (meanwhile == doing::half_closed) {
            EXPECT_TRUE(ours.shutdown_write());
        }
        std::optional<join_handle<std::string>> reading;
        std::optional<join_handle<std::string>> writing;
        if (reads(meanwhile)) {
            reading.emplace(spawn(read_once(ours)));
            co_await turns(3);
        }
        if (writes(meanwhile)) {
            writing.emplace(spawn(write_for_ever(ours)));
            co_await until_full(ours);
        }
        if (meanwhile == doing::nothing) {
            theirs.send("bye"); // not requested yet when the connection ends
            testing::await(ours.native_handle(), POLLIN);
        }

        end(theirs, how);
        testing::await(ours.native_handle(), POLLIN | POLLRDHUP);
        if (reading) seen.pending_read = co_await *reading;
        if (writing && how == ending::half_close) {
            // Writing is still possible: the write keeps waiting, and costs nothing.
            co_await expect_quiet();
            seen.pending_write = writing->done() ? "ended" : "waits";
            writing->request_stop();
            static_cast<void>(co_await *writing);
        } else if (writing) {
            seen.pending_write = co_await *writing;
        }
        if (meanwhile == doing::nothing) {
            const result<std::size_t> count = co_await ours.read_some(buffer);
            EXPECT_EQ(count.value_or(0), 3U) << "bytes before the end were lost";
        }
        if (meanwhile == doing::silent) {
            co_await turns(3); // io_uring has seen the end
            co_await write_and_shut_down(ours, seen);
        }
        seen.first_read = co_await read_once(ours);
        seen.second_read = co_await read_once(ours);
        if (meanwhile == doing::reading || meanwhile == doing::nothing) {
            co_await write_and_shut_down(ours, seen);
        } else if (writes(meanwhile) && how != ending::half_close) {
            seen.first_write = co_await write_once(ours);
        }
        co_await expect_quiet();
    }

    template <class Stream>
    static task<> write_and_shut_down(Stream& ours, observations& seen) {
        seen.first_write = co_await write_once(ours);
        if (GetParam().how != ending::half_close && GetParam().over == transport::tcp) {
            testing::await(ours.native_handle(), POLLHUP); // the answer: a reset
        }
        seen.second_write = co_await write_once(ours);
        seen.shutdown = words_for(error_of(ours.shutdown_write()));
    }

    template <class Stream>
    static task<std::string> read_once(Stream& stream) {
        std::array<char, 64> buffer;
        const result<std::size_t> count = co_await with_timeout(stream.read_some(buffer), 2s);
        co_return words_for(error_of(count));
    }
    template <class Stream>
    static task<std::string> write_once(Stream& stream) {
        const result<std::size_t> count = co_await stream.write_some("x");
        co_return words_for(error_of(count));
    }
    template <class Stream>
    static task<std::string> write_for_ever(Stream& stream) {
        const std::string much(64 * 1024, 'x');
        for (;;) {
            const result<std::size_t> count = co_await stream.write_some(much);
            if (!count) co_return words_for(count.error());
        }
    }
    template <class Stream>
    static task<> until_full(Stream& stream) {
        pollfd room{.fd = stream.native_handle(), .events = POLLOUT, .revents = 0};
        do {
            co_await turns(2);
        } while (::poll(&room, 1, 0) != 0);
    }
    static void end(raw_peer& theirs, ending how) {
        switch (how) {
        case ending::half_close:
            return theirs.shutdown_write();
        case ending::close:
        case ending::unread_close:
            return theirs.close();
        case ending::reset:
            return theirs.reset();
        }
    }

    /// The loop sleeps as long as the connection does not change.
    task<> expect_quiet() {
        const auto turns_before = loop_->metrics().turns;
        const auto used_before = testing::processor_time();
        static_cast<void>(co_await async_sleep(quiet_time));
        EXPECT_LT(loop_->metrics().turns - turns_before, 20U) << "the loop spins";
        if (!testing::full_form()) co_return;
        const auto used = testing::processor_time() - used_before;
        EXPECT_LT(used * 50, quiet_time) << "more than 2 % of a processor";
    }

    testing::watchdog watchdog_;
    std::optional<event_loop> loop_;
};

/// The table of docs/usage/errors.md.
observations expected_of(const parameter& asked) {
    const auto [over, how, meanwhile, on] = asked;
    const bool tcp = over == transport::tcp;
    const bool both = meanwhile == doing::both;
    const bool writing = writes(meanwhile);
    const bool silent = meanwhile == doing::silent;
    const bool can_write = meanwhile == doing::reading || meanwhile == doing::nothing || silent;
    const bool half_close = how == ending::half_close;
    const bool aborted = how == ending::unread_close || (tcp && how == ending::reset) ||
                         (writing && !half_close); // because bytes are unread then

    observations expected;
    if (reads(meanwhile)) expected.pending_read = aborted ? "reset" : "end";
    // TCP: one read and one write report the reset; if both wait, only the read. Unix: only the
    // read.
    if (writing) {
        expected.pending_write = half_close ? "waits" : tcp && !both ? "reset" : "broken pipe";
    }
    expected.first_read = aborted && !reads(meanwhile) ? "reset" : "end";
    expected.second_read = "end";
    if (can_write || (writing && !half_close)) {
        const bool unanswered = tcp && how == ending::close; // the reset arrives later
        expected.first_write = half_close || unanswered   ? "ok"
                               : silent && aborted && tcp ? "reset"
                                                          : "broken pipe";
    }
    if (can_write) {
        expected.second_write = half_close ? "ok" : "broken pipe";
        expected.shutdown = half_close || !tcp ? "ok" : "not connected";
    }
    return expected;
}

TEST_P(peer_endings_test, matches_the_documentation) {
    if (GetParam().over == transport::tcp) {
        watch(testing::connect_raw({.ours = 8192, .theirs = 8192}));
    } else {
        watch(testing::connect_raw_local({.ours = 8192, .theirs = 8192}));
    }
}

std::vector<parameter> all_cases() {
    std::vector<parameter> cases;
    for (const transport over : {transport::tcp, transport::local}) {
        for (const ending how :
             {ending::half_close, ending::close, ending::unread_close, ending::reset}) {
            for (const doing meanwhile : {doing::reading, doing::writing, doing::both,
                                          doing::nothing, doing::silent, doing::half_closed}) {
                // A peer whose room is used up has unread bytes.
                if (how == ending::close && writes(meanwhile)) continue;
                for (const backend on : {backend::epoll, backend::io_uring})
                    cases.push_back({over, how, meanwhile, on});
            }
        }
    }
    return cases;
}

std::string case_name(const ::testing::TestParamInfo<parameter>& tested) {
    constexpr std::array<std::string_view, 4> endings{"half_close", "close", "unread_close",
                                                      "reset"};
    constexpr std::array<std::string_view, 6> doings{"reading", "writing", "both",
                                                     "idle",    "silent",  "half_closed"};
    const auto [over, how, meanwhile, on] = tested.param;
    std::string name = over == transport::tcp ? "tcp_" : "local_";
    name += endings[static_cast<std::size_t>(how)];
    (name += "_while_") += doings[static_cast<std::size_t>(meanwhile)];
    return (name += "_on_") += to_string(on);
}

INSTANTIATE_TEST_SUITE_P(endings, peer_endings_test, ::testing::ValuesIn(all_cases()), case_name);

} // namespace
} // namespace simplenet::v0
