#include "http/websocket/masking_keys.hpp"

#include "http/random.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace simplenet::v0::http::detail {

websocket_mask next_mask() noexcept {
    // Of the thread, so that a connection needs no memory for it. A mask is used once and then
    // erased: it says nothing about others, but memory that is read by mistake should not either.
    struct batch {
        std::array<std::byte, 256> bytes{};
        std::size_t used = 256;
    };
    static thread_local batch keys;
    websocket_mask mask; // NOLINT(*-member-init): filled below
    if (keys.used == keys.bytes.size()) {
        fill_with_random(keys.bytes);
        keys.used = 0;
    }
    const auto next = std::span{keys.bytes}.subspan(keys.used, mask.size());
    std::ranges::copy(next, mask.begin());
    std::ranges::fill(next, std::byte{0});
    keys.used += mask.size();
    return mask;
}

} // namespace simplenet::v0::http::detail
