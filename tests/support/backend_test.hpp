#pragma once
// backend_test: the fixture of all tests that use a loop. Each test runs on both backends, and with
// seams also on epoll over a perturbed kernel.

#include "support/sanitizers.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/runtime/event_loop.hpp>

#if SIMPLENET_SEAMS
#include "io/backend.hpp"
#include "simulation/perturbed_kernel.hpp"
#endif

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <csignal>
#include <gtest/gtest.h>
#include <unistd.h>

namespace simplenet::v0::testing {

/// The time limit of a test; more where instrumentation slows everything down.
inline constexpr std::chrono::seconds test_limit{5 * patience};

/// Ends the process, with the name of the test, when a test hangs where no loop can notice: in a
/// blocking call, in a task that never suspends, in the destruction of a loop.
class watchdog {
public:
    /// Before ctest, which cannot name the test; after every wait of a test, which can name itself.
    static constexpr std::chrono::seconds limit{50};

    watchdog() {
        const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
        std::snprintf(message, sizeof message, "\n%s.%s hangs outside of its loop\n",
                      test->test_suite_name(), test->name());
        std::signal(SIGALRM, [](int) {
            static_cast<void>(
                !::write(STDERR_FILENO, message, std::char_traits<char>::length(message)));
            std::abort();
        });
        restart();
    }
    /// Starts the time again: for long tests that know they are making progress.
    static void restart() { ::alarm(static_cast<unsigned>(limit.count())); }
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;
    ~watchdog() { ::alarm(0); }

private:
    static inline char message[512];
};

/// Whether the environment forbids skipping tests of `which`: scripts/test.sh lists the backends
/// that this machine has.
inline bool is_required(backend which) {
    const char* const names = std::getenv("SIMPLENET_REQUIRE_BACKENDS");
    return names != nullptr && std::string_view{names}.find(to_string(which)) != std::string::npos;
}

/// Skips the test because its backend is unavailable; fails it if skipping is forbidden.
inline void leave_out(backend which) {
    ASSERT_FALSE(is_required(which))
        << "SIMPLENET_REQUIRE_BACKENDS names " << to_string(which) << ", which is unavailable";
    GTEST_SKIP() << to_string(which) << ": not offered by this kernel, sandbox or build";
}

/// For tests that make their own loops, in other threads or processes.
class own_loops_test : public ::testing::TestWithParam<backend> {
protected:
    void SetUp() override {
        if (!probe_backend(GetParam())) leave_out(GetParam());
    }
};

/// Gives each test a new event_loop on the backend named by the parameter.
class backend_test : public ::testing::TestWithParam<backend> {
protected:
    void SetUp() override {
        // A plain child could not run the loop that the test created before it.
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        remake_loop();
    }
    void TearDown() override { loop_.reset(); }

    [[nodiscard]] event_loop& loop() { return *loop_; }

    /// Replaces the loop by one with these options; the backend is always the parameter.
    void remake_loop(loop_options options = {}) {
        options.backend = GetParam();
        loop_.reset();
        perturb();
        auto made = event_loop::create(options);
        if (!made && made.error() == errc::backend_unavailable) return leave_out(GetParam());
        ASSERT_TRUE(made) << made.error().message();
        options_ = options;
        loop_.emplace(*std::move(made));
    }
    /// For tests of a loop's end.
    void destroy_loop() { loop_.reset(); }
    /// Long tests call this in their full form to report progress.
    static void still_alive() { watchdog::restart(); }

    /// Runs `body()` and everything it started to the end, or fails when the time is up.
    // By value: the coroutine uses the lambda's captures, so the lambda must outlive it.
    template <class Body>
    void run(Body body, std::chrono::seconds limit = test_limit) {
        // The rest is not a template: a coroutine for each lambda made tests slower to compile.
        run_erased([](void* it) { return (*static_cast<Body*>(it))(); }, &body, limit);
    }

private:
    using body_call = task<> (*)(void* body);

    void run_erased(body_call call, void* body, std::chrono::seconds limit) {
        loop().spawn(guarded(call, body));
        if (loop().run_for(limit)) return;

        const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
        ADD_FAILURE() << test->test_suite_name() << '.' << test->name()
                      << " hangs: its tasks have not ended after " << limit.count() << " s";
        remake_loop(options_); // ends everything on the old loop
    }

#if SIMPLENET_SEAMS
    /// The seed is the same in every run unless SIMPLENET_SEED is set; with threads and peers the
    /// run is not.
    void perturb() {
        if (GetParam() != detail::simulated_backend || kernel_) return;
        std::uint64_t seed = 0;
        if (const char* const text = std::getenv("SIMPLENET_SEED"); text != nullptr) {
            seed = std::strtoull(text, nullptr, 10);
        }
        kernel_.emplace(seed);
    }
    std::optional<simulation::perturbed_kernel> kernel_;
#else
    void perturb() {}
#endif

    static task<> guarded(body_call call, void* body) {
        try {
            co_await call(body);
        } catch (const std::exception& thrown) {
            ADD_FAILURE() << "the test threw an exception: " << thrown.what();
        }
    }

    watchdog watchdog_;
    loop_options options_;
    std::optional<event_loop> loop_;
};

/// For tests that measure the kernel, or the library's use of it.
inline const auto real_backends = ::testing::Values(backend::epoll, backend::io_uring);
#if SIMPLENET_SEAMS
inline const auto all_backends =
    ::testing::Values(backend::epoll, backend::io_uring, detail::simulated_backend);
#else
inline const auto all_backends = real_backends;
#endif
inline const auto backend_name = [](const auto& info) {
    return std::string{to_string(info.param)};
};

} // namespace simplenet::v0::testing
