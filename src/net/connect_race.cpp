// async_connect() to a name: lookups and attempts run at the same time, in a group, and report to
// the one coroutine that follows the plan.

#include "net/connect_attempt.hpp"
#include "net/connect_plan.hpp"
#include "net/host_name.hpp"
#include "net/lookup.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/time/detail/timed_queue.hpp>

#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace simplenet::v0 {
namespace detail {

namespace {

using clock = std::chrono::steady_clock;

/// Wakes the one coroutine that waits for news. News without a waiter is kept.
class news {
public:
    /// Awaitable of wait().
    class [[nodiscard]] wait_operation final : public suspension, timer_node {
    public:
        wait_operation(news& of, std::optional<clock::time_point> until) noexcept
            : news_{&of}
            , until_{until} {}
        wait_operation(wait_operation&& other) noexcept
            : suspension{}
            , timer_node{}
            , news_{other.news_}
            , until_{other.until_} {}
        ~wait_operation() { news_->waiting_ = nullptr; }

        static bool await_ready() noexcept { return false; }
        template <class Promise>
        bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
            scope& within = scope_of(caller);
            suspend(caller, within);
            if (within.stopped()) {
                stopped_ = within.reason;
                within.queue->refuse(*this, within);
                return true;
            }
            if (std::exchange(news_->fresh_, false)) {
                within.current = nullptr;
                return false;
            }
            news_->waiting_ = this;
            if (until_) timed_queue::of(within).timers.insert(*this, *until_);
            return true;
        }
        result<> await_resume() const noexcept {
            if (stopped_ != stop_reason::none) return fail(error_of(stopped_));
            return {};
        }

        void on_stop(stop_reason reason) noexcept override {
            if (news_->waiting_ != this) return; // already woken
            stopped_ = reason;
            wake();
        }
        void describe(std::string& text) override { text += "a connection to any address"; }
        void wake() noexcept {
            timed_queue::of(*within_).timers.cancel(*this);
            news_->waiting_ = nullptr;
            within_->queue->push(*this);
        }

    private:
        void expired() noexcept override { wake(); }

        news* news_; // borrowed: outlives the await
        std::optional<clock::time_point> until_;
        stop_reason stopped_ = stop_reason::none;
    };

    /// Returns the error of a stop that came first.
    [[nodiscard]] wait_operation wait(std::optional<clock::time_point> until) noexcept {
        return {*this, until};
    }
    void tell() noexcept {
        if (waiting_ == nullptr) {
            fresh_ = true;
        } else {
            waiting_->wake();
        }
    }

private:
    bool fresh_ = false;
    wait_operation* waiting_ = nullptr; // part of the coroutine's frame
};

/// Shared by the coroutines of one connection. Part of the frame of race(), which outlives the
/// others.
struct contest {
    contest(std::string to, std::uint16_t at, const connect_options& how)
        : host{std::move(to)}
        , port{at}
        , options{how}
        , plan{{how.attempt_delay, how.resolution_delay}} {}

