#pragma once
// fail_everywhere: a scenario first runs undisturbed, to record its system calls and allocations.
// It then runs once for each of these and each way in which it may fail, and once more with every
// later one failing as well (the method of the tests of curl and SQLite).
//
// Either the fault makes no difference, or the scenario ends with a typed error. Nothing may crash,
// hang or leak, and the same loop serves the next request.

#include "backend_test.hpp"
#include "failing_allocations.hpp"
#include "fault_plan.hpp"
#include "full_form.hpp"
#include "possible_errors.hpp"
#include "raw_peer.hpp"
#include "sigpipe_watch.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <latch>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <netdb.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simplenet::v0::testing {

/// A short program, created anew for each run. It joins everything it starts.
class fault_scenario {
public:
    fault_scenario() = default;
    fault_scenario(const fault_scenario&) = delete;
    fault_scenario& operator=(const fault_scenario&) = delete;
    virtual ~fault_scenario() = default;

    /// The result, which is the same each time; or the first error. Contains no expectations, and
    /// may throw.
    virtual task<result<std::string>> play() = 0;

    /// Coroutines end on other threads, so this thread cannot count their frames.
    [[nodiscard]] virtual bool crosses_threads() const { return false; }

    /// Another thread's loop, whose allocations fail. Null: those of the thread that plays.
    [[nodiscard]] virtual event_loop* failing_loop() noexcept { return nullptr; }

    /// Lets allocations fail until disarm(). Overridden where a thread of its own fails.
    virtual void arm(std::size_t index, bool lasts) {
        there([&] { armed_.emplace(index, lasts); });
    }
    /// Returns how many allocations there were.
    virtual std::size_t disarm() {
        std::size_t seen = 0;
        there([&] {
            seen = failing_allocations::seen();
            armed_.reset();
        });
        return seen;
    }

private:
    template <class Function>
    void there(Function function) {
        event_loop* const loop = failing_loop();
        if (loop == nullptr) return function();
        std::latch done{1};
        loop->post([&] {
            function();
            done.count_down();
        });
        done.wait();
    }

    std::optional<failing_allocations> armed_;
};

class fail_everywhere_test : public own_loops_test {
protected:
    /// Runs `Scenario` with every call, entry, completion and allocation failing in turn.
    template <class Scenario>
    void fail_everywhere(loop_options options = {}) {
        run_undisturbed<Scenario>(options);
        if (HasFatalFailure()) return;
        fail_calls();
        fail_entries();
        disturb_completions();
        fail_allocations();
        report_runs();
    }
    /// Only allocations fail: for what a call must not fail to do.
    template <class Scenario>
    void fail_allocations_everywhere(loop_options options = {}) {
        run_undisturbed<Scenario>(options);
        if (HasFatalFailure()) return;
        fail_allocations();
        report_runs();
    }

    /// For libraries that keep memory the first time that something happens, such as an error: only
    /// what each run of the same fault leaves behind has leaked.
    void expect_caches() { fills_caches_ = true; }

private:
    template <class Scenario>
    void run_undisturbed(loop_options options) {
        play_ = [] { return std::unique_ptr<fault_scenario>{new Scenario}; };
        options_ = options;
        options_.backend = GetParam();

        // The first run also opens what the process keeps, such as a resolver.
        for (int round = 0; round < 2; ++round) {
            const report undisturbed = run({});
            ASSERT_TRUE(undisturbed.text) << "undisturbed: " << undisturbed.why();
            expected_ = undisturbed.text->text();
            calm_ = undisturbed;
        }
        ASSERT_FALSE(calm_.hung);
    }
    void report_runs() {
        report_figures(std::to_string(runs_) + " runs, " + std::to_string(unharmed_) +
                       " as if nothing had happened, the others ended with an error");
    }

    class short_text {
    public:
        explicit short_text(std::string_view text)
            : size_{std::min(text.size(), bytes_.size())} {
            std::ranges::copy(text.substr(0, size_), bytes_.begin());
        }
        [[nodiscard]] std::string_view text() const { return {bytes_.data(), size_}; }

    private:
        std::array<char, 120> bytes_{};
        std::size_t size_;
    };

    /// The report of one run. Allocates nothing, so that leaks can be counted.
    struct report {
        std::optional<short_text> text;
        std::error_code error;
        bool threw_bad_alloc = false;
        bool threw = false;
        bool hung = false;
        std::error_code served; // of the next request on the same loop
        std::ptrdiff_t frames = 0;
        std::ptrdiff_t descriptors = 0;
        std::ptrdiff_t allocations = 0;
        int sigpipes = 0;
        std::size_t seen_allocations = 0;
        unsigned struck = 0;
        std::array<unsigned, static_cast<std::size_t>(call::count_of_calls)> calls{};
        std::array<std::pair<fault_plan::entry_kind, unsigned>, 16> entries{};
        unsigned completions = 0;

