#include "httpd/log/error_log.hpp"

#include "httpd/log/escape.hpp"
#include "httpd/log/kind_limit.hpp"
#include "httpd/log/lane.hpp"
#include "httpd/log/log_file.hpp"
#include "httpd/log/log_writer.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

// The only file that includes spdlog.
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

namespace httpd {

namespace {

using std::chrono::system_clock;
using namespace std::chrono_literals;

constexpr std::size_t longest_value = 2000; // bytes of a text in a field; the rest is cut off
constexpr std::size_t most_digits = 20;
constexpr auto between_tries = 1s;
constexpr auto between_summaries = 1s;

/// In front of each message in a ring; the texts follow.
struct record_head {
    system_clock::time_point at;
    std::uint32_t size;
    log_level level;
};

spdlog::level::level_enum to_spdlog(log_level level) noexcept {
    switch (level) {
    case log_level::info:
        return spdlog::level::info;
    case log_level::warning:
        return spdlog::level::warn;
    case log_level::error:
        return spdlog::level::err;
    }
    return spdlog::level::err;
}

/// Appends lines to a text. The writer's thread only.
class text_sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
public:
    explicit text_sink(std::string& to)
        : to_{to} {}

private:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        to_.append(line.data(), line.size());
    }
    void flush_() override {}

    std::string& to_;
};

/// Whether a value needs no quotes: it has no white space, and nothing that means something.
bool is_plain(std::string_view text) noexcept {
    return !text.empty() && std::ranges::none_of(text, [](char each) {
        return each == ' ' || each == '=' || needs_escape(each);
    });
}

std::size_t room_for(std::string_view text) noexcept {
    return 2 + std::string_view{"..."}.size() +
           escaped_room<escapes::hex>(std::min(text.size(), longest_value));
}

char* append_value(char* to, std::string_view text) noexcept {
    if (is_plain(text) && text.size() <= longest_value) return append(to, text);
    *to++ = '"';
    to = append_escaped<escapes::hex>(to, text.substr(0, longest_value));
    if (text.size() > longest_value) to = append(to, "...");
    *to++ = '"';
    return to;
}

/// The message of an error, which callers and our thread make without throwing.
std::string message_of(std::error_code error) noexcept {
    try {
        return error.message();
    } catch (...) {
        return {};
    }
}

} // namespace

/// Shared by the log and its thread, which may be left behind if a write never returns.
class error_log::state {
public:
    explicit state(const error_log_options& options)
        : buffer_{options.buffer}
        , kinds_{options.per_second}
        , logger_{"", std::make_shared<text_sink>(lines_)} {
        logger_.set_level(spdlog::level::trace); // is_enabled() has decided
        logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
            "%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc, "\n"));
    }

    void write_to(std::shared_ptr<log_file> file, log_level level) {
        {
            const std::lock_guard held{mutex_};
            file_ = std::move(file);
            off_.store(file_ == nullptr, std::memory_order_relaxed);
            level_.store(level, std::memory_order_relaxed);
        }
        wake_.wake();
    }

    [[nodiscard]] bool is_enabled(log_level level) const noexcept {
        return level >= level_.load(std::memory_order_relaxed) &&
               !off_.load(std::memory_order_relaxed);
    }

    void write(log_level level, std::string_view message,
               std::initializer_list<log_field> fields) noexcept;

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
    [[nodiscard]] std::uint64_t suppressed() const noexcept {
        return suppressed_.load(std::memory_order_relaxed);
    }

    void run() noexcept;
    void stop() noexcept {
        stop_.store(true, std::memory_order_release);
        wake_.wake();
    }

    std::thread thread;
    writer_end end;

private:
    struct record {
        record_head head;
        std::string_view text; // in its ring
        std::size_t number;    // those of one thread are in order

        [[nodiscard]] bool operator<(const record& other) const noexcept {
            return std::pair{head.at, number} < std::pair{other.head.at, other.number};
        }
    };

    [[nodiscard]] lane* make_lane() noexcept;
    void put(lane& to, const record_head& head, std::string_view message,
             std::initializer_list<log_field> fields) noexcept;

    void collect();
    void tell_dropped();
    void tell_suppressed(bool is_last);
    void tell(log_level level, std::string_view text);
    [[nodiscard]] bool write_lines();
    void reopen_file();
    void begin_file();

    const std::size_t buffer_;
    kind_limit kinds_;
    const std::uint64_t generation_ = next_generation();
    std::atomic<bool> off_ = true;
    std::atomic<log_level> level_ = log_level::info;
    std::atomic<bool> stop_ = false;
    std::atomic<bool> reopen_ = false;
    std::atomic<bool> any_suppressed_ = false;
    std::atomic<std::uint64_t> lost_ = 0; // of lanes that are gone, or could not be made
    std::atomic<std::uint64_t> suppressed_ = 0;
    wake_up wake_;

