#pragma once
// httpd::crowd_watch: notices that a crowd of clients has left. Used by the program, which then
// gives memory back.

#include <algorithm>
#include <cstddef>

namespace httpd {

/// Finds out that a crowd has left from the number of connections, which it is told periodically.
class crowd_watch {
public:
    /// Fewer connections need little memory.
    static constexpr std::size_t smallest_crowd = 500;

    /// @return Whether half of a crowd has left since the last call that returned true.
    [[nodiscard]] bool has_crowd_left(std::size_t connections) noexcept {
        most_ = std::max(most_, connections);
        if (most_ < smallest_crowd || connections > most_ / 2) return false;
        most_ = connections;
        return true;
    }

private:
    std::size_t most_ = 0;
};

} // namespace httpd
