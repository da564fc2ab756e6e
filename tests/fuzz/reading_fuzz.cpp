// async_read_until() and buffered_reader: however the content is divided into reads, and whatever
// stops them in between, the calls return what the undivided content contains.

#include "fuzz/fuzz.hpp"
#include "fuzz/on_loop.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/buffered_reader.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/read_until.hpp>
#include <simplenet/testing/faulty_stream.hpp>
#include <simplenet/time/deadline.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

using namespace std::chrono_literals;
using stream = testing::faulty_stream<duplex_stream>;

constexpr std::size_t most_content = 2048;

// The expected results, from `rest` on to the end of the stream.

struct answer {
    std::error_code error;
    std::size_t length = 0; // taken from the stream
    std::size_t shown = 0;
};

answer line_in(std::string_view rest, std::size_t limit) {
    const std::size_t at = rest.find('\n');
    if (at == std::string_view::npos) {
        const bool may_end = rest.size() == limit + 1 && rest.back() == '\r';
        if (rest.size() > limit && !may_end) return {errc::limit_exceeded};
        return {errc::end_of_stream};
    }
    const std::size_t text = at != 0 && rest[at - 1] == '\r' ? at - 1 : at;
    if (text > limit) return {errc::limit_exceeded};
    return {{}, at + 1, text};
}

answer delimited_in(std::string_view rest, std::string_view delimiter, std::size_t limit) {
    const std::size_t at = rest.find(delimiter);
    const bool found = at != std::string_view::npos && at + delimiter.size() <= limit;
    if (found) return {{}, at + delimiter.size(), at + delimiter.size()};
    return {rest.size() >= limit ? errc::limit_exceeded : errc::end_of_stream};
}

answer exactly_in(std::string_view rest, std::size_t count) {
    if (rest.size() < count) return {errc::end_of_stream};
    return {{}, count, count};
}

struct plan {
    std::string content;
    std::string delimiter;
    std::vector<std::size_t> writes; // the sizes of the writes
    std::vector<std::size_t> reads;  // the sizes of the reads
    std::size_t capacity = 1;
    std::vector<std::pair<std::uint8_t, std::size_t>> calls;
};

plan decode(input from) {
    plan decoded;
    decoded.capacity = 1 + from.up_to(300);
    decoded.delimiter = from.text(1 + from.up_to(4));
    if (decoded.delimiter.empty()) decoded.delimiter.push_back('\n');
    for (std::size_t count = from.up_to(12); count-- > 0;)
        decoded.writes.push_back(1 + from.up_to(40));
    for (std::size_t count = from.up_to(12); count-- > 0;)
        decoded.reads.push_back(1 + from.up_to(40));
    for (std::size_t count = from.up_to(16); count-- > 0;) {
        const std::uint8_t what = from.byte();
        decoded.calls.emplace_back(what, from.up_to(90));
    }
    // Random bytes rarely contain a delimiter, so a quarter of the alphabet writes one, or a part.
    const bool plain = from.coin();
    for (const char each : from.rest()) {
        const auto byte = static_cast<unsigned char>(each);
        if (plain || byte < 192) {
            decoded.content += each;
        } else if (byte < 224) {
            decoded.content += decoded.delimiter;
        } else if (byte < 232) {
            decoded.content += "\r\n";
        } else {
            decoded.content += decoded.delimiter[byte % decoded.delimiter.size()];
        }
        if (decoded.content.size() >= most_content) break;
    }
    return decoded;
}

task<> write(duplex_stream to, const plan& of) {
    std::string_view left = of.content;
    for (const std::size_t size : of.writes) {
        co_await turns(size % 3);
        const std::string_view piece = left.substr(0, size);
        left.remove_prefix(piece.size());
        const auto sent = co_await async_write_all(to, piece);
        FUZZ_CHECK(sent);
    }
    const auto sent = co_await async_write_all(to, left);
    FUZZ_CHECK(sent);
    FUZZ_CHECK(to.shutdown_write());
    co_await turns(3); // first the end of the stream, then a close
}

/// Whether a call was stopped; such a call must not have consumed anything.
template <class Result>
bool was_stopped(const Result& outcome) {
    return !outcome && outcome.error() == errc::deadline_exceeded;
}