    mutable std::mutex mutex_; // what follows; loops take it when they make a lane
    std::shared_ptr<log_file> file_;
    std::vector<std::shared_ptr<lane>> lanes_;

    // The writer's.
    std::string lines_;       // formatted, and not written yet
    std::size_t written_ = 0; // of `lines_`
    std::shared_ptr<log_file> written_to_;
    std::uint64_t told_dropped_ = 0;
    std::optional<std::chrono::steady_clock::time_point> summary_at_;
    spdlog::logger logger_; // writes into `lines_`
};

lane* error_log::state::make_lane() noexcept {
    try {
        auto made = std::make_shared<lane>();
        made->bytes = ring::create(buffer_);
        if (!made->bytes || !thread_lane<error_log>::set(generation_, made)) return nullptr;
        const std::lock_guard held{mutex_};
        lanes_.push_back(made);
        return made.get();
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void error_log::state::write(log_level level, std::string_view message,
                             std::initializer_list<log_field> fields) noexcept {
    const auto now = system_clock::now();
    const auto second = static_cast<std::uint32_t>(system_clock::to_time_t(now));
    if (!kinds_.admit(message, second)) {
        suppressed_.fetch_add(1, std::memory_order_relaxed);
        if (!any_suppressed_.load() && !any_suppressed_.exchange(true))
            wake_.wake(); // to say so in a second
        return;
    }
    lane* to = thread_lane<error_log>::find(generation_);
    if (to == nullptr) to = make_lane();
    if (to == nullptr)
        lost_.fetch_add(1, std::memory_order_relaxed);
    else
        put(*to, {now, 0, level}, message, fields);
    wake_.wake();
}

void error_log::state::put(lane& to, const record_head& head, std::string_view message,
                           std::initializer_list<log_field> fields) noexcept {
    std::size_t room = sizeof head + message.size();
    for (const auto& each : fields) {
        const auto* const text = std::get_if<std::string_view>(&each.value());
        room += 2 + each.key().size() + (text != nullptr ? room_for(*text) : longest_value);
    }
    char* const begin = to.bytes->reserve(room);
    if (begin == nullptr) return to.drop();

    char* at = append(begin + sizeof head, message);
    for (const auto& each : fields) {
        *at++ = ' ';
        at = append(at, each.key());
        *at++ = '=';
        if (const auto* const text = std::get_if<std::string_view>(&each.value()))
            at = append_value(at, *text);
        else if (const auto* const number = std::get_if<std::int64_t>(&each.value()))
            at = std::to_chars(at, at + most_digits, *number).ptr;
        else if (const auto* const count = std::get_if<std::uint64_t>(&each.value()))
            at = std::to_chars(at, at + most_digits, *count).ptr;
        else if (const auto* const error = std::get_if<std::error_code>(&each.value()))
            at = append_value(at, std::string_view{message_of(*error)}.substr(0, 400));
    }
    record_head complete = head;
    complete.size = static_cast<std::uint32_t>(at - begin - sizeof head);
    std::memcpy(begin, &complete, sizeof complete);
    to.bytes->publish(sizeof complete + complete.size);
}

void error_log::state::tell(log_level level, std::string_view text) {
    logger_.log(system_clock::now(), {}, to_spdlog(level),
                spdlog::string_view_t{text.data(), text.size()});
}

/// Formats everything that waits, in the order of time.
void error_log::state::collect() {
    std::vector<std::shared_ptr<lane>> lanes;
    {
        const std::lock_guard held{mutex_};
        lanes = lanes_;
    }
    std::vector<record> found;
    std::vector<std::size_t> taken;
    std::vector<bool> ended;
    for (const auto& each : lanes) {
        ended.push_back(each->ended.load(std::memory_order_acquire));
        auto rest = each->bytes->readable();
        taken.push_back(rest.size());
        while (!rest.empty()) {
            record next{};
            std::memcpy(&next.head, rest.data(), sizeof next.head);
            next.text = rest.substr(sizeof next.head, next.head.size);
            next.number = found.size();
            rest.remove_prefix(sizeof next.head + next.head.size);
            found.push_back(next);
        }
    }
    std::sort(found.begin(), found.end());
    tell_dropped();
    for (const record& each : found) {
        logger_.log(each.head.at, {}, to_spdlog(each.head.level),
                    spdlog::string_view_t{each.text.data(), each.text.size()});
    }
    for (std::size_t index = 0; index < lanes.size(); ++index) {
        lanes[index]->bytes->consume(taken[index]);
        if (!ended[index]) continue;
        const std::lock_guard held{mutex_};
        lost_.fetch_add(lanes[index]->dropped.load(std::memory_order_relaxed),
                        std::memory_order_relaxed);
        std::erase(lanes_, lanes[index]);
    }
}

void error_log::state::tell_dropped() {
    const std::uint64_t sum = dropped();
    if (sum == told_dropped_) return;
    if (is_enabled(log_level::warning))
        tell(log_level::warning,
             "messages of this log were lost count=" + std::to_string(sum - told_dropped_));
    told_dropped_ = sum;
}

void error_log::state::tell_suppressed(bool is_last) {
    if (!any_suppressed_.load()) return;
    const auto now = std::chrono::steady_clock::now();
    if (!summary_at_) summary_at_ = now + between_summaries;
    if (now < *summary_at_ && !is_last) return;
    summary_at_.reset();
    // Before the counts are taken: what is suppressed from here on leads to another summary.
    any_suppressed_.store(false);
    kinds_.take_suppressed([this](std::string_view kind, std::uint64_t count) {
        if (!is_enabled(log_level::warning)) return;
        tell(log_level::warning,
             std::string{kind}.append(": and ").append(std::to_string(count)).append(" more"));
    });
}

/// Returns whether everything was written.
bool error_log::state::write_lines() {
    std::shared_ptr<log_file> file;
    {
        const std::lock_guard held{mutex_};
        file = file_;
        if (file != written_to_) begin_file();
        written_to_ = file;
    }
    if (file && written_ != lines_.size()) {
        std::error_code why;
        written_ += file->write(std::string_view{lines_}.substr(written_), pipe_patience, why);
        if (written_ != lines_.size()) return false;
    }
    lines_.clear();
    written_ = 0;
    return true;
}

void error_log::state::reopen_file() {
    std::shared_ptr<log_file> file;
    {
        const std::lock_guard held{mutex_};
        file = file_;
    }
    if (!file) return;
    const auto opened = file->reopen();
    if (!opened) {
        return tell(log_level::error,
                    "cannot open the error log again error=\"" + opened.error().message() + '"');
    }
    if (*opened) begin_file();
}

// A line of which the file before has a part is whole in the new one.
void error_log::state::begin_file() {
    const auto last = std::string_view{lines_}.substr(0, written_).rfind('\n');
    lines_.erase(0, last == std::string_view::npos ? 0 : last + 1);
    written_ = 0;
}

void error_log::state::run() noexcept {
    auto stopped_at = std::chrono::steady_clock::time_point::max();
    for (;;) {
        const bool stopped = stop_.load(std::memory_order_acquire);
        bool all_written = false;
        try {
            // While lines cannot be written no more are taken: the rings bound the memory.
            all_written = write_lines();
            if (all_written) {
                collect();
                tell_suppressed(stopped);
                all_written = write_lines();
            }
            if (reopen_.exchange(false, std::memory_order_acq_rel)) {
                reopen_file();
                all_written = write_lines();
            }
        } catch (const std::exception&) { // no memory: the rings keep what is in them
        }
        const auto now = std::chrono::steady_clock::now();
        if (stopped) {
            stopped_at = std::min(stopped_at, now);
            if (all_written || now > stopped_at + last_words / 2) break;
            std::this_thread::sleep_for(50ms);
        } else if (!all_written) {
            wake_.wait_until(now + between_tries);
        } else if (summary_at_) {
            wake_.wait_until(*summary_at_);
        } else {
            wake_.wait();
        }
    }
    end.announce();
}

simplenet::result<error_log> error_log::open(error_log_options options) {
    auto made = std::make_shared<state>(options);
    auto opened = open_file(std::move(options.path));
    if (!opened) return simplenet::fail(opened);
    made->write_to(*std::move(opened), options.level);
    const auto error = start_writer(made->thread, "error log", [made] { made->run(); });
    if (error) return simplenet::fail(error);
    return error_log{std::move(made)};
}

error_log::~error_log() {
    if (!state_) return;
    state_->stop();
    if (state_->end.wait(last_words))
        state_->thread.join();
    else
        state_->thread.detach();
}

bool error_log::is_enabled(log_level level) const noexcept {
    return state_->is_enabled(level);
}

void error_log::write(log_level level, log_message message,
                      std::initializer_list<log_field> fields) noexcept {
    if (state_->is_enabled(level)) state_->write(level, message.text(), fields);
}

simplenet::result<std::shared_ptr<log_file>> error_log::open_file(std::string path) {
    if (path == "off") return std::shared_ptr<log_file>{};
    return log_file::open(std::move(path), STDERR_FILENO);
}

void error_log::write_to(std::shared_ptr<log_file> file, log_level level) {
    state_->write_to(std::move(file), level);
}

void error_log::reopen() noexcept {
    state_->reopen();
}

std::uint64_t error_log::dropped() const noexcept {
    return state_->dropped();
}

std::uint64_t error_log::suppressed() const noexcept {
    return state_->suppressed();
}

} // namespace httpd
