#pragma once
// pieces: a stream of somebody else's that gives its content in reads of a test's choice.

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

/// Gives one piece at each read, or what fits of it, and then `end` for ever. Never waits.
class pieces {
public:
    explicit pieces(std::vector<std::string> parts,
                    std::error_code end = make_error_code(errc::end_of_stream))
        : parts_{parts.begin(), parts.end()}
        , end_{end} {}
    /// Cut into pieces of `size()` bytes each.
    template <class Size>
    pieces(std::string_view text, Size size)
        : pieces{{}} {
        while (!text.empty()) {
            const std::size_t count = std::min<std::size_t>(size(), text.size());
            parts_.emplace_back(text.substr(0, count));
            text.remove_prefix(count);
        }
    }

    /// The read of this number, from 0, throws.
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
