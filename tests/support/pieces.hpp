#pragma once
// pieces: a foreign stream that returns its content in reads chosen by a test.

#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {

/// Each read returns one piece, or as much as fits, and then `end` forever. Never waits.
class pieces {
public:
    explicit pieces(std::vector<std::string> parts,
                    std::error_code end = make_error_code(errc::end_of_stream))
        : parts_{parts.begin(), parts.end()}
        , end_{end} {}
    /// Divides `text` into pieces of `size()` bytes each.
    template <class Size>
    pieces(std::string_view text, Size size)
        : pieces{{}} {
        while (!text.empty()) {
            const std::size_t count = std::min<std::size_t>(size(), text.size());
            parts_.emplace_back(text.substr(0, count));
            text.remove_prefix(count);
        }
    }

    /// Makes the read with this number, counted from 0, throw.
    void throw_at_read(int number) { throws_at_ = number; }

    task<result<std::size_t>> read_some(mutable_buffer into) {
        if (reads_++ == throws_at_) throw std::runtime_error{"the stream"};
        if (parts_.empty()) co_return fail(end_);
        std::string& part = parts_.front();
        const std::size_t count = std::min(part.size(), into.size());
        std::memcpy(into.data(), part.data(), count);
        part.erase(0, count);
        if (part.empty()) parts_.pop_front();
        co_return count;
    }

private:
    std::deque<std::string> parts_;
    std::error_code end_;
    int reads_ = 0;
    int throws_at_ = -1;
};

} // namespace simplenet::v0::testing
