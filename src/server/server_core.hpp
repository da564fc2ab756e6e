#pragma once
// server_core: the state that the loops of a server share. Layer server, private.

#include "server/server_metrics.hpp"
#include "threads/forks.hpp"
#include "threads/posting_queue.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/ip/address_set.hpp>
#include <simplenet/ip/endpoint.hpp>
#include <simplenet/ip/local_endpoint.hpp>
#include <simplenet/runtime/event_loop_group.hpp>
#include <simplenet/server/detail/connection_handler.hpp>
#include <simplenet/server/server_options.hpp>
#include <simplenet/threads/cross_channel.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace simplenet::v0::detail {

class server_core;
class server_site;

enum class connection_kind : std::uint8_t { tcp, local };

/// What a core keeps of server_options and local_server_options.
struct server_settings {
    connection_kind kind = connection_kind::tcp;
    bool single_acceptor = false; // of several loops
    bool rebalances = false;      // else a connection stays on the loop that accepted it
    simplenet::balance balance = simplenet::balance::least_connections;
    std::size_t max_connections = 0;
    when_full full = when_full::wait;
    std::chrono::nanoseconds idle_timeout{0};
    unsigned accept_ahead = 64;
    bool behind_proxy = false; // connections begin with a PROXY header
    address_set proxies;       // empty: everybody
    std::chrono::nanoseconds proxy_timeout{0};
    void (*on_handler_exception)(std::exception_ptr, void*) = nullptr;
    void* context = nullptr;

    [[nodiscard]] bool waits_when_full() const noexcept {
        return max_connections != 0 && full == when_full::wait;
    }
};

/// Tells a site, on its loop, that the state of the core has changed.
class site_call final : public posted {
public:
    void run() noexcept override;
    void drop() noexcept override;

private:
    friend class server_core;
    std::shared_ptr<server_core> core_; // set while it is on its way
    std::size_t index_ = 0;
};

/// One loop's part of a core. Any thread, unless a member says otherwise.
struct alignas(64) site_slot {
    event_loop* loop = nullptr; // of the group; used only before the site has ended

    // Written by the site's loop; `open` and `pending` also by loops that give it connections.
    std::atomic<std::size_t> open = 0; // counted from accept(2) to the end of the handler
    std::atomic<std::uint64_t> accepted = 0;
    std::atomic<std::uint64_t> refused = 0;
    std::atomic<std::uint64_t> ended = 0;
    std::atomic<std::uint64_t> failed = 0;
    std::atomic<std::uint32_t> pending = 0;      // connections on their way to it
    std::atomic<std::int64_t> pending_since = 0; // nanoseconds of the clock, if there are any

    server_site* site = nullptr;          // on the loop's thread; null before and after its life
    std::atomic<bool> is_to_begin = true; // it has neither begun nor ended

    // Under the core's mutex.
    posting_queue* queue = nullptr; // while the site lives
    bool has_accepted_all = false;
    bool has_drained = false;
    bool has_ended = true;      // until serve()
    std::vector<int> listening; // the descriptors of the site's listeners, until it closes them

    site_call call;
    std::atomic<bool> is_called = false;  // `call` is on its way
    std::atomic<bool> needs_room = false; // taken by the called site
};

/// Owned by the handle, the sites and the connections on their way between loops.
class server_core : public std::enable_shared_from_this<server_core> {
public:
    server_core(event_loop_group& group, const server_settings& with,
                std::vector<unique_fd> listening);

    const server_settings settings;
    endpoint address; // of a tcp_server
    local_endpoint local_address;
    std::optional<std::uint64_t> socket_file; // of a local_server that removes its path
    std::string socket_path;                  // of it; made before memory can be short

    /// Where it listens, for logs and metrics.
    [[nodiscard]] std::string name() const {
        return settings.kind == connection_kind::tcp ? address.to_string()
                                                     : local_address.to_string();
    }

    // --- the handle ---

    /// Starts a site on each loop.
    [[nodiscard]] result<> serve(std::unique_ptr<any_handler> handler);
    /// Begins a shutdown, or shortens its grace.
    void begin_shutdown(std::chrono::nanoseconds grace) noexcept;
    /// Begins a shutdown without grace that spares nobody, and waits for the end of every site.
    void end() noexcept;
    /// A channel that is closed when the report is complete.
    [[nodiscard]] std::shared_ptr<cross_channel<char>> subscribe();
    [[nodiscard]] shutdown_report report() const noexcept;
    [[nodiscard]] server_statistics statistics() const;
    [[nodiscard]] result<std::vector<unique_fd>> duplicate_listeners();

