// frame_writer and frame_reader: what a writer wrote, and any other bytes behind it, is read as a
// simple parser reads it, however it is divided into reads and whatever stops them in between.

#include "fuzz/fuzz.hpp"
#include "fuzz/on_loop.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/frame_reader.hpp>
#include <simplenet/stream/frame_writer.hpp>
#include <simplenet/testing/faulty_stream.hpp>
#include <simplenet/time/deadline.hpp>

#include <bit>
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

using namespace std::chrono_literals;
using stream = testing::faulty_stream<duplex_stream>;

struct call {
    std::size_t limit = 0;
    bool limited = false; // in time: no wait at all
    bool raw = false;     // a read_some()
};

struct plan {
    frame_format format;
    std::size_t capacity = 1;
    std::vector<std::string> bodies;
    std::string tail;
    std::vector<std::size_t> reads; // the sizes of the reads
    std::vector<call> calls;
    std::string content; // all bytes that arrive
};

/// The prefix, as the documentation describes it.
std::string prefix_of(std::size_t length, frame_format format) {
    std::string text;
    if (format.prefix == frame_prefix::varint) {
        for (; length > 127; length /= 128)
            text.push_back(static_cast<char>(length % 128 + 128));
        text.push_back(static_cast<char>(length));
        return text;
    }
    const std::size_t size = std::size_t{1} << static_cast<unsigned>(format.prefix);
    for (std::size_t at = 0; at < size; ++at) {
        text.push_back(static_cast<char>(length % 256));
        length /= 256;
    }
    if (format.order == std::endian::big) std::ranges::reverse(text);
    return text;
}

plan decode(input from) {
    plan decoded;
    decoded.format.prefix = static_cast<frame_prefix>(from.up_to(4));
    if (from.coin()) decoded.format.order = std::endian::little;
    decoded.capacity = 1 + from.up_to(300);
    for (std::size_t count = from.up_to(12); count-- > 0;)
        decoded.reads.push_back(1 + from.up_to(40));
    for (std::size_t count = from.up_to(8); count-- > 0;)
        decoded.bodies.push_back(pattern(0, from.up_to(255)));
    for (std::size_t count = from.up_to(16); count-- > 0;) {
        const std::uint8_t what = from.byte();
        decoded.calls.push_back(
            {.limit = from.up_to(300), .limited = (what & 1U) != 0, .raw = (what & 14U) == 14});
    }
    decoded.tail = from.text(1000);
    for (const std::string& body : decoded.bodies)
        decoded.content += prefix_of(body.size(), decoded.format) + body;
    decoded.content += decoded.tail;
    return decoded;
}

struct answer {
    std::error_code error;
    std::size_t prefix = 0;
    std::size_t body = 0;
};

answer frame_in(std::string_view rest, frame_format format, std::size_t limit) {
    std::size_t prefix = 0;
    std::uint64_t length = 0;
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(rest[at]); };
    if (format.prefix == frame_prefix::varint) {
        bool more = true;
        for (unsigned shift = 0; more; shift += 7, ++prefix) {
            if (prefix == rest.size()) return {errc::end_of_stream};
            // 9 bytes contain 63 bits; so the tenth one is the last, and 0 or 1.
            if (prefix == 9 && byte(prefix) > 1) {
                return {std::make_error_code(std::errc::bad_message)};
            }
            length |= (byte(prefix) & std::uint64_t{127}) << shift;
            more = byte(prefix) >= 128;
        }
    } else {
        prefix = std::size_t{1} << static_cast<unsigned>(format.prefix);
        if (rest.size() < prefix) return {errc::end_of_stream};
        for (std::size_t at = 0; at < prefix; ++at)
            length = length * 256 + byte(format.order == std::endian::big ? at : prefix - 1 - at);
    }
    if (length > limit) return {errc::limit_exceeded};
    if (rest.size() - prefix < length) return {errc::end_of_stream};
    return {{}, prefix, static_cast<std::size_t>(length)};
}

task<> write(duplex_stream to, const plan& of) {
    frame_writer writer{to, of.format};
    for (const std::string& body : of.bodies) {
        if (body.size() % 3 == 0) {
            const auto written = co_await writer.write_frame(body);
            FUZZ_CHECK(written);
            continue;
        }
        std::vector<const_buffer> parts;
        for (std::size_t at = 0; at < body.size(); at += 1 + body.size() / 11)
            parts.emplace_back(std::string_view{body}.substr(at, 1 + body.size() / 11));
        const auto written = co_await writer.write_frame(std::span<const const_buffer>{parts});
        FUZZ_CHECK(written);
    }
    const auto sent = co_await async_write_all(to, of.tail);
    FUZZ_CHECK(sent);
    FUZZ_CHECK(to.shutdown_write());
    co_await turns(3); // first the end of the stream, then a close
}

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class reading {
public:
    reading(duplex_stream from, const plan& of)
        : plan_{of}
        , stream_{std::move(from)}
        , reader_{stream_, of.format} {
        stream_.reads().pieces(of.reads);
    }

    task<> run() {
        for (const call& each : plan_.calls) {
            if (each.raw) {
                co_await read_some(each.limit + 1);
            } else {
                co_await read_frame(each);
            }
            FUZZ_CHECK(rest().starts_with(text_of(reader_.peek())));
        }
        while (!rest().empty())
            co_await read_some(37);
        co_await read_some(1);
    }

private:
    [[nodiscard]] std::string_view rest() const {
        return std::string_view{plan_.content}.substr(position_);
    }

    task<> read_frame(call how) {
        const answer expected = frame_in(rest(), plan_.format, how.limit);
        auto outcome = co_await with_timeout(reader_.read_frame(how.limit),
                                             how.limited ? 0ns : std::chrono::nanoseconds{20s});
        if (!outcome && outcome.error() == errc::deadline_exceeded) {
            outcome = co_await reader_.read_frame(how.limit);
        }
        if (expected.error) {
            FUZZ_CHECK(!outcome && outcome.error() == expected.error);
            co_return;
        }
        FUZZ_CHECK(outcome.has_value());
        FUZZ_CHECK(text_of(*outcome) == rest().substr(expected.prefix, expected.body));
        position_ += expected.prefix + expected.body;
    }

    task<> read_some(std::size_t size) {
        std::string into(size, '\0');
        const auto count = co_await reader_.read_some(into);
        if (rest().empty()) {
            FUZZ_CHECK(!count && count.error() == errc::end_of_stream);
            co_return;
        }
        FUZZ_CHECK(count && *count != 0 && *count <= into.size());
        FUZZ_CHECK(rest().starts_with(std::string_view{into}.substr(0, *count)));
        position_ += *count;
    }

    const plan& plan_;
    stream stream_;
    frame_reader<stream&> reader_;
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
