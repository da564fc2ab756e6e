#pragma once
// context_state: what all versions of a context's material have in common. Layer tls, private.

#include "tls/library_context.hpp"
#include "tls/session_store.hpp"
#include "tls/settings.hpp"
#include "tls/ticket_keys.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <memory>
#include <utility>

namespace simplenet::v0::tls::detail {

/// Any thread. Owned by the context and by its material.
struct context_state {
    explicit context_state(std::unique_ptr<const settings> with)
        : config{std::move(with)}
        , tickets{config->ticket_lifetime} {}

    const std::unique_ptr<const settings> config;
    library_context library; // outlives what is made in it
    session_store own_sessions{1024};
    session_store* sessions = &own_sessions;
    ticket_keys tickets;
    unique_fd key_log;
};

} // namespace simplenet::v0::tls::detail