    // --- the sites ---

    [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
    [[nodiscard]] site_slot& slot(std::size_t index) noexcept { return *slots_[index]; }
    /// The listeners that the site accepts from; only once.
    [[nodiscard]] std::vector<unique_fd> take_listeners(std::size_t index);

    [[nodiscard]] bool is_stopping() const noexcept {
        return deadline_.load(std::memory_order_acquire) != never;
    }
    [[nodiscard]] std::chrono::steady_clock::time_point deadline() const noexcept;
    /// Handlers that called shutdown() end, too.
    [[nodiscard]] bool spares_nobody() const noexcept {
        return spares_nobody_.load(std::memory_order_acquire);
    }
    [[nodiscard]] bool all_accepted() const noexcept {
        return accepting_.load(std::memory_order_acquire) == 0;
    }

    void site_began(std::size_t index, server_site& site, posting_queue& queue) noexcept;
    /// The site is about to close its listeners.
    void site_closes_listeners(std::size_t index) noexcept;
    /// Every connection that the site will accept is counted.
    void site_accepted_all(std::size_t index) noexcept;
    /// Only excused handlers are left on the site.
    void site_drained(std::size_t index, shutdown_report part) noexcept;
    void site_ended(std::size_t index) noexcept;
    /// On the thread of a loop of a site that has not ended.
    [[nodiscard]] bool is_on_own_thread() noexcept;

    /// Takes one of `max_connections`.
    [[nodiscard]] bool take_place() noexcept;
    void return_place() noexcept;
    /// Whether return_place() is to call all sites: one waits for a place.
    std::atomic<bool> lacks_place = false;
    /// Asks all sites to make room but `site`, which has none to spare.
    void ask_others_for_room(std::size_t site) noexcept;

    [[nodiscard]] std::uint64_t next_number() noexcept {
        return 1 + numbers_.fetch_add(1, std::memory_order_relaxed);
    }

private:
    friend class site_call;
    static constexpr std::int64_t never = INT64_MAX;

    void call_all() noexcept;
    void call(site_slot& slot) noexcept; // under the mutex
    void note_accepted_all(site_slot& slot) noexcept;
    void close_listeners(site_slot& slot) noexcept;
    void note_drained(site_slot& slot, shutdown_report part) noexcept;
    /// Takes the subscribers if the report is complete.
    [[nodiscard]] std::vector<std::shared_ptr<cross_channel<char>>> to_notify() noexcept;

    const std::weak_ptr<const void> group_life_; // of the loops in the slots
    std::vector<std::unique_ptr<site_slot>> slots_;
    std::vector<std::vector<unique_fd>> listeners_; // by site, until it begins

    std::atomic<std::int64_t> deadline_ = never; // nanoseconds of the clock; set: stopping
    std::atomic<bool> spares_nobody_ = false;
    std::atomic<std::size_t> accepting_ = 0; // sites that may still accept
    std::atomic<std::size_t> places_ = 0;    // taken
    std::atomic<std::uint64_t> numbers_ = 0;

    const unsigned born_in_ = fork_generation();

    mutable std::mutex mutex_;
    std::condition_variable ended_;
    std::size_t living_ = 0;   // sites that have not ended
    std::size_t draining_ = 0; // sites that have not drained
    bool is_served_ = false;
    shutdown_report report_;
    std::vector<std::shared_ptr<cross_channel<char>>> subscribers_;

    server_metrics metrics_{*this};
};

/// A connection's share in the counts, from accept(2) to the end of its handler.
class seat {
public:
    enum class outcome : std::uint8_t { ended, failed, refused };

    /// Counts a connection on a site.
    seat(std::shared_ptr<server_core> core, std::size_t index) noexcept;
    seat(seat&&) noexcept = default;
    seat& operator=(seat&&) = delete;
    ~seat();

    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    /// Counts it on another site.
    void move_to(std::size_t index) noexcept;
    void set(outcome how) noexcept { outcome_ = how; }
    /// The site, if it still exists, is told of its end, which will be on the site's loop.
    void tell() noexcept { tells_ = true; }

private:
    std::shared_ptr<server_core> core_; // null after a move
    std::uint32_t index_;               // small: this is a part of what an idle connection costs
    outcome outcome_ = outcome::ended;
    bool tells_ = false;
};

} // namespace simplenet::v0::detail
