#pragma once
// httpd::status_board: where the parts of the program leave what the status pages show.

#include "httpd/status/figures.hpp"
#include "httpd/status/traffic.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace httpd {

class access_log;
class error_log;

/// Where the figures of the other parts come from. The functions are called on any thread, one at a
/// time; an empty one gives nothing.
struct status_sources {
    std::function<std::vector<server_figures>()> servers;
    std::function<std::vector<upstream_figures>()> upstreams;
    std::function<std::vector<certificate_figures>()> certificates;
    /// They outlive the board, or are replaced before. Null: none.
    const access_log* access = nullptr;
    const error_log* errors = nullptr;
};

/// Belongs to the process, and outlives reloads.
///
/// @par Thread safety
/// Any thread.
class status_board {
public:
    explicit status_board(std::string version)
        : version_{std::move(version)} {}

    /// Counts a request that has ended. Never blocks.
    void answered(const access_entry& entry) noexcept { traffic_.count(entry); }
    /// Counts a reload of the configuration, not the first reading.
    void reloaded(bool succeeded) noexcept;

    /// From the next request for figures on. Waits for one in progress, so that what the old
    /// sources refer to can be destroyed afterwards: not on a loop that must not wait.
    void set_sources(status_sources sources);

    /// From here on the program ends: it serves who is connected, and nobody else.
    void end() noexcept { ending_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] bool is_ending() const noexcept {
        return ending_.load(std::memory_order_relaxed);
    }

    /// Blocks for some file operations.
    [[nodiscard]] status_figures figures() const;

private:
    const std::string version_;
    traffic traffic_;
    std::atomic<std::uint64_t> reloads_succeeded_ = 0;
    std::atomic<std::uint64_t> reloads_failed_ = 0;
    std::atomic<bool> latest_reload_failed_ = false;
    std::atomic<bool> ending_ = false;
    mutable std::mutex mutex_;
    status_sources sources_;
};

} // namespace httpd
