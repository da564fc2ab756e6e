#include "http/random.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <sys/random.h>

namespace simplenet::v0::http::detail {

void fill_with_random(std::span<std::byte> to) noexcept {
    // getrandom(2), NOTES: up to 256 bytes come whole, whatever signals come. What remains are a
    // kernel or a sandbox without the call.
    const ssize_t count = ::getrandom(to.data(), to.size(), 0);
    SIMPLENET_EXPECTS(count == static_cast<ssize_t>(to.size()), "getrandom(2) has failed");
}

} // namespace simplenet::v0::http::detail
