// callbacks::buffer: any sequence of calls leaves what a string would hold, whether its content is
// its own or lent, and moves no more bytes than were added or retrieved.

#include "fuzz/fuzz.hpp"

#include <simplenet/callbacks/buffer.hpp>

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::fuzz {
namespace {

using callbacks::buffer;

/// `size` bytes, most significant first.
std::string network_order(std::uint64_t value, std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t at = size; at-- > 0; value /= 256)
        text[at] = static_cast<char>(value % 256);
    return text;
}

class play {
public:
    explicit play(input from)
        : from_{from} {}

    void run() {
        while (!from_.empty()) {
            step();
            FUZZ_CHECK(bytes_.text() == model_ && bytes_.readable() == model_.size());
            FUZZ_CHECK(lent_ == lent_as_);
        }
        FUZZ_CHECK(moved_ <= 4 * turned_over_ + 100'000);
        FUZZ_CHECK(bytes_.retrieve_all_as_string() == model_);
    }

private:
    void step() {
        switch (from_.up_to(11)) {
        case 0:
        case 1: {
            const std::string text = fresh(from_.up_to(3000));
            adds([&] { bytes_.append(text); }, 0, text);
            break;
        }
        case 2: {
            const std::string text = fresh(from_.up_to(40));
            adds([&] { bytes_.prepend(text); }, text.size(), text);
            break;
        }
        case 3: { // a part of itself
            const std::size_t at = from_.up_to(model_.size());
            const std::string text = model_.substr(at, from_.up_to(100));
            const const_buffer part{bytes_.peek() + at, text.size()};
            if (from_.coin()) {
                adds([&] { bytes_.append(part); }, 0, text);
            } else {
                adds([&] { bytes_.prepend(part); }, text.size(), text);
            }
            break;
        }
        case 4: {
            const std::size_t wanted = 1 + from_.up_to(3000);
            const std::string text = fresh(from_.up_to(wanted));
            const auto write = [&] {
                const mutable_buffer space = bytes_.prepare(wanted);
                FUZZ_CHECK(space.size() >= wanted);
                std::memcpy(space.data(), text.data(), text.size());
                bytes_.commit(text.size());
            };
            adds(write, 0, text);
            break;
        }
        case 5:
        case 6: {
            const std::size_t count = from_.up_to(model_.size());
            if (from_.coin()) {
                bytes_.retrieve_until(bytes_.peek() + count);
            } else {
                FUZZ_CHECK(bytes_.retrieve_as_string(count) == model_.substr(0, count));
            }
            retrieved(count);
            break;
        }
        case 7:
            integer();
            break;
        case 8:
            searches();
            break;
        case 9:
            moves();
            break;
        case 10:
            if (from_.byte() < 16) bytes_.shrink();
            break;
        default:
            lends();
        }
    }

    void integer() {
        const std::size_t size = std::size_t{2} << from_.up_to(2);
        const std::string text = fresh(size);
        std::uint64_t value = 0;
        for (const char each : text)
            value = value * 256 + static_cast<unsigned char>(each);
        const auto append = [&] {
            if (size == 2) return bytes_.append_u16(static_cast<std::uint16_t>(value));
            if (size == 4) return bytes_.append_u32(static_cast<std::uint32_t>(value));
            bytes_.append_u64(value);
        };
        const auto prepend = [&] {
            if (size == 2) return bytes_.prepend_u16(static_cast<std::uint16_t>(value));
            if (size == 4) return bytes_.prepend_u32(static_cast<std::uint32_t>(value));
            bytes_.prepend_u64(value);
        };
        if (from_.coin()) {
            adds(append, 0, text);
        } else {
            adds(prepend, size, text);
        }
        const std::uint64_t seen = size == 2   ? bytes_.peek_u16()
                                   : size == 4 ? bytes_.peek_u32()
                                               : bytes_.peek_u64();
        FUZZ_CHECK(network_order(seen, size) == model_.substr(0, size));
        if (!from_.coin()) return;
        const std::uint64_t read = size == 2   ? bytes_.read_u16()
                                   : size == 4 ? bytes_.read_u32()
                                               : bytes_.read_u64();
        FUZZ_CHECK(read == seen);
        retrieved(size);
    }

    void searches() {
        const std::size_t start = from_.up_to(model_.size());
        const char wanted = static_cast<char>(from_.byte());
        const auto agrees = [&](const char* found, std::size_t at) {
            return at == std::string::npos ? found == nullptr : found == bytes_.peek() + at;
        };
        FUZZ_CHECK(agrees(bytes_.find(wanted), model_.find(wanted)));
        FUZZ_CHECK(agrees(bytes_.find(wanted, bytes_.peek() + start), model_.find(wanted, start)));
        FUZZ_CHECK(agrees(bytes_.find_crlf(), model_.find("\r\n")));
        FUZZ_CHECK(agrees(bytes_.find_crlf(bytes_.peek() + start), model_.find("\r\n", start)));
    }

    void moves() {
        turned_over_ += model_.size(); // lent content is copied
        if (from_.coin()) {
            buffer other{std::move(bytes_)};
            FUZZ_CHECK(bytes_.readable() == 0); // NOLINT(bugprone-use-after-move): promised
            bytes_ = std::move(other);
        } else {
            buffer other;
            other.append(model_);
            std::swap(bytes_, other);
            FUZZ_CHECK(other.text() == model_);
        }
    }

    /// As a connection does it with what it receives.
    void lends() {
        turned_over_ += model_.size();
        const char* const before = bytes_.peek();
        bytes_.own();
        if (bytes_.peek() != before) moved_ += model_.size();
        if (!model_.empty()) return;
        FUZZ_CHECK(bytes_.peek() == nullptr);
        lent_ = fresh(from_.up_to(3000));
        lent_as_ = lent_;
        bytes_.lend(lent_);
        FUZZ_CHECK(bytes_.readable() == 0 || bytes_.peek() == lent_.data());
        model_ = lent_;
        turned_over_ += lent_.size();
    }

    template <class Call>
    void adds(Call call, std::size_t in_front, const std::string& text) {
        const char* const before = bytes_.peek();
        call();
        if (!model_.empty() && bytes_.peek() + in_front != before) moved_ += model_.size();
        model_.insert(in_front == 0 ? model_.size() : 0, text);
        turned_over_ += text.size();
    }
    void retrieved(std::size_t count) {
        model_.erase(0, count);
        turned_over_ += count;
    }
    std::string fresh(std::size_t size) {
        std::string text = pattern(made_, size);
        for (std::size_t at = 0; at + 1 < size && at < 4; at += 2)
            if (from_.byte() < 32) text.replace(at, 2, "\r\n");
        made_ += size;
        return text;
    }

    input from_;
    std::string lent_; // lives longer than the buffer
    std::string lent_as_;
    buffer bytes_;
    std::string model_;
    std::size_t made_ = 0;
    std::size_t moved_ = 0;       // bytes, by calls that add
    std::size_t turned_over_ = 0; // bytes that were added or retrieved
};

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet::fuzz;
    play{{data, size}}.run();
    return 0;
}
