// The code of docs/usage/testing.md. It runs as a test.

// Checks with assert(), in every build.
#undef NDEBUG

#include <simplenet/simplenet.hpp>
#include <simplenet/testing/faulty_stream.hpp>
#include <simplenet/testing/manual_clock.hpp>

#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace simplenet;
using namespace std::chrono_literals;

//! [protocol]
/// The protocol under test: one word per line; the last is "quit".
template <class Stream>
task<result<std::vector<std::string>>> read_words(Stream& stream) {
    buffered_reader reader{stream};
    std::vector<std::string> words;
    for (;;) {
        const auto line = co_await reader.read_line(80);
        if (!line) co_return fail(line);
        if (*line == "quit") co_return words;
        words.emplace_back(*line);
    }
}
//! [protocol]

//! [duplex]
task<> words_are_read_until_quit() {
    auto [ours, theirs] = duplex();
    co_await async_write_all(theirs, "one\r\ntwo\nquit\n");

    const auto words = co_await read_words(ours);

    assert(words && words->size() == 2);
}
//! [duplex]

//! [faulty]
task<> any_short_reads_give_the_same_words() {
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
        auto [ours, theirs] = duplex();
        testing::faulty_stream faulty{std::move(ours)};
        faulty.reads().random_pieces(seed, 5);
        co_await async_write_all(theirs, "one\r\ntwo\nquit\n");

        const auto words = co_await read_words(faulty);

        assert(words && words->size() == 2);
    }
}

task<> a_peer_that_breaks_off_is_noticed() {
    const std::string text = "one\ntwo\nquit\n";
    for (std::size_t at = 0; at < text.size(); ++at) {
        auto [ours, theirs] = duplex();
        testing::faulty_stream faulty{std::move(ours)};
        faulty.reads().fail_at_byte(at, make_error_code(errc::end_of_stream));
        co_await async_write_all(theirs, text);

        const auto words = co_await read_words(faulty);

        assert(!words && words.error() == errc::end_of_stream);
    }
}
//! [faulty]

//! [stop]
task<> a_stop_at_any_read_ends_it() {
    const std::string text = "one\ntwo\nquit\n";
    for (std::size_t call = 1; call <= text.size(); ++call) {
        auto [ours, theirs] = duplex();
        testing::faulty_stream faulty{std::move(ours)};
        co_await async_write_all(theirs, text);

        auto reading = spawn(read_words(faulty));
        faulty.reads().at_most(1).before_call(call, [&] { reading.request_stop(); });
        const auto words = co_await reading;

        assert(!words && words.error() == std::errc::operation_canceled);
    }
}
//! [stop]

//! [clock]
task<> a_silent_peer_is_given_up_after_an_hour(testing::manual_clock& clock) {
    auto [ours, theirs] = duplex();

    const auto words = co_await with_timeout(read_words(ours), 1h); // takes no real time

    assert(!words && words.error() == errc::deadline_exceeded);
    assert(clock.elapsed() >= 1h);
}

void test_limits() {
    testing::manual_clock clock;
    run(a_silent_peer_is_given_up_after_an_hour(clock), {.clock = &clock});
}
//! [clock]

//! [main]
int main() {
    run(words_are_read_until_quit());
    run(any_short_reads_give_the_same_words());
    run(a_peer_that_breaks_off_is_noticed());
    run(a_stop_at_any_read_ends_it());
    test_limits();
}
//! [main]
