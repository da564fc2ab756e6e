#pragma once
// Common parts of the fuzzers: how bytes become decisions, and how a wrong answer is reported.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <simplenet/core/abi.hpp>

/// Called by libFuzzer, or by replay_main.cpp with the files of the corpus.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Active in release builds too. Aborts, which libFuzzer reports as a finding.
#define FUZZ_CHECK(condition)                                                                      \
    (static_cast<bool>(condition) ? static_cast<void>(0)                                           \
                                  : simplenet::fuzz::wrong(__FILE__, __LINE__, #condition))

namespace simplenet::v0::fuzz {

[[noreturn]] inline void wrong(const char* file, int line, const char* condition) {
    std::fprintf(stderr, "%s:%d: wrong: %s\n", file, line, condition);
    std::abort();
}

/// The bytes of an input, as decisions. Zeros and empty values once they are used up, so that every
/// input is valid.
class input {
public:
    input(const std::uint8_t* data, std::size_t size)
        : left_{data, size} {}

    [[nodiscard]] bool empty() const { return left_.empty(); }

    std::uint8_t byte() {
        if (left_.empty()) return 0;
        const std::uint8_t first = left_.front();
        left_ = left_.subspan(1);
        return first;
    }
    /// 0 to `most`.
    std::size_t up_to(std::size_t most) {
        std::size_t number = byte();
        if (most > 255) number |= static_cast<std::size_t>(byte()) << 8U;
        return number % (most + 1);
    }
    bool coin() { return byte() % 2 != 0; }

    std::string_view text(std::size_t size) {
        const std::size_t count = std::min(size, left_.size());
        const std::string_view taken{reinterpret_cast<const char*>(left_.data()), count};
        left_ = left_.subspan(count);
        return taken;
    }
    std::string_view rest() { return text(left_.size()); }

private:
    std::span<const std::uint8_t> left_;
};

/// `size` bytes of a stream from `offset` on, without repetitions, and with ends of lines.
inline std::string pattern(std::size_t offset, std::size_t size, unsigned stream = 0) {
    std::string text(size, '\0');
    for (char& each : text) {
        const std::size_t mixed = (offset + 1) * 0x9e3779b97f4a7c15U + stream * 0x632be59bd9b4e019U;
        each = offset % 23 == 22 ? '\n' : static_cast<char>('a' + (mixed >> 40U) % 26);
        ++offset;
    }
    return text;
}

} // namespace simplenet::v0::fuzz
