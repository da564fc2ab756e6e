#pragma once
// context_core: the state behind a context. Layer tls, private.

#include "tls/context_state.hpp"
#include "tls/material.hpp"

#include <expected>
#include <memory>
#include <mutex>
#include <utility>

namespace simplenet::v0::tls::detail {

/// Owned by the handles. Any thread.
class context_core {
public:
    explicit context_core(std::shared_ptr<context_state> state) noexcept
        : state_{std::move(state)} {}

    /// Reads the files; on failure nothing changes.
    [[nodiscard]] std::expected<void, bad_material> load();
    /// What a handshake that begins now uses. @pre loaded.
    [[nodiscard]] std::shared_ptr<const material> current() const {
        const std::lock_guard locked{mutex_};
        return current_;
    }
    [[nodiscard]] side plays() const noexcept { return state_->config->plays; }

private:
    const std::shared_ptr<context_state> state_;
    std::mutex loading_; // one at a time: what was read last is what is used
    mutable std::mutex mutex_;
    std::shared_ptr<const material> current_;
};

} // namespace simplenet::v0::tls::detail
