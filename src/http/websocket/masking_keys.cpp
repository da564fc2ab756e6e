#include "http/websocket/masking_keys.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <array>

#include <sys/random.h>

namespace simplenet::v0::http::detail {

void fill_with_random(std::span<std::byte> to) noexcept {
    // getrandom(2), NOTES: up to 256 bytes come whole, whatever signals come. What remains are a
    // kernel or a sandbox without the call.
    const ssize_t count = ::getrandom(to.data(), to.size(), 0);
    SIMPLENET_EXPECTS(count == static_cast<ssize_t>(to.size()), "getrandom(2) has failed");
}

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
