#include "insight/watchdog.hpp"

#include "insight/standard_error.hpp"
#include "insight/thread_snapshot.hpp"
#include "io/event_hook.hpp"
#include "loop/loop.hpp"
#include "sys/threads.hpp"
#include "threads/one_for_process.hpp"
#include "threads/signals_blocked.hpp"

#include <simplenet/insight/stall_report.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace simplenet::v0::detail {

namespace {

using clock = std::chrono::steady_clock;
using nanoseconds = std::chrono::nanoseconds;

void tell(event_hook hook, const stall_report& report) {
    const loop_event event{
        .kind = loop_event_kind::stalled, .text = {}, .duration = report.blocked, .stall = &report};
    const double seconds = std::chrono::duration<double>(report.blocked).count();
    const auto task = static_cast<unsigned long long>(report.task);
    const char* const blank = report.name.empty() ? "" : " ";
    const unsigned line = report.site.line();
    if (line == 0) {
        hook.tell(event, "a turn of an event loop has taken %.3f s; task #%llu%s%s", seconds, task,
                  blank, report.name.c_str());
    } else {
        hook.tell(event, "a turn of an event loop has taken %.3f s; task #%llu%s%s at %s:%u",
                  seconds, task, blank, report.name.c_str(), report.site.file_name(), line);
    }
}

void print(const stall_report& report) {
    std::array<char, 128> words{};
    std::snprintf(words.data(), words.size(),
                  "a turn of an event loop has taken %.3f s; task #%llu",
                  std::chrono::duration<double>(report.blocked).count(),
                  static_cast<unsigned long long>(report.task));
    std::string text = words.data();
    if (!report.name.empty()) (text += ' ') += report.name;
    text += '\n';
    if (report.site.line() != 0) {
        ((text += "    at ") += report.site.file_name()) += ':';
        (text += std::to_string(report.site.line())) += '\n';
    }
    for (const std::string& frame : report.stack)
        ((text += "    ") += frame) += '\n';
    print_to_standard_error(text);
}

struct stall_to_tell {
    const loop* which;
    stall_report report;
    void (*on_stall)(const stall_report&) = nullptr;
    event_hook on_event;
};

/// A loop about which `thread` calls a hook.
struct telling {
    const loop* which;
    std::thread::id thread;
};

struct watched_loop {
    loop* which;
    pid_t thread;
    std::uint64_t turn = 0; // last seen
    clock::time_point since{};
    bool reported = false;
};

class watchdog : private one_for_process<watchdog> {
    friend one_for_process<watchdog>;

public:
    watchdog() = default;
    /// What `inherited`, of the process that forked this one, did to the signals holds here too.
    explicit watchdog(const snapshot_handlers& inherited) noexcept
        : handlers_{inherited} {}
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;

    /// The watchdog of this process.
    // Not a static object: a task of a watched loop may call std::exit(), which would destroy the
    // watchdog under its thread.
    [[nodiscard]] static watchdog& of_process() {
        return get(current_watchdog, [] {
            watchdog* const inherited = current_watchdog.load(std::memory_order_acquire);
            return inherited == nullptr ? std::make_unique<watchdog>()
                                        : std::make_unique<watchdog>(inherited->handlers_);
        });
    }

    void add(loop& watched) {
        const std::lock_guard lock{guard_};
        // Everything that can fail comes first: a loop that is not watched is not in the list.
        loops_.reserve(loops_.size() + 1);
        if (!thread_.joinable()) {
            forget_what_was_asked();
            const signals_blocked inherited;
            thread_ = sys::start_thread([this, mine = generation_ + 1] { watch_loops(mine); });
            ++generation_;
        }
        handlers_.install(watched.options().stall_signal);
        loops_.push_back({.which = &watched, .thread = ::gettid(), .since = clock::now()});
        changed_.notify_all();
    }

