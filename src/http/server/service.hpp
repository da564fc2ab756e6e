#pragma once
// server_state and loop_state: what the loops of an HTTP server share, and what each has of it.
// Layer http, private.

#include "http/server/route_table.hpp"

#include <simplenet/http/limits.hpp>
#include <simplenet/http/server.hpp>
#include <simplenet/sync/async_mutex.hpp>

#if SIMPLENET_HAS_TLS
#include <simplenet/tls/server.hpp>
#endif

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace simplenet::v0::http::detail {

/// How requests are answered: what replace() replaces as one, so that no request sees a part of it.
struct serving {
    serving(route_table of, const server_options& options)
        : routes{std::move(of)}
        , with{options.limits}
        , on_answered{options.on_answered}
        , context{options.context}
        , types_{options.compression.types.begin(), options.compression.types.end()}
        , type_views_{types_.begin(), types_.end()}
        , compression{type_views_, options.compression.minimum, options.compression.level} {}
    /// Other routes, and everything else as in `before`.
    serving(route_table of, const serving& before)
        : serving{std::move(of), server_options{.server = {},
                                                .limits = before.with,
                                                .tls = nullptr,
                                                .compression = before.compression,
                                                .on_answered = before.on_answered,
                                                .context = before.context}} {}
    serving(const serving&) = delete;
    serving& operator=(const serving&) = delete;
    ~serving() = default;

    const route_table routes;
    const limits with;
    void (*const on_answered)(const answered_request&, void*) noexcept;
    void* const context;

private:
    const std::vector<std::string> types_;
    const std::vector<std::string_view> type_views_;

public:
    const compression_options compression; // its texts are those above
};

#if SIMPLENET_HAS_TLS
/// How handshakes are made. Null: `with` is not a server's context.
[[nodiscard]] std::shared_ptr<tls::detail::handshake_settings>
handshakes_of(const tls::context& with, const simplenet::server_options& transport,
              const limits& of);
#endif

/// What replace() replaces.
struct served {
    std::shared_ptr<const serving> what;
#if SIMPLENET_HAS_TLS
    std::shared_ptr<tls::detail::handshake_settings> handshakes; // null: without TLS
#endif
};

/// Shared by the handle and the loops. Any thread.
class server_state {
public:
    server_state(const server_options& options, served first)
        : transport_{options.server}
        , served_{std::move(first)} {}

    /// Null `options`: only the routes. False: `context` cannot be used.
    [[nodiscard]] bool replace(route_table routes, const server_options* options,
                               const tls::context* context);
    [[nodiscard]] bool has_tls() const;
    [[nodiscard]] std::uint64_t handshakes_failed() const;
    /// Counts the calls of replace().
    [[nodiscard]] std::uint64_t version() const noexcept {
        return version_.load(std::memory_order_acquire);
    }
    [[nodiscard]] served current(std::uint64_t& version) const {
        const std::lock_guard locked{mutex_};
        version = version_.load(std::memory_order_relaxed);
        return served_;
    }

    /// A counter of requests that one loop writes.
    using counter = std::atomic<std::uint64_t>;
    [[nodiscard]] std::shared_ptr<counter> add_counter() {
        // A line of its own: loops count every request.
        struct alignas(64) padded {
            counter requests = 0;
        };
        auto added = std::make_shared<padded>();
        const std::lock_guard locked{mutex_};
        return counters_.emplace_back(added, &added->requests);
    }
    [[nodiscard]] std::uint64_t requests() const {
        const std::lock_guard locked{mutex_};
        std::uint64_t sum = 0;
        for (const auto& each : counters_)
            sum += each->load(std::memory_order_relaxed);
        return sum;
    }

private:
    const simplenet::server_options transport_;
    std::atomic<std::uint64_t> version_ = 0;
    mutable std::mutex mutex_;
    served served_;
    std::uint64_t failed_before_ = 0; // handshakes of contexts that were replaced
    std::vector<std::shared_ptr<counter>> counters_;
};

/// What is served, with a count of its own for each loop: loops do not share the line of a counter.
struct local_serving {
    std::shared_ptr<const serving> what;
};

/// One loop's view of a server_state.
class loop_state {
public:
    explicit loop_state(std::shared_ptr<server_state> of)
        : server{std::move(of)}
        , requests_{server->add_counter()} {}
    loop_state(const loop_state&) = delete;
    loop_state& operator=(const loop_state&) = delete;
    ~loop_state() = default;

    /// Lets `serving` be the current one.
    void refresh(std::shared_ptr<const local_serving>& serving) {
        look();
        if (serving != serving_) serving = serving_;
    }
    /// What is served now.
    [[nodiscard]] const std::shared_ptr<const local_serving>& current() {
        look();
        return serving_;
    }
    /// The limits of the latest refresh() or look(), valid until the next one.
    [[nodiscard]] const limits& with() const noexcept { return serving_->what->with; }
    /// Takes what replace() has left. Allocates then.
    void look() {
        if (serving_ && server->version() == version_) return;
        served now = server->current(version_);
        locals_.clear(); // their owners may be gone, and their addresses used again
        serving_ = std::make_shared<const local_serving>(std::move(now.what));
#if SIMPLENET_HAS_TLS
        handshakes_ = std::move(now.handshakes);
#endif
    }
#if SIMPLENET_HAS_TLS
    /// The current settings of handshakes.
    [[nodiscard]] const std::shared_ptr<tls::detail::handshake_settings>& handshakes() {
        look();
        return handshakes_;
    }
#endif
    void count_request() noexcept {
        const std::uint64_t before = requests_->load(std::memory_order_relaxed);
        requests_->store(before + 1, std::memory_order_relaxed);
    }

    /// What a handler keeps on this loop, made when it is first asked for.
    template <class T, class Make>
    [[nodiscard]] std::shared_ptr<T> local(const void* owner, Make make) {
        std::shared_ptr<void>& slot = locals_[owner];
        if (!slot) slot = make();
        return std::static_pointer_cast<T>(slot);
    }

    const std::shared_ptr<server_state> server;
    /// One holder in each turn of the loop, see exchange::take_turn().
    async_mutex long_steps;

private:
    const std::shared_ptr<server_state::counter> requests_;
    std::unordered_map<const void*, std::shared_ptr<void>> locals_; // by the handler
    std::uint64_t version_ = 0;
    std::shared_ptr<const local_serving> serving_;
#if SIMPLENET_HAS_TLS
    std::shared_ptr<tls::detail::handshake_settings> handshakes_;
#endif
};

} // namespace simplenet::v0::http::detail
