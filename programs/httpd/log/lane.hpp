#pragma once
// httpd::lane: what one thread gives to the writer of a log. Used by the logs.

#include "httpd/config/configuration.hpp"
#include "httpd/log/log_file.hpp"
#include "httpd/log/ring.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace httpd {

/// A ring with what belongs to it. The thread that made it produces; the log's writer consumes.
///
/// All lines of a lane go to one file in one format: if those of the log change, its threads make
/// new lanes with their next lines, so that no line goes where it does not belong. A thread that
/// has no next line does not keep a file open: after a while the writer empties its lane and lets
/// it point to the new file, where nothing comes of it.
struct lane {
    std::unique_ptr<ring> bytes;
    log_format format = log_format::combined;

    // Written by the producer.
    std::atomic<std::uint64_t> dropped = 0; ///< Lines for which there was no room.
    std::size_t unannounced = 0;            ///< Bytes since the writer was last woken for them.
    std::atomic<bool> ended = false;        ///< Nothing follows: the last store of the producer.

    // The writer's.
    std::shared_ptr<log_file> file;
    std::size_t begun = 0; ///< Bytes of the first line in `bytes` that are in the file.
    /// When it was first seen that its log has another file by now.
    std::chrono::steady_clock::time_point left_at{};

    /// Producer only. No atomic addition: nobody else writes it.
    void drop() noexcept {
        dropped.store(dropped.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
};

/// A number that no other generation of any log of this process has; never 0.
[[nodiscard]] inline std::uint64_t next_generation() noexcept {
    static std::atomic<std::uint64_t> latest = 0;
    return latest.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// This thread's lane in logs of the kind `Log`. It ends with the thread.
template <class Log>
class thread_lane {
public:
    /// Null: the thread has no lane of this generation.
    [[nodiscard]] static lane* find(std::uint64_t generation) noexcept {
        return generation == cached_generation ? cached : nullptr;
    }
    /// The lane before it ends. False: the thread is about to end, and can have none.
    [[nodiscard]] static bool set(std::uint64_t generation, std::shared_ptr<lane> to) noexcept {
        if (over) return false;
        cached_generation = generation;
        cached = to.get();
        if (const auto before = std::exchange(owner.held, std::move(to)))
            before->ended.store(true, std::memory_order_release);
        return true;
    }

private:
    struct holder {
        std::shared_ptr<lane> held;
        holder() = default;
        holder(const holder&) = delete;
        holder& operator=(const holder&) = delete;
        ~holder() {
            over = true;
            cached_generation = 0;
            if (held) held->ended.store(true, std::memory_order_release);
        }
    };

    // Without destructors, so that finding the lane is two loads.
    static inline constinit thread_local std::uint64_t cached_generation = 0;
    static inline constinit thread_local lane* cached = nullptr;
    static inline constinit thread_local bool over = false;
    static inline thread_local holder owner;
};

} // namespace httpd