    void remove(loop& watched) noexcept {
        std::thread ended;
        {
            std::unique_lock lock{guard_};
            std::erase_if(loops_, [&](const watched_loop& each) { return each.which == &watched; });
            const int signal = watched.options().stall_signal;
            if (std::ranges::none_of(loops_, [signal](const watched_loop& each) {
                    return each.which->options().stall_signal == signal;
                })) {
                handlers_.remove(signal);
            }
            if (loops_.empty()) {
                ++generation_;
                ended = std::move(thread_);
            }
            changed_.notify_all();
            // The context of on_event may be gone after the loop. A hook that destroys a loop
            // cannot wait for itself; what it would tell next is not told.
            forget(watched);
            changed_.wait(lock, [&] {
                return std::ranges::none_of(
                    telling_, [&](const telling& each) { return each.which == &watched; });
            });
        }
        if (!ended.joinable()) return;
        // A hook may destroy the last loop: the watching thread ends when the hook returns.
        ended.get_id() == std::this_thread::get_id() ? ended.detach() : ended.join();
    }

private:
    void watch_loops(unsigned mine) {
        std::unique_lock lock{guard_};
        while (generation_ == mine) {
            std::vector<stall_to_tell> reports;
            nanoseconds period = std::chrono::hours{1};
            for (watched_loop& each : loops_) {
                period = std::min(period, threshold_of(each) / 4);
                if (!stalls(each)) continue;
                stall_report& report =
                    reports
                        .emplace_back(stall_to_tell{.which = each.which,
                                                    .report = {},
                                                    .on_stall = each.which->options().on_stall,
                                                    .on_event = each.which->on_event})
                        .report;
                report.blocked = clock::now() - each.since;
                const int signal = each.which->options().stall_signal;
                if (handlers_.handles(signal)) { // otherwise the signal might kill
                    ask(each.thread, *each.which, signal, report);
                }
            }
            if (!reports.empty()) {
                for (const stall_to_tell& each : reports) {
                    if (each.on_event) telling_.push_back({each.which, std::this_thread::get_id()});
                }
                lock.unlock(); // a hook may create and destroy loops
                for (const stall_to_tell& each : reports)
                    call_hooks(each);
                lock.lock();
                continue;
            }
            changed_.wait_for(lock, period);
        }
    }

    void call_hooks(const stall_to_tell& stall) {
        if (stall.on_stall != nullptr) stall.on_stall(stall.report);
        if (stall.on_stall == nullptr && !stall.on_event) print(stall.report);
        if (!stall.on_event || !will_be_told(*stall.which)) return;
        tell(stall.on_event, stall.report);
        const std::lock_guard lock{guard_};
        forget(*stall.which);
        changed_.notify_all();
    }
    /// False: a hook that this thread called has destroyed the loop.
    [[nodiscard]] bool will_be_told(const loop& which) {
        const std::lock_guard lock{guard_};
        return std::ranges::any_of(telling_, [&](const telling& each) {
            return each.which == &which && each.thread == std::this_thread::get_id();
        });
    }
    /// @pre locked. This thread tells no more of the loop.
    void forget(const loop& which) noexcept {
        std::erase_if(telling_, [&](const telling& each) {
            return each.which == &which && each.thread == std::this_thread::get_id();
        });
    }

    static nanoseconds threshold_of(const watched_loop& each) noexcept {
        return std::max<nanoseconds>(each.which->options().stall_threshold,
                                     std::chrono::milliseconds{1});
    }

    /// Looks at a loop again. True: it has been in the same turn for too long, and was not
    /// reported.
    static bool stalls(watched_loop& each) noexcept {
        loop_pulse& pulse = each.which->pulse;
        const auto now = clock::now();
        const std::uint64_t turn = pulse.turns;
        const bool works = pulse.active.load(std::memory_order_relaxed) && !each.which->is_parked();
        if (!works || turn != each.turn) {
            each.turn = turn;
            each.since = now;
            each.reported = false;
            return false;
        }
        if (each.reported || now - each.since < threshold_of(each)) return false;
        each.reported = true;
        pulse.stalls.fetch_add(1, std::memory_order_relaxed);
        return true;
    }

    static constinit std::atomic<watchdog*> current_watchdog;

    std::mutex guard_;
    std::condition_variable changed_;
    snapshot_handlers handlers_;
    std::vector<watched_loop> loops_;
    std::vector<telling> telling_; // calls of on_event in progress, or about to begin
    std::thread thread_;           // runs while there are loops
    unsigned generation_ = 0;      // of the thread: it ends when it is no longer the latest
};

constinit std::atomic<watchdog*> watchdog::current_watchdog = nullptr;

} // namespace

void watch(loop& watched) {
    watchdog::of_process().add(watched);
}
void unwatch(loop& watched) noexcept {
    watchdog::of_process().remove(watched);
}

} // namespace simplenet::v0::detail