        [[nodiscard]] std::string why() const {
            if (hung) return "hangs";
            if (threw_bad_alloc) return "std::bad_alloc";
            if (threw) return "an exception: " + error.message();
            return error.message();
        }
    };

    struct disturbance {
        std::function<void(fault_plan&)> plan = [](fault_plan&) {};
        std::optional<std::size_t> allocation{};
        bool lasts = false; // or may wait forever for another reason
    };

    /// The time after which a disturbed run counts as hanging.
    [[nodiscard]] static std::chrono::milliseconds patience_with(bool lasting) {
        // A listener without descriptors keeps trying, so its client keeps waiting.
        return std::chrono::milliseconds{lasting ? 60 : 4000} * patience;
    }

    report run(const disturbance& what) {
        report told;
        const std::ptrdiff_t before = failing_allocations::live();
        const sigpipe_watch sigpipes;
        // A new thread has empty caches, so that everything is allocated again.
        std::thread{[&] { run_here(what, told); }}.join();
        // A detached thread frees its last memory after every other thread has released it.
        for (int look = 0; look < 100; ++look) {
            told.allocations = failing_allocations::live() - before;
            if (told.allocations <= most_left()) break;
            std::this_thread::sleep_for(std::chrono::milliseconds{1}); // no event tells
        }
        told.descriptors = open_descriptors();
        told.sigpipes += sigpipe_watch::delivered();
        return told;
    }

    void run_here(const disturbance& what, report& told) {
        std::unique_ptr<fault_scenario> scene = play_();
        {
            auto made = event_loop::create(options_);
            if (!made) {
                told.error = made.error();
                return;
            }
            event_loop loop = *std::move(made);
            {
                fault_plan plan;
                what.plan(plan);
                loop.spawn(conduct(*scene, what, told));
                told.hung = !loop.run_for(patience_with(false) * 2);
                note_counts(plan, told);
            }
            if (!told.hung) {
                loop.spawn(serve_next(told));
                told.hung = !loop.run_for(patience_with(false) * 2);
            }
        }
        const bool frames_count = !scene->crosses_threads();
        scene.reset();
        told.frames = frames_count ? detail::live_frames() : 0;
        told.sigpipes = sigpipe_watch::is_pending() || sigpipe_watch::is_blocked() ? 1 : 0;
    }

    task<> conduct(fault_scenario& scene, const disturbance& what, report& told) {
        std::optional<result<std::string>> outcome;
        scene.arm(what.allocation.value_or(never), what.lasts);
        try {
            outcome.emplace(co_await with_timeout(scene.play(), patience_with(what.lasts)));
        } catch (const std::bad_alloc&) {
            told.threw_bad_alloc = true;
        } catch (const std::system_error& thrown) {
            told.threw = true;
            told.error = thrown.code();
        }
        told.seen_allocations = scene.disarm();
        if (!outcome) co_return;
        if (*outcome) {
            told.text.emplace(**outcome);
        } else {
            told.error = outcome->error();
        }
    }

    /// A connection unaffected by the earlier fault.
    static task<> serve_next(report& told) {
        const auto outcome = co_await with_timeout(serve(), patience_with(false));
        if (!outcome) told.served = outcome.error();
    }
    static task<result<>> serve() {
        auto listener = co_await or_return(tcp_listener::bind(own_endpoint()));
        const auto at = co_await or_return(listener.local_endpoint());
        auto client = co_await or_return(co_await async_connect(at));
        auto server = co_await or_return(co_await listener.accept());
        // Ends with a reset: in TIME_WAIT the connections of all runs would occupy all ports.
        co_await or_return(client.set_linger(std::chrono::seconds{0}));
        std::array<char, 4> word{};
        const auto bytes = std::as_writable_bytes(std::span{word});
        co_await or_return(co_await async_write_all(client, "next"));
        co_await or_return(co_await async_read_exact(server, bytes));
        co_await or_return(co_await async_write_all(server, const_buffer{bytes}));
        co_await or_return(co_await async_read_exact(client, bytes));
        // The word of this connection, not one that an earlier one left in a buffer.
        EXPECT_EQ(std::string_view(word.data(), word.size()), "next");
        co_return result<>{};
    }