    std::string host;
    std::uint16_t port;
    connect_options options;
    call_time since;
    connect_plan plan;
    news changed;
    std::optional<tcp_stream> winner;
    std::error_code attempts_error; // why no attempt succeeded
    std::error_code lookup_v6;      // why a family has no addresses
    std::error_code lookup_v4;
};

/// Reports the end of a coroutine of the contest, for whatever reason: nobody would wait for one
/// that threw.
class teller {
public:
    explicit teller(contest& of) noexcept
        : contest_{of} {}
    teller(const teller&) = delete;
    teller& operator=(const teller&) = delete;
    ~teller() { contest_.changed.tell(); }

private:
    contest& contest_;
};

/// This machine has no route there: less informative than an answer from another machine.
bool is_local(std::error_code error) noexcept {
    return error == std::errc::network_unreachable ||
           error == std::errc::address_family_not_supported ||
           error == std::errc::address_not_available;
}

task<> look_up(contest& in, address_family family) {
    const teller at_end{in};
    sys::name_question question;
    question.host = in.host;
    question.family = family;
    lookup_operation lookup{std::move(question)};
    const auto answer = co_await std::move(lookup);
    std::vector<ip_address> addresses;
    if (answer) {
        for (const endpoint& each : (*answer)->endpoints)
            addresses.push_back(each.address());
    } else {
        (family == address_family::v4 ? in.lookup_v4 : in.lookup_v6) = answer.error();
    }
    in.plan.answered(family, addresses, in.since.now());
}

task<> try_address(contest& in, ip_address address) {
    const teller at_end{in};
    auto stream = co_await attempt_connect(endpoint{address, in.port}, in.options, in.since);
    if (stream) {
        // A second one can succeed in the same turn: it is closed here.
        if (!in.winner) in.winner = *std::move(stream);
        co_return;
    }
    if (!in.attempts_error || !is_local(stream.error()) || is_local(in.attempts_error)) {
        in.attempts_error = stream.error();
    }
    in.plan.failed();
}

std::error_code error_of(const contest& in) noexcept {
    if (in.attempts_error) return in.attempts_error;
    if (!in.lookup_v6) return in.lookup_v4;
    if (!in.lookup_v4) return in.lookup_v6;
    return merge_errors(in.lookup_v6, in.lookup_v4);
}

/// Carries out the plan until the connection is decided. Returns the error of a stop, if any.
task<std::error_code> contend(contest& in, task_group& group) {
    for (const address_family family : {address_family::v6, address_family::v4}) {
        if (in.options.family != address_family::any && in.options.family != family) continue;
        in.plan.ask(family);
        group.spawn(look_up(in, family));
    }
    while (!in.winner && !group.failed()) {
        const connect_plan::step step = in.plan.next(in.since.now());
        if (step.what == connect_plan::step::kind::give_up) break;
        if (step.what == connect_plan::step::kind::attempt) {
            group.spawn(try_address(in, step.address));
            continue;
        }
        const auto waited = co_await in.changed.wait(step.until);
        if (!waited) co_return waited.error();
    }
    co_return std::error_code{};
}

task<result<tcp_stream>> race(std::string host, std::uint16_t port, connect_options options) {
    contest in{std::move(host), port, options};
    std::error_code stopped;
    std::exception_ptr thrown; // no memory for a child; running children are joined first
    task_group group;
    try {
        stopped = co_await contend(in, group);
    } catch (...) {
        thrown = std::current_exception();
    }
    group.request_stop();
    const result<> joined = co_await group.join();
    if (thrown) std::rethrow_exception(thrown);
    if (options.report != nullptr) {
        options.report->lookup_v6 = in.lookup_v6;
        options.report->lookup_v4 = in.lookup_v4;
    }
    if (in.winner) co_return *std::move(in.winner); // success beats a stop
    if (stopped) co_return fail(stopped);
    if (!joined) co_return fail(joined);
    co_return fail(error_of(in));
}

task<result<tcp_stream>> connect_to_host(std::string host, std::uint16_t port,
                                         connect_options options) {
    if (options.report != nullptr) *options.report = {};
    auto given = read_host(host);
    if (!given) co_return fail(given);
    if (given->address) {
        if (!is_of(*given->address, options.family)) co_return fail(errc::name_not_found);
        co_return co_await attempt_connect(endpoint{*given->address, port}, options, call_time{});
    }
    if (options.from) {
        if (!is_of(options.from->address(), options.family)) {
            co_return fail(std::errc::address_family_not_supported);
        }
        options.family = family_of(options.from->address());
    }
    co_return co_await race(std::move(given->name), port, options);
}

} // namespace
} // namespace detail

inline namespace runtime {

// Not a coroutine: the text of the view is copied before this returns.
task<result<tcp_stream>> async_connect(std::string_view host, std::uint16_t port,
                                       connect_options options) {
    return detail::limited_by(options, detail::connect_to_host(std::string{host}, port, options));
}

} // namespace runtime
} // namespace simplenet::v0
