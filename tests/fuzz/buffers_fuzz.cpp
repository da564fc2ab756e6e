// Bytes in memory: slices of buffers, the contents of a buffered_reader, the queue of a
// queued_writer. Each is compared with a string.

#include "fuzz/fuzz.hpp"

#include <simplenet/core/buffer.hpp>
#include <simplenet/stream/buffered_reader.hpp>
#include <simplenet/stream/detail/write_queue.hpp>

#include <array>
#include <span>
#include <string>
#include <vector>

namespace simplenet::v0::fuzz {
namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void slices(input from) {
    std::string text = pattern(0, from.up_to(300));
    const_buffer whole{text};
    mutable_buffer writable{text};
    std::string_view expected = text;
    while (!from.empty()) {
        const std::size_t at = from.up_to(expected.size());
        const std::size_t size = from.up_to(expected.size() - at);
        switch (from.byte() % 3) {
        case 0:
            whole = whole.first(at);
            writable = writable.first(at);
            expected = expected.substr(0, at);
            break;
        case 1:
            whole = whole.subspan(at);
            writable = writable.subspan(at);
            expected = expected.substr(at);
            break;
        case 2:
            whole = whole.subspan(at, size);
            writable = writable.subspan(at, size);
            expected = expected.substr(at, size);
            break;
        }
        FUZZ_CHECK(text_of(whole) == expected && whole.empty() == expected.empty());
        FUZZ_CHECK(text_of(const_buffer{writable}) == expected);
    }
}

void read_buffers(input from) {
    detail::read_buffer buffer;
    std::string expected;
    std::size_t read = 0;
    while (!from.empty()) {
        switch (from.byte() % 4) {
        case 0:
        case 1: {
            const std::size_t wanted = from.up_to(6000);
            const mutable_buffer space = buffer.prepare(wanted);
            FUZZ_CHECK(!space.empty());
            const std::string bytes =
                pattern(read, from.up_to(std::min<std::size_t>(space.size(), 9000)));
            std::memcpy(space.data(), bytes.data(), bytes.size());
            buffer.commit(bytes.size());
            read += bytes.size();
            expected += bytes;
            break;
        }
        case 2: {
            const std::size_t count = from.up_to(expected.size());
            buffer.consume(count);
            expected.erase(0, count);
            break;
        }
        case 3: {
            detail::read_buffer other = std::move(buffer);
            FUZZ_CHECK(buffer.size() == 0);
            buffer = std::move(other);
            break;
        }
        }
        FUZZ_CHECK(text_of(buffer.bytes()) == expected);
    }
}

template <class Container>
void adopt(detail::write_queue& queue, std::string_view bytes, std::size_t spare) {
    Container given;
    given.reserve(bytes.size() + spare);
    const auto* const data = reinterpret_cast<const typename Container::value_type*>(bytes.data());
    given.assign(data, data + bytes.size());
    queue.adopt(given);
}

void write_queues(input from) {
    detail::write_queue queue;
    std::string expected;
    std::size_t written = 0;
    while (!from.empty()) {
        const unsigned what = from.byte() % 6;
        const std::string bytes = pattern(written, what < 4 ? from.up_to(5000) : 0);
        switch (what) {
        case 0:
        case 1:
            queue.append(const_buffer{bytes});
            break;
        case 2:
            adopt<std::string>(queue, bytes, from.up_to(5000));
            break;
        case 3:
            adopt<std::vector<std::byte>>(queue, bytes, from.up_to(5000));
            break;
        case 4: {
            const std::size_t count = from.up_to(expected.size());
            queue.consume(count);
            expected.erase(0, count);
            break;
        }
        case 5:
            if (from.byte() > 8) break;
            queue.clear();
            expected.clear();
            break;
        }
        expected += bytes;
        written += bytes.size();
        FUZZ_CHECK(queue.size() == expected.size() && queue.empty() == expected.empty());

        std::array<const_buffer, 5> gathered;
        const std::size_t many = queue.gather(std::span{gathered}.first(1 + from.up_to(4)));
        FUZZ_CHECK((many == 0) == expected.empty());
        std::string seen;
        for (const const_buffer& each : std::span{gathered}.first(many)) {
            FUZZ_CHECK(!each.empty());
            seen += text_of(each);
        }
        FUZZ_CHECK(expected.starts_with(seen));
        // A view stays in place while more bytes are appended.
        queue.append("tail");
        expected += "tail";
        std::string again;
        for (const const_buffer& each : std::span{gathered}.first(many))
            again += text_of(each);
        FUZZ_CHECK(again == seen);
    }
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    if (size > 4096) return 0;
    input from{data, size};
    switch (from.byte() % 3) {
    case 0:
        slices(from);
        break;
    case 1:
        read_buffers(from);
        break;
    default:
        write_queues(from);
    }
    return 0;
}
