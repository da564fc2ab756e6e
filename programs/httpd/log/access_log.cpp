#include "httpd/log/access_log.hpp"

#include "httpd/log/access_format.hpp"
#include "httpd/log/error_log.hpp"
#include "httpd/log/lane.hpp"
#include "httpd/log/log_file.hpp"
#include "httpd/log/log_writer.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <initializer_list>
#include <mutex>
#include <new>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace httpd {

namespace {

using steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t enough = std::size_t{64} * 1024; // bytes that are worth a write at once

constinit thread_local time_text access_times;

/// To a few milliseconds, the tick of the kernel. Reading the clock to the nanosecond costs as much
/// as a third of a line on some machines.
std::chrono::system_clock::time_point coarse_now() noexcept {
    ::timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return std::chrono::system_clock::time_point{std::chrono::seconds{now.tv_sec} +
                                                 std::chrono::nanoseconds{now.tv_nsec}};
}

} // namespace

/// Shared by the log and its thread, which may be left behind if a write never returns.
class access_log::state {
public:
    explicit state(const access_log_options& options)
        : buffer_{options.buffer}
        , longest_wait_{options.longest_wait}
        , errors_{options.errors} {}

    void write_to(std::shared_ptr<log_file> file, log_format format) {
        {
            const std::lock_guard held{mutex_};
            off_.store(file == nullptr, std::memory_order_relaxed);
            file_ = std::move(file);
            format_ = format;
            generation_.store(next_generation(), std::memory_order_release);
        }
        wake_.wake(); // to leave the old file
    }

    [[nodiscard]] bool is_off() const noexcept { return off_.load(std::memory_order_relaxed); }
    void append(const access_entry& entry) noexcept {
        if (is_off()) return;
        const auto generation = generation_.load(std::memory_order_acquire);
        lane* to = thread_lane<access_log>::find(generation);
        if (to == nullptr) [[unlikely]] {
            to = make_lane();
            if (to == nullptr) {
                lost_.fetch_add(1, std::memory_order_relaxed);
                return;
            }
        }
        write_line(*to, entry);
    }

    void reopen() noexcept {
        reopen_.store(true, std::memory_order_release);
        wake_.wake();
    }

    [[nodiscard]] std::uint64_t dropped() const noexcept {
        const std::lock_guard held{mutex_};
        std::uint64_t sum = lost_.load(std::memory_order_relaxed);
        for (const auto& each : lanes_)
            sum += each->dropped.load(std::memory_order_relaxed);
        return sum;
    }

    void run() noexcept;
    void stop() noexcept {
        stop_.store(true, std::memory_order_release);
        wake_.wake();
    }

    /// The error log is about to end, while a write of this one may never return.
    void forget_errors() noexcept {
        const std::lock_guard held{errors_mutex_};
        errors_ = nullptr;
    }

    std::thread thread;
    writer_end end;

private:
    /// What a round of the writer has found.
    struct round {
        bool has_work = false; // there were lines, or there will be something to do
        bool remains = false;  // lines that could not be written
    };

    [[nodiscard]] lane* make_lane() noexcept;
    void write_line(lane& to, const access_entry& entry) noexcept;

    void tell(log_level level, log_message message,
              std::initializer_list<log_field> fields) noexcept;
    [[nodiscard]] round write_all();
    [[nodiscard]] bool write(lane& from) noexcept;
    void reopen_file();
    void close_files() noexcept;
    void report(const std::string& path, std::error_code why);
    void leave_old_file(lane& of, const std::shared_ptr<log_file>& file) noexcept;
    void give_up(lane& of) noexcept;
    void wait(const round& after) noexcept;
    [[nodiscard]] bool all_empty() const noexcept;

    const std::size_t buffer_;
    const std::chrono::nanoseconds longest_wait_; // of a line in its buffer
    std::mutex errors_mutex_;
    error_log* errors_; // null: none, or forgotten
    std::atomic<bool> off_ = true;
    std::atomic<std::uint64_t> generation_ = 0;
    /// Some thread has 64 KiB for the writer, who may not have noticed yet.
    std::atomic<bool> has_enough_ = false;
    /// The writer sleeps until it is woken: the next line has to do that.
    std::atomic<bool> idle_ = false;
    std::atomic<bool> stop_ = false;
    std::atomic<bool> reopen_ = false;
    std::atomic<std::uint64_t> lost_ = 0; // lines of lanes that are gone, or could not be made
    wake_up wake_;

    mutable std::mutex mutex_; // what follows; loops take it when they make a lane
    std::shared_ptr<log_file> file_;
    log_format format_ = log_format::combined;
    std::vector<std::shared_ptr<lane>> lanes_;