std::string_view text_of(std::string_view text) {
    return text;
}
std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class reading {
public:
    reading(duplex_stream from, const plan& of)
        : plan_{of}
        , stream_{std::move(from)}
        , reader_{stream_} {
        stream_.reads().pieces(of.reads);
    }

    task<> run() {
        for (const auto& [what, argument] : plan_.calls) {
            co_await call(what, argument);
            const std::string_view held = text_of(reader_.peek());
            FUZZ_CHECK(rest().starts_with(held));
        }
        co_await drain();
    }

private:
    [[nodiscard]] std::string_view rest() const {
        return std::string_view{plan_.content}.substr(position_);
    }

    template <class Result>
    void compare(const Result& outcome, const answer& expected) {
        if (expected.error) {
            FUZZ_CHECK(!outcome && outcome.error() == expected.error);
            return;
        }
        FUZZ_CHECK(outcome.has_value());
        FUZZ_CHECK(text_of(*outcome) == rest().substr(0, expected.shown));
        position_ += expected.length;
    }

    template <class Call>
    task<> repeat(Call make, answer expected, bool limited) {
        auto first = make();
        if (limited) {
            const auto outcome = co_await with_timeout(std::move(first), 0ns);
            if (was_stopped(outcome)) {
                auto again = make();
                const auto second = co_await std::move(again);
                compare(second, expected);
                co_return;
            }
            compare(outcome, expected);
            co_return;
        }
        const auto outcome = co_await std::move(first);
        compare(outcome, expected);
    }

    task<> call(std::uint8_t what, std::size_t argument) {
        const bool limited = (what & 0x80U) != 0;
        switch (what % 7) {
        case 0: {
            auto make = [&] { return reader_.read_line(argument); };
            co_await repeat(make, line_in(rest(), argument), limited);
            break;
        }
        case 1: {
            auto make = [&] { return reader_.read_until(plan_.delimiter, argument); };
            co_await repeat(make, delimited_in(rest(), plan_.delimiter, argument), limited);
            break;
        }
        case 2: {
            auto make = [&] { return reader_.read_exact(argument); };
            co_await repeat(make, exactly_in(rest(), argument), limited);
            break;
        }
        case 3: {
            std::string into(argument + 1, '\0');
            const auto count = co_await reader_.read_some(into);
            if (rest().empty()) {
                FUZZ_CHECK(!count && count.error() == errc::end_of_stream);
                break;
            }
            FUZZ_CHECK(count && *count != 0 && *count <= into.size());
            FUZZ_CHECK(rest().starts_with(std::string_view{into}.substr(0, *count)));
            position_ += *count;
            break;
        }
        case 4: {
            const std::size_t had = reader_.peek().size();
            const auto shown = co_await reader_.fill();
            if (had == rest().size()) {
                FUZZ_CHECK(!shown && shown.error() == errc::end_of_stream);
                break;
            }
            FUZZ_CHECK(shown && shown->size() > had && rest().starts_with(text_of(*shown)));
            break;
        }
        case 5: {
            const std::size_t count = std::min(argument, reader_.peek().size());
            reader_.consume(count);
            position_ += count;
            break;
        }
        case 6:
            co_await until(argument, limited);
            break;
        }
    }

    /// async_read_until() on the same stream, which first gets the bytes that the reader holds.
    task<> until(std::size_t limit, bool limited) {
        std::string text{text_of(reader_.peek())};
        reader_.consume(text.size());
        const answer expected = delimited_in(rest(), plan_.delimiter, limit);
        const std::size_t had = text.size();
        auto length = co_await with_timeout(async_read_until(stream_, text, plan_.delimiter, limit),
                                            limited ? 0ns : 20s);
        FUZZ_CHECK(rest().starts_with(text) && text.size() <= std::max(had, limit));
        if (was_stopped(length)) {
            length = co_await async_read_until(stream_, text, plan_.delimiter, limit);
            FUZZ_CHECK(rest().starts_with(text) && text.size() <= std::max(had, limit));
        }
        FUZZ_CHECK(length.has_value() == !expected.error);
        if (length) FUZZ_CHECK(*length == expected.length);
        if (!length) FUZZ_CHECK(length.error() == expected.error);
        position_ += text.size();
    }

    task<> drain() {
        std::string all;
        for (;;) {
            std::string into(37, '\0');
            const auto count = co_await reader_.read_some(into);
            if (!count) {
                FUZZ_CHECK(count.error() == errc::end_of_stream);
                break;
            }
            all += into.substr(0, *count);
        }
        FUZZ_CHECK(all == rest());
    }

    const plan& plan_;
    stream stream_;
    buffered_reader<stream&> reader_;
    std::size_t position_ = 0; // in the content, after the bytes taken by calls
};

task<> both(const plan& of) {
    auto [ours, theirs] = duplex(of.capacity);
    auto writing = spawn(write(std::move(theirs), of));
    reading reads{std::move(ours), of};
    co_await reads.run();
    co_await writing;
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    const plan decoded = decode({data, size});
    run_on(shared_loop(simplenet::backend::epoll), both(decoded));
    return 0;
}
