#pragma once
// server_state and loop_state: what the loops of an HTTP server share, and what each has of it.
// Layer http, private.

#include "http/server/route_table.hpp"

#include <simplenet/http/limits.hpp>
#include <simplenet/http/server.hpp>

#if SIMPLENET_HAS_TLS
#include <simplenet/tls/server.hpp>
#endif

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace simplenet::v0::http::detail {

/// What replace() replaces.
struct served {
    std::shared_ptr<const route_table> routes;
#if SIMPLENET_HAS_TLS
    std::shared_ptr<tls::detail::handshake_settings> handshakes; // null: without TLS
#endif
};

/// compression_options with texts of its own.
struct compression {
    std::vector<std::string> types;
    std::size_t minimum = 0;
    int level = 0;
};

/// Shared by the handle and the loops. Any thread.
class server_state {
public:
    server_state(const server_options& options, served first)
        : with_{options.limits}
        , transport_{options.server}
        , compression_{{options.compression.types.begin(), options.compression.types.end()},
                       options.compression.minimum,
                       options.compression.level}
        , served_{std::move(first)} {}

    [[nodiscard]] const limits& with() const noexcept { return with_; }
    /// Of every connection, if it is not sending a file.
    [[nodiscard]] std::chrono::nanoseconds idle_timeout() const noexcept {
        return transport_.idle_timeout;
    }
    [[nodiscard]] const detail::compression& compression() const noexcept { return compression_; }

    /// False: `context` cannot be used.
    [[nodiscard]] bool replace(std::shared_ptr<const route_table> routes,
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
    const limits with_;
    const simplenet::server_options transport_;
    const detail::compression compression_;
    std::atomic<std::uint64_t> version_ = 0;
    mutable std::mutex mutex_;
    served served_;
    std::uint64_t failed_before_ = 0; // handshakes of contexts that were replaced
    std::vector<std::shared_ptr<counter>> counters_;
};

/// The routes with a count of their own for each loop: loops do not share the line of a counter.
struct local_routes {
    std::shared_ptr<const route_table> table;
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

    /// Makes `routes` the current ones.
    void refresh(std::shared_ptr<const local_routes>& routes) {
        look();
        if (routes != routes_) routes = routes_;
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

private:
    void look() {
        if (routes_ && server->version() == version_) return;
        served now = server->current(version_);
        locals_.clear(); // their owners may be gone, and their addresses used again
        routes_ = std::make_shared<const local_routes>(std::move(now.routes));
#if SIMPLENET_HAS_TLS
        handshakes_ = std::move(now.handshakes);
#endif
    }

    const std::shared_ptr<server_state::counter> requests_;
    std::unordered_map<const void*, std::shared_ptr<void>> locals_; // by the handler
    std::uint64_t version_ = 0;
    std::shared_ptr<const local_routes> routes_;
#if SIMPLENET_HAS_TLS
    std::shared_ptr<tls::detail::handshake_settings> handshakes_;
#endif
};

} // namespace simplenet::v0::http::detail