    // The writer's.
    bool failing_ = false;
    std::uint64_t lost_before_ = 0; // when it began to fail
};

lane* access_log::state::make_lane() noexcept {
    try {
        auto made = std::make_shared<lane>();
        made->bytes = ring::create(buffer_);
        if (!made->bytes) return nullptr;
        const std::lock_guard held{mutex_};
        if (!file_) return nullptr; // off since a moment ago
        made->file = file_;
        made->format = format_;
        if (!thread_lane<access_log>::set(generation_.load(std::memory_order_relaxed), made))
            return nullptr;
        lanes_.push_back(made);
        return made.get();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void access_log::state::write_line(lane& to, const access_entry& entry) noexcept {
    const std::size_t room = room_for_line(entry, to.format);
    char* const begin = to.bytes->reserve(room);
    if (begin == nullptr) return to.drop();

    const char* const line_end = append_line(begin, entry, to.format, coarse_now(), access_times);
    const auto size = static_cast<std::size_t>(line_end - begin);
    to.bytes->publish(size);
    to.unannounced += size;
    if (to.unannounced >= enough) {
        to.unannounced = 0;
        has_enough_.store(true, std::memory_order_release);
        wake_.wake();
    } else if (idle_.load(std::memory_order_relaxed) &&
               idle_.exchange(false, std::memory_order_relaxed)) {
        wake_.wake();
    }
}

/// Whole lines leave the ring when they are in the file. The beginning of a line, after a short
/// write, stays in the ring as well, so that the line can be written again as a whole.
/// Returns whether everything was written.
bool access_log::state::write(lane& from) noexcept {
    const auto lines = from.bytes->readable();
    const auto rest = lines.substr(from.begun);
    if (rest.empty()) return true;
    if (!from.file) { // the log has been off for a while
        give_up(from);
        return true;
    }

    std::error_code why;
    const std::size_t sent = from.begun + from.file->write(rest, pipe_patience, why);
    const auto last = lines.substr(0, sent).rfind('\n');
    const std::size_t whole = last == std::string_view::npos ? 0 : last + 1;
    from.bytes->consume(whole);
    from.begun = sent - whole;
    if (sent == lines.size()) return true;
    try {
        report(from.file->path(), why);
    } catch (const std::bad_alloc&) { // the next failure is reported
    }
    return false;
}

access_log::state::round access_log::state::write_all() {
    std::vector<std::shared_ptr<lane>> lanes;
    std::shared_ptr<log_file> file;
    {
        const std::lock_guard held{mutex_};
        lanes = lanes_;
        file = file_;
    }
    // A line that has begun comes before all others of its file.
    std::ranges::partition(lanes, [](const auto& each) { return each->begun != 0; });

    round result;
    std::vector<std::shared_ptr<log_file>> failed;
    for (const auto& each : lanes) {
        const bool ended = each->ended.load(std::memory_order_acquire);
        const bool was_empty = each->bytes->readable().empty();
        if (std::ranges::find(failed, each->file) != failed.end()) {
            result.remains |= !was_empty;
        } else if (!write(*each)) {
            result.remains = true;
            failed.push_back(each->file);
        }
        result.has_work |= !was_empty;
        if (ended && each->bytes->readable().empty()) {
            const std::lock_guard held{mutex_};
            lost_.fetch_add(each->dropped.load(std::memory_order_relaxed),
                            std::memory_order_relaxed);
            std::erase(lanes_, each);
        } else if (each->file != file) {
            result.has_work = true;
            leave_old_file(*each, file);
        }
    }
    if (failing_ && failed.empty()) {
        failing_ = false;
        tell(log_level::warning, "the access log is written again",
             {{"lost", dropped() - lost_before_}});
    }
    return result;
}

/// The lane of a thread that has not logged since the log has another file. The old one may have
/// been deleted, so it does not stay open for that thread; and lines that cannot be written to it
/// are given up. The thread may be in the middle of a line at first, but not for a second.
void access_log::state::leave_old_file(lane& of, const std::shared_ptr<log_file>& file) noexcept {
    const auto now = steady::now();
    if (of.left_at == steady::time_point{}) of.left_at = now;
    if (now < of.left_at + 1s) return;
    give_up(of);
    of.file = file;
}

/// Drops what is in a lane.
void access_log::state::give_up(lane& of) noexcept {
    const auto lines = of.bytes->readable();
    lost_.fetch_add(static_cast<std::uint64_t>(std::ranges::count(lines, '\n')),
                    std::memory_order_relaxed);
    of.bytes->consume(lines.size());
    of.begun = 0;
}

void access_log::state::report(const std::string& path, std::error_code why) {
    if (failing_) return;
    failing_ = true;
    lost_before_ = dropped();
    tell(log_level::error, "cannot write the access log", {{"path", path}, {"error", why}});
}

void access_log::state::tell(log_level level, log_message message,
                             std::initializer_list<log_field> fields) noexcept {
    const std::lock_guard held{errors_mutex_};
    if (errors_ != nullptr) errors_->write(level, message, fields);
}

void access_log::state::reopen_file() {
    std::shared_ptr<log_file> file;
    std::vector<std::shared_ptr<lane>> lanes;
    {
        const std::lock_guard held{mutex_};
        file = file_;
        lanes = lanes_;
    }
    if (!file) return;
    const auto opened = file->reopen();
    if (!opened) {
        return tell(log_level::error, "cannot open the access log again",
                    {{"path", file->path()}, {"error", opened.error()}});
    }
    if (!*opened) return;
    for (const auto& each : lanes)
        if (each->file == file) each->begun = 0; // whole in the new file
}

/// Sleeps until there is something to write, or to do.
void access_log::state::wait(const round& after) noexcept {
    const auto is_asked = [this] {
        return stop_.load(std::memory_order_acquire) || reopen_.load(std::memory_order_acquire);
    };
    if (after.has_work) return wake_.wait_until(steady::now() + longest_wait_);

    idle_.store(true, std::memory_order_relaxed);
    // A thread that has not seen `idle_` yet has published its line within this time, whatever
    // order the processor has chosen for the two: that saves each line a fence.
    wake_.wait_until(steady::now() + longest_wait_);
    if (idle_.load(std::memory_order_relaxed) && !is_asked() && all_empty()) wake_.wait();

    const bool is_first_line = !idle_.exchange(false, std::memory_order_relaxed);
    // Its wake() may have been the same as that of `has_enough_`.
    const bool has_enough = has_enough_.exchange(false, std::memory_order_acquire);
    if (is_first_line && !has_enough && !is_asked())
        wake_.wait_until(steady::now() + longest_wait_);
}

bool access_log::state::all_empty() const noexcept {
    const std::lock_guard held{mutex_};
    return std::ranges::all_of(lanes_,
                               [](const auto& each) { return each->bytes->readable().empty(); });
}

void access_log::state::run() noexcept {
    auto stopped_at = steady::time_point::max();
    for (;;) {
        // Before the round: what was appended before stop() is in it.
        const bool stopped = stop_.load(std::memory_order_acquire);
        round last;
        try {
            last = write_all();
            if (reopen_.exchange(false, std::memory_order_acq_rel)) reopen_file();
        } catch (const std::bad_alloc&) {
            last = {.has_work = true, .remains = true};
        }
        if (!stopped) {
            wait(last);
            continue;
        }
        if (!last.remains) break;
        stopped_at = std::min(stopped_at, steady::now());
        if (steady::now() > stopped_at + last_words / 2) break;
        std::this_thread::sleep_for(50ms);
    }
    close_files();
    end.announce();
}

/// Threads hold their lanes until they end, or log elsewhere.
void access_log::state::close_files() noexcept {
    const std::lock_guard held{mutex_};
    for (const auto& each : lanes_) {
        give_up(*each);
        each->file = nullptr;
    }
    file_ = nullptr;
}

simplenet::result<access_log> access_log::open(access_log_options options) {
    auto made = std::make_shared<state>(options);
    auto opened = open_file(std::move(options.path));
    if (!opened) return simplenet::fail(opened);
    made->write_to(*std::move(opened), options.format);
    const auto error = start_writer(made->thread, "access log", [made] { made->run(); });
    if (error) return simplenet::fail(error);
    return access_log{std::move(made)};
}

access_log::~access_log() {
    if (!state_) return;
    state_->stop();
    if (state_->end.wait(last_words)) {
        state_->thread.join();
    } else {
        state_->forget_errors();
        state_->thread.detach();
    }
}

bool access_log::is_off() const noexcept {
    return state_->is_off();
}

void access_log::append(const access_entry& entry) noexcept {
    state_->append(entry);
}

simplenet::result<std::shared_ptr<log_file>> access_log::open_file(std::string path) {
    if (path == "off") return std::shared_ptr<log_file>{};
    return log_file::open(std::move(path), STDOUT_FILENO);
}

void access_log::write_to(std::shared_ptr<log_file> file, log_format format) {
    state_->write_to(std::move(file), format);
}

void access_log::reopen() noexcept {
    state_->reopen();
}

std::uint64_t access_log::dropped() const noexcept {
    return state_->dropped();
}

} // namespace httpd
