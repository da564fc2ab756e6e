#include "http/gateway/client_watch.hpp"

#include <array>
#include <cstddef>

#include <poll.h>

namespace simplenet::v0::http::detail {

void tell_left_clients(simplenet::detail::intrusive_list<client_watch>& all) noexcept {
    std::array<pollfd, 64> sockets;
    std::array<client_watch*, 64> watches;
    std::size_t count = 0;
    const auto look = [&] {
        if (::poll(sockets.data(), count, 0) > 0) {
            for (std::size_t each = 0; each != count; ++each)
                if (sockets[each].revents != 0) watches[each]->client_has_left();
        }
        count = 0;
    };
    all.for_each([&](client_watch& each) {
        if (!each.is_place_wanted()) return;
        sockets[count] = {.fd = each.client(), .events = POLLRDHUP, .revents = 0};
        watches[count] = &each;
        if (++count == sockets.size()) look();
    });
    if (count != 0) look();
}

} // namespace simplenet::v0::http::detail
