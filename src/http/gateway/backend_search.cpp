#include "http/gateway/backend_search.hpp"

#include "sys/lack_of_descriptors.hpp"

#include <simplenet/server/server_stop.hpp>

namespace simplenet::v0::http::detail {

namespace {

/// Whether connecting failed for want of something on this side: descriptors, memory, or ports.
/// That says nothing about the backend.
[[nodiscard]] bool is_own_shortage(const std::error_code& why) noexcept {
    return simplenet::detail::sys::lacks_descriptors(why) || why == std::errc::no_buffer_space ||
           why == std::errc::not_enough_memory ||
           why == std::errc::address_not_available; // no port is left, connect(2)
}

} // namespace

std::optional<backend_lease> backend_search::next() noexcept {
    // The counts of the set are those of all loops, but places are those of one.
    backend_marks full;
    // Without time from the beginning, a request still learns from one of them that all are full.
    const bool is_time_up = wait_ <= std::chrono::nanoseconds::zero() && !tried_.empty();
    for (std::size_t each = 0; among_.size() > 1 && each < among_.size(); ++each) {
        if (over_.has_room(each, client_)) continue;
        (is_time_up ? tried_ : full).add(each);
    }
    return among_.pick(tried_, backend_set::clock::now(), full);
}

no_connection backend_search::judge(std::error_code why) noexcept {
    using enum gateway_event;
    if (why == std::errc::resource_unavailable_try_again) {
        return {503, trouble, "waiting for a connection"};
    }
    // Another backend may have an idle connection, or be reached from other ports.
    if (is_own_shortage(why)) {
        if (simplenet::detail::sys::lacks_descriptors(why))
            simplenet::detail::note_lack_of_descriptors();
        return {503, trouble, "connecting"};
    }
    return {why == std::errc::timed_out ? 504U : 502U, failed, "connecting"};
}

} // namespace simplenet::v0::http::detail
