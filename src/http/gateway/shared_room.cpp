#include "http/gateway/shared_room.hpp"

namespace simplenet::v0::http::detail {

bool shared_room::take(std::uint64_t bytes, std::uint64_t has) noexcept {
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    while (left >= bytes && left - bytes >= has + bytes) {
        if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) return true;
    }
    return false;
}

} // namespace simplenet::v0::http::detail
