#pragma once
// client_watch: a client that leaves while a backend works for it. Layer http, private.

#include "http/server/fair_places.hpp"

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/coro/detail/endable_wait.hpp>

namespace simplenet::v0::http::detail {

/// Lets a wait for a backend end, as canceled, once its client has left and its place is wanted:
/// clients that ask and leave must not keep others from the backend for as long as that is silent.
/// See backend_connections::watch().
class client_watch final : public simplenet::detail::endable_wait,
                           public simplenet::detail::list_hook<> {
public:
    /// @param client  The socket of the client, which outlives this.
    /// @param held    Its place, which outlives this.
    client_watch(int client, const fair_places::place& held) noexcept
        : client_{client}
        , held_{held} {}

    [[nodiscard]] int client() const noexcept { return client_; }
    [[nodiscard]] bool is_place_wanted() const noexcept { return held_.is_wanted(); }
    void client_has_left() noexcept { end(simplenet::detail::stop_reason::canceled); }

private:
    const int client_;
    const fair_places::place& held_;
};

/// Tells those in `all` whose place is wanted, and whose client has ended its side or the
/// connection. A poll(2) for 64 of them.
void tell_left_clients(simplenet::detail::intrusive_list<client_watch>& all) noexcept;

} // namespace simplenet::v0::http::detail