    static void note_counts(const fault_plan& plan, report& told) {
        for (std::size_t each = 0; each < told.calls.size(); ++each)
            told.calls[each] = plan.count(static_cast<call>(each));
        const auto entries = plan.entries();
        ASSERT_LE(entries.size(), told.entries.size());
        std::ranges::copy(entries, told.entries.begin());
        told.completions = plan.completions();
        told.struck = plan.struck();
    }

    static std::ptrdiff_t open_descriptors() {
        const std::filesystem::directory_iterator open{"/proc/self/fd"};
        return std::distance(begin(open), end(open));
    }

    /// With SIMPLENET_FAULTS_FORK each run has a process of its own: a crash is then a failure with
    /// a name, and the other runs follow.
    void expect_clean(const std::string& where, const disturbance& what) {
        static const bool forks = std::getenv("SIMPLENET_FAULTS_FORK") != nullptr;
        if (!forks) return expect_clean_here(where, what);
        ++runs_;
        std::fflush(nullptr);
        const pid_t child = ::fork();
        if (child == 0) {
            const int before = failures();
            expect_clean_here(where, what);
            std::fflush(nullptr);
            ::_exit(failures() != before ? 1 : 0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_EQ(status, 0) << where << (WIFSIGNALED(status) ? ": it dies" : ": it fails");
    }
    static int failures() {
        return ::testing::UnitTest::GetInstance()
            ->current_test_info()
            ->result()
            ->total_part_count();
    }
    void expect_clean_here(const std::string& where, const disturbance& what) {
        announce(where);
        ::alarm(60);
        report told = run(what);
        // What was kept for later is kept once.
        for (int again = 0; again < 3 && fills_caches_ && told.allocations > most_left(); ++again)
            told = run(what);
        ::alarm(0);
        announce({});
        ++runs_;
        const ::testing::ScopedTrace trace{__FILE__, __LINE__, where};
        EXPECT_FALSE(told.hung) << "it hangs";
        if (told.text) {
            EXPECT_EQ(told.text->text(), expected_) << "the result is different";
            ++unharmed_;
        } else {
            EXPECT_TRUE(told.error || told.threw_bad_alloc)
                << "the error does not tell what went wrong";
            EXPECT_TRUE(what.allocation || !told.threw_bad_alloc)
                << "std::bad_alloc without a failed allocation";
            EXPECT_TRUE(what.lasts || told.error != errc::deadline_exceeded)
                << "waits for something that never happens";
        }
        EXPECT_FALSE(told.served) << "the next request on the same loop: " << told.served.message();
        EXPECT_EQ(told.frames, 0) << "coroutine frames leaked";
        EXPECT_EQ(told.descriptors, calm_.descriptors) << "descriptors were left open";
        EXPECT_LE(told.allocations, most_left()) << "memory leaked";
        EXPECT_EQ(told.sigpipes, 0) << "a SIGPIPE was delivered, or is left pending or blocked";
    }

    /// The number of blocks that a run may leave behind.
    [[nodiscard]] std::ptrdiff_t most_left() const {
        return std::max<std::ptrdiff_t>(calm_.allocations, 0);
    }

    /// The places to try, out of `count`.
    static std::vector<unsigned> places(unsigned count) {
        std::vector<unsigned> chosen;
        for (unsigned at = 0; at < count; ++at) {
            if (full_form() || at < 2 || at + 1 == count) chosen.push_back(at);
        }
        return chosen;
    }
    static std::span<const possible_error> chosen(std::span<const possible_error> all) {
        return full_form() ? all : all.first(std::min<std::size_t>(all.size(), 2));
    }
    static std::string nth(unsigned at) { return " #" + std::to_string(at); }
    static std::string text_of(int error) {
        return ": " + (error < 0 ? ::gai_strerror(error) : std::generic_category().message(error));
    }

    void fail_calls() {
        for (std::size_t number = 0; number < calm_.calls.size(); ++number) {
            const auto which = static_cast<call>(number);
            for (const unsigned at : places(calm_.calls[number])) {
                const std::string where = detail::sys::to_string(which) + nth(at);
                for (const possible_error error : chosen(errors_of(which))) {
                    expect_clean(
                        where + text_of(error.number),
                        {.plan = [=](fault_plan& plan) { plan.fail(which, at, error.number); },
                         .lasts = error.costs_one});
                    if (!error.lasts || (!full_form() && at != 0)) continue;
                    expect_clean(where + text_of(error.number) + " from then on",
                                 {.plan =
                                      [=](fault_plan& plan) {
                                          plan.fail(which, at, error.number, from_then_on);
                                      },
                                  .lasts = true});
                }
                if (is_cut(which)) {
                    expect_clean(where + ": one at a time from then on",
                                 {.plan = [=](fault_plan& plan) {
                                     plan.shorten(which, at, 1, full_form() ? from_then_on : 64);
                                 }});
                }
                if (may_raise_sigpipe(which)) {
                    expect_clean(where + ": a byte, and its peer is gone",
                                 {.plan = [=](fault_plan& plan) { plan.lose_peer(which, at, 1); },
                                  .lasts = true});
                }
            }
        }
    }
    static bool is_cut(call which) {
        switch (which) {
        case call::send:
        case call::sendfile:
        case call::pread:
        case call::sendmmsg:
        case call::splice:
        case call::epoll_wait:
        case call::epoll_pwait2:
            return true;
        default:
            return false;
        }
    }

    static bool may_raise_sigpipe(call which) {
        return which == call::send || which == call::sendmsg || which == call::sendfile ||
               which == call::splice;
    }

    void fail_entries() {
        for (const auto& [kind, count] : calm_.entries) {
            for (const unsigned at : places(count)) {
                const auto which = kind;
                const std::string where = "entry of kind " + std::to_string(kind.opcode) +
                                          (kind.multishot ? ", multishot," : "") + nth(at);
                for (const possible_error error : chosen(errors_of(kind))) {
                    expect_clean(
                        where + text_of(error.number),
                        {.plan = [=](fault_plan& plan) { plan.fail(which, at, error.number); },
                         .lasts = error.costs_one});
                    if (!error.lasts || (!full_form() && at != 0)) continue;
                    expect_clean(where + text_of(error.number) + " from then on",
                                 {.plan =
                                      [=](fault_plan& plan) {
                                          plan.fail(which, at, error.number, from_then_on);
                                      },
                                  .lasts = true});
                }
                if (kind.opcode == IORING_OP_SEND) {
                    expect_clean(where + ": one byte",
                                 {.plan = [=](fault_plan& plan) { plan.shorten(which, at, 1); }});
                }
            }
        }
    }

    void disturb_completions() {
        for (const unsigned at : places(calm_.completions)) {
            const std::string where = "completion" + nth(at);
            for (const unsigned polls : {1U, 3U}) {
                expect_clean(where + ", " + std::to_string(polls) + " polls later",
                             {.plan = [=](fault_plan& plan) { plan.hold(at, polls); }});
            }
            for (const int error : {0, ENOBUFS, ECONNRESET}) {
                expect_clean(where + ", the last of its multishot" + text_of(error),
                             {.plan = [=](fault_plan& plan) { plan.end_multishot(at, error); }});
            }
        }
        if (calm_.completions == 0) return;
        expect_clean("every completion two polls later",
                     {.plan = [](fault_plan& plan) { plan.hold(0, 2, from_then_on); }});
        for (const int error : {0, ENOBUFS}) {
            expect_clean(
                "no multishot gives more than one" + text_of(error),
                {.plan = [=](fault_plan& plan) { plan.end_multishot(0, error, from_then_on); }});
        }
        expect_clean("no buffers for a while",
                     {.plan = [](fault_plan& plan) { plan.withhold_buffers(0, 20); }});
    }

    void fail_allocations() {
        const auto count = static_cast<unsigned>(calm_.seen_allocations);
        const unsigned step = full_form() ? 1 : std::max(1U, count / 24);
        for (unsigned at = 0; at < count; at += step) {
            for (const bool lasts : {false, true}) {
                expect_clean("allocation" + nth(at) + (lasts ? " and all that follow" : ""),
                             {.allocation = at, .lasts = lasts});
            }
        }
    }

    /// If the process dies, or hangs where no loop can notice, it prints the name of the run.
    static void announce(const std::string& where) {
        static bool handled = false;
        std::snprintf(current_, sizeof current_, "\nin the run: %s\n", where.c_str());
        if (std::exchange(handled, true)) return;
        std::signal(SIGALRM, [](int) { std::abort(); });
        std::signal(SIGABRT, [](int) {
            static_cast<void>(
                !::write(STDERR_FILENO, current_, std::char_traits<char>::length(current_)));
            std::signal(SIGABRT, SIG_DFL);
        });
    }
    static inline char current_[256];
    static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

    std::function<std::unique_ptr<fault_scenario>()> play_;
    loop_options options_;
    std::string expected_;
    report calm_;
    bool fills_caches_ = false;
    int runs_ = 0;
    int unharmed_ = 0;
};

} // namespace simplenet::v0::testing
