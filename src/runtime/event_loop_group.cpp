#include <simplenet/runtime/event_loop_group.hpp>

#include "insight/loop_survey.hpp"
#include "runtime/group_dump.hpp"
#include "runtime/loop_access.hpp"
#include "runtime/loop_group_access.hpp"
#include "sys/processors.hpp"
#include "sys/threads.hpp"
#include "threads/forks.hpp"
#include "threads/signals_blocked.hpp"
#include "threads/thread_names.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <ostream>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace detail {

namespace {

result<std::vector<event_loop>> create_loops(std::size_t count, const loop_options& options) {
    std::vector<event_loop> loops;
    loops.reserve(count);
    while (loops.size() != count) {
        auto made = event_loop::create(options);
        if (!made) return fail(made);
        loops.push_back(*std::move(made));
    }
    return loops;
}

/// A group in which one loop is slower than the others would be a riddle.
result<std::vector<event_loop>> create_equal_loops(std::size_t count, loop_options options) {
    auto loops = create_loops(count, options);
    if (!loops || options.backend != backend::automatic) return loops;
    const auto falls_back = [](const event_loop& each) {
        return each.selected_backend() == backend::epoll;
    };
    const auto fallen_back = std::ranges::count_if(*loops, falls_back);
    if (fallen_back == 0 || std::cmp_equal(fallen_back, count)) return loops;
    loops->clear(); // their descriptors and locked memory, first
    options.backend = backend::epoll;
    return create_loops(count, options);
}

void add(loop_metrics& sum, const loop_metrics& one) noexcept {
    sum.turns += one.turns;
    sum.completions += one.completions;
    sum.wake_ups += one.wake_ups;
    sum.stalls += one.stalls;
    sum.accept_pauses += one.accept_pauses;
    sum.live_tasks += one.live_tasks;
    sum.live_operations += one.live_operations;
    sum.live_frames += one.live_frames;
    sum.timers += one.timers;
    sum.open_descriptors += one.open_descriptors;
    sum.receive_pool_leased += one.receive_pool_leased;
    sum.receive_pool_overflow += one.receive_pool_overflow;
}

} // namespace

/// The loops of an event_loop_group and their threads.
class loop_threads {
public:
    explicit loop_threads(std::vector<event_loop> loops)
        : loops_{std::move(loops)} {
        threads_.reserve(loops_.size());
    }
    loop_threads(const loop_threads&) = delete;
    loop_threads& operator=(const loop_threads&) = delete;
    ~loop_threads() {
        stop();
        join();
    }

    /// Throws std::system_error. `processors`: empty, or one for each loop.
    void start(const event_loop_group_options& options, std::span<const unsigned> processors) {
        const bool watched = options.loop.stall_threshold > std::chrono::nanoseconds::zero();
        const signals_blocked inherited{options.loop.dump_signal,
                                        watched ? options.loop.stall_signal : 0};
        for (event_loop& each : loops_) {
            const std::size_t number = threads_.size();
            threads_.push_back(sys::start_thread([this, &each] { run(each); }));
            const pthread_t thread = threads_.back().native_handle();
            name_thread(thread, options.name, number);
            if (processors.empty()) continue;
            if (const int pinned = sys::pin_thread(thread, processors[number]); pinned != 0)
                throw std::system_error{-pinned, std::system_category()};
        }
    }

    void stop() noexcept {
        // All refuse before the first one stops: no loop of the group is ahead of another one.
        for (event_loop& each : loops_)
            loop_access::refuse_posts(each);
        stopping_.store(true, std::memory_order_release);
        for (event_loop& each : loops_)
            each.stop();
    }

    void join() {
        SIMPLENET_EXPECTS(!on_own_thread(),
                          "an event_loop_group is joined, or destroyed, on a thread of its own: it "
                          "would wait for itself");
        const std::lock_guard lock{joining_};
        for (std::thread& each : threads_) {
            if (each.joinable()) each.join();
        }
    }

    [[nodiscard]] std::span<event_loop> loops() noexcept { return loops_; }
    /// For write_metrics().
    void name(std::string_view name) { name_group(places_, name); }
    /// The figures of `count` loops, together.
    [[nodiscard]] loop_metrics metrics(std::size_t first, std::size_t count) const {
        loop_metrics sum;
        for (const loop_metrics& each : survey_loops(std::span{places_}.subspan(first, count)))
            add(sum, each);
        return sum;
    }
    [[nodiscard]] event_loop& next() noexcept {
        return loops_[turn_.fetch_add(1, std::memory_order_relaxed) % loops_.size()];
    }
    [[nodiscard]] bool is_inherited() const noexcept { return born_in_ != fork_generation(); }
    [[nodiscard]] std::weak_ptr<const void> life() const noexcept { return life_; }

private:
    [[nodiscard]] bool on_own_thread() const noexcept {
        const event_loop* const here = event_loop::current();
        return std::ranges::any_of(loops_,
                                   [here](const event_loop& each) { return &each == here; });
    }
    void run(event_loop& loop) {
        loop_access::run_without_work(loop);
        do {
            loop.run();
        } while (!stopping_.load(std::memory_order_acquire));
        loop_access::end(loop);
    }

    std::vector<event_loop> loops_; // at fixed addresses
    const std::vector<std::shared_ptr<surveyed_loop>> places_ = loop_access::places_of(loops_);
    std::vector<std::thread> threads_;
    std::atomic<bool> stopping_ = false;
    std::atomic<std::size_t> turn_ = 0;
    std::mutex joining_;
    unsigned born_in_ = fork_generation();
    const std::shared_ptr<const void> life_ = std::make_shared<char>('\0'); // for loop_group_access
};

std::weak_ptr<const void> loop_group_access::life_of(const event_loop_group& group) noexcept {
    return group.inner().life();
}

} // namespace detail

inline namespace runtime {

unsigned usable_processors() {
    return detail::sys::usable_processors();
}

result<event_loop_group> event_loop_group::create(event_loop_group_options options) {
    const std::size_t count = options.loops != 0 ? options.loops : detail::sys::usable_processors();
    std::vector<unsigned> processors;
    if (options.pin) {
        processors = detail::sys::allowed_processors();
        if (processors.size() < count) return fail(std::errc::invalid_argument);
    }
    auto loops = detail::create_equal_loops(count, options.loop);
    if (!loops) return fail(loops);
    auto threads = std::make_unique<detail::loop_threads>(*std::move(loops));
    threads->name(options.name);
    try {
        threads->start(options, processors);
    } catch (const std::system_error& error) {
        return fail(error.code());
    }
    return event_loop_group{std::move(threads)};
}

event_loop_group::event_loop_group(std::unique_ptr<detail::loop_threads> inner) noexcept
    : inner_{std::move(inner)} {}

event_loop_group::event_loop_group(event_loop_group&& other) noexcept = default;

event_loop_group& event_loop_group::operator=(event_loop_group&& other) noexcept {
    if (this != &other) {
        const event_loop_group replaced{std::move(*this)};
        inner_ = std::move(other.inner_);
    }
    return *this;
}

event_loop_group::~event_loop_group() {
    if (inner_ != nullptr && inner_->is_inherited()) {
        // Its threads do not exist in this process: so it is only forgotten.
        static_cast<void>(inner_.release());
    }
}

detail::loop_threads& event_loop_group::inner() const noexcept {
    SIMPLENET_EXPECTS(inner_ != nullptr, "an event_loop_group was used after it was moved from");
    return *inner_;
}

std::size_t event_loop_group::size() const noexcept {
    return inner().loops().size();
}

event_loop& event_loop_group::operator[](std::size_t index) noexcept {
    SIMPLENET_EXPECTS(index < size(), "an event_loop_group has no loop of this index");
    return inner().loops()[index];
}

const event_loop& event_loop_group::operator[](std::size_t index) const noexcept {
    SIMPLENET_EXPECTS(index < size(), "an event_loop_group has no loop of this index");
    return inner().loops()[index];
}

event_loop& event_loop_group::next() noexcept {
    return inner().next();
}

void event_loop_group::stop() noexcept {
    if (!inner().is_inherited()) inner().stop();
}

void event_loop_group::join() {
    if (!inner().is_inherited()) inner().join();
}

loop_metrics event_loop_group::metrics() const {
    if (inner().is_inherited()) return {};
    return inner().metrics(0, size());
}

loop_metrics event_loop_group::metrics(std::size_t index) const {
    SIMPLENET_EXPECTS(index < size(), "an event_loop_group has no loop of this index");
    if (inner().is_inherited()) return {};
    return inner().metrics(index, 1);
}

void event_loop_group::dump_tasks(std::ostream& to) const {
    if (!inner().is_inherited()) to << detail::dump_tasks_of(inner().loops());
}

} // namespace runtime
} // namespace simplenet::v0
