// The backend that a loop gets, especially if the kernel or a sandbox refuses io_uring. A process
// probes for io_uring only once, so every case has a process of its own.

#include <simplenet/io/loop_options.hpp>

#include "support/descriptor_limit.hpp"
#include "support/error_of.hpp"
#include "support/full_form.hpp"
#include "support/raw_peer.hpp"
#include "support/refuse_system_calls.hpp"

#include <simplenet/runtime/event_loop.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/sleep.hpp>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;

constexpr int as_expected = 0;

/// Ends the process; prints `made` unless it is as expected.
[[noreturn]] void judge(const result<event_loop>& made, bool same) {
    if (!same) {
        std::fprintf(stderr, "got %s\n",
                     made ? to_string(made->selected_backend()) : made.error().message().c_str());
    }
    std::_Exit(same ? as_expected : 1);
}
[[noreturn]] void judge(const result<event_loop>& made, backend expected) {
    judge(made, made && made->selected_backend() == expected);
}
/// `expected` is a std::errc or an errc.
[[noreturn]] void judge_error(const result<event_loop>& made, auto expected) {
    judge(made, error_of(made) == expected);
}

bool echoes(event_loop& loop) {
    auto [ours, theirs] = testing::connect_raw();
    bool same = false;
    loop.spawn([&]() -> task<> {
        std::string got(4, '\0');
        for (int left = testing::short_or_full(1, 5000); left != 0; --left) {
            theirs.send("ping");
            same = false;
            if (!co_await async_read_exact(ours, got)) co_return;
            if (!co_await async_write_all(ours, got)) co_return;
            same = theirs.receive(4) == "ping";
            if (!same) co_return;
        }
    });
    loop.run();
    return same;
}

class backend_choice_test : public ::testing::Test {
protected:
    backend_choice_test() {
        // A new process, instead of a copy of one that has already probed for io_uring.
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        ::unsetenv("SIMPLENET_BACKEND");
    }
    static bool kernel_has_io_uring() {
        char parameters[120] = {};
        const long fd = ::syscall(SYS_io_uring_setup, 8, parameters);
        if (fd >= 0) ::close(static_cast<int>(fd));
        return fd >= 0 && SIMPLENET_HAS_IO_URING;
    }
};

/// The system calls to refuse, and the error.
using refusal = std::tuple<std::vector<long>, int>;

class refused_io_uring_test : public backend_choice_test,
                              public ::testing::WithParamInterface<refusal> {
protected:
    void SetUp() override {
        if (!testing::can_refuse_system_calls()) GTEST_SKIP() << testing::no_refusals;
    }
    static void refuse() {
        const auto& [calls, error] = GetParam();
        if (!testing::refuse_system_calls(calls, error)) std::_Exit(1);
    }
};

TEST_P(refused_io_uring_test, automatic_falls_back_to_epoll_and_works) {
    EXPECT_EXIT(
        {
            refuse();
            auto made = event_loop::create();
            if (made && !echoes(*made)) std::_Exit(2);
            judge(made, backend::epoll);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

TEST_P(refused_io_uring_test, an_explicit_choice_that_is_unavailable_is_an_error) {
    EXPECT_EXIT(
        {
            refuse();
            judge_error(event_loop::create({.backend = backend::io_uring}),
                        errc::backend_unavailable);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

TEST_P(refused_io_uring_test,
       an_explicit_choice_by_the_environment_that_is_unavailable_is_an_error) {
    EXPECT_EXIT(
        {
            refuse();
            ::setenv("SIMPLENET_BACKEND", "io_uring", 1);
            judge_error(event_loop::create(), errc::backend_unavailable);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

TEST_P(refused_io_uring_test, epoll_does_not_depend_on_io_uring) {
    EXPECT_EXIT(
        {
            refuse();
            auto made = event_loop::create({.backend = backend::epoll});
            if (made && !echoes(*made)) std::_Exit(2);
            judge(made, backend::epoll);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

const std::vector<long> all_of_it{SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};

std::string name_of(const ::testing::TestParamInfo<refusal>& tested) {
    const auto& [calls, error] = tested.param;
    const std::string what = calls.size() == 3                     ? "everything"
                             : calls.front() == SYS_io_uring_enter ? "enter"
                                                                   : "register";
    return what + "_with_errno_" + std::to_string(error);
}

INSTANTIATE_TEST_SUITE_P(refusals, refused_io_uring_test,
                         ::testing::Values(refusal{all_of_it, EPERM}, refusal{all_of_it, ENOSYS},
                                           refusal{all_of_it, EOPNOTSUPP},
                                           refusal{all_of_it, ENOMEM}, refusal{all_of_it, EINVAL},
                                           refusal{{SYS_io_uring_enter}, EPERM},
                                           refusal{{SYS_io_uring_register}, EPERM},
                                           refusal{{SYS_io_uring_register}, EINVAL}),
                         name_of);

/// The system calls behind epoll_wait(3): newer architectures lack the older one.
std::vector<long> epoll_waits() {
    std::vector<long> calls{SYS_epoll_pwait};
#ifdef SYS_epoll_wait
    calls.push_back(SYS_epoll_wait);
#endif
    return calls;
}

// EPERM must be a reason to do without epoll_pwait2(2), too, not only ENOSYS.
TEST_F(backend_choice_test, epoll_works_where_a_sandbox_refuses_waits_of_nanoseconds) {
    if (!testing::can_refuse_system_calls()) GTEST_SKIP() << testing::no_refusals;
    constexpr long pwait2 = 441; // epoll_pwait2(2), missing in older headers
    EXPECT_EXIT(
        {
            auto loop = event_loop::create({.backend = backend::epoll});
            if (!testing::refuse_system_calls({pwait2}, EPERM)) std::_Exit(1);
            loop->spawn([]() -> task<> { static_cast<void>(co_await async_sleep(100us)); });
            loop->run();
            std::_Exit(echoes(*loop) ? as_expected : 1);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

TEST_F(backend_choice_test, epoll_that_cannot_wait_is_an_error_of_create) {
    if (!testing::can_refuse_system_calls()) GTEST_SKIP() << testing::no_refusals;
    EXPECT_EXIT(
        {
            if (!testing::refuse_system_calls(epoll_waits(), EPERM)) std::_Exit(1);
            judge_error(event_loop::create({.backend = backend::epoll}),
                        std::errc::operation_not_permitted);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

TEST_F(backend_choice_test, automatic_takes_io_uring_if_the_kernel_provides_it) {
    if (!kernel_has_io_uring()) GTEST_SKIP() << "io_uring: not offered by this kernel or build";
    EXPECT_EXIT(judge(event_loop::create(), backend::io_uring),
                ::testing::ExitedWithCode(as_expected), "");
}

TEST_F(backend_choice_test, the_environment_chooses_for_automatic_loops) {
    EXPECT_EXIT(
        {
            ::setenv("SIMPLENET_BACKEND", "epoll", 1);
            judge(event_loop::create(), backend::epoll);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

TEST_F(backend_choice_test, an_explicit_choice_beats_the_environment) {
    if (!kernel_has_io_uring()) GTEST_SKIP() << "io_uring: not offered by this kernel or build";
    EXPECT_EXIT(
        {
            ::setenv("SIMPLENET_BACKEND", "epoll", 1);
            judge(event_loop::create({.backend = backend::io_uring}), backend::io_uring);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

TEST_F(backend_choice_test, an_environment_that_names_no_backend_is_an_error) {
    EXPECT_EXIT(
        {
            ::setenv("SIMPLENET_BACKEND", "kqueue", 1);
            judge_error(event_loop::create(), std::errc::invalid_argument);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

TEST_F(backend_choice_test, an_empty_environment_chooses_nothing) {
    EXPECT_EXIT(
        {
            ::setenv("SIMPLENET_BACKEND", "", 1);
            const auto made = event_loop::create();
            std::_Exit(made ? as_expected : 1);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

// A shortage does not mean that the kernel lacks io_uring.
TEST_F(backend_choice_test, running_out_of_descriptors_is_reported_and_not_remembered) {
    if (!kernel_has_io_uring()) GTEST_SKIP() << "io_uring: not offered by this kernel or build";
    EXPECT_EXIT(
        {
            for (int spare = 0; spare < 3; ++spare) {
                for (const auto which : {backend::automatic, backend::io_uring, backend::epoll}) {
                    const testing::descriptor_limit limit{spare};
                    const auto made = event_loop::create({.backend = which});
                    if (!made && error_of(made) != std::errc::too_many_files_open) {
                        judge_error(made, std::errc::too_many_files_open);
                    }
                }
            }
            judge(event_loop::create(), backend::io_uring);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

TEST_F(backend_choice_test, a_loop_works_without_locked_memory) {
    EXPECT_EXIT(
        {
            const rlimit none{};
            ::setrlimit(RLIMIT_MEMLOCK, &none);
            if (::geteuid() == 0 && ::setuid(65534) != 0) std::_Exit(as_expected);
            auto made = event_loop::create();
            std::_Exit(made && echoes(*made) ? as_expected : 1);
        },
        ::testing::ExitedWithCode(as_expected), "");
}

TEST_F(backend_choice_test, every_queue_depth_is_brought_into_range) {
    for (const auto which : {backend::epoll, backend::io_uring}) {
        for (const unsigned depth : {0U, 1U, 7U, 100U, 1U << 20, ~0U}) {
            auto made = event_loop::create({.backend = which, .queue_depth = depth});
            if (!made && made.error() == errc::backend_unavailable) continue;
            ASSERT_TRUE(made) << made.error().message();
            EXPECT_TRUE(echoes(*made));
        }
    }
}

TEST_F(backend_choice_test, backends_have_the_names_of_the_environment_variable) {
    EXPECT_STREQ(to_string(backend::automatic), "automatic");
    EXPECT_STREQ(to_string(backend::epoll), "epoll");
    EXPECT_STREQ(to_string(backend::io_uring), "io_uring");
}

// --- messages of create()

std::string choice(loop_options options = {}) {
    const auto made = event_loop::create(options);
    if (made) return to_string(made->selected_backend());
    return made.error().message();
}

class backend_choice_death_test : public ::testing::Test {
protected:
    void SetUp() override {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        ::unsetenv("SIMPLENET_BACKEND");
    }
};

/// Ends a death test with the choice as its message.
[[noreturn]] void tell(const std::string& text) {
    std::fputs(text.c_str(), stderr);
    std::_Exit(0);
}

const auto exited_with_success = ::testing::ExitedWithCode(0);

TEST_F(backend_choice_death_test, automatic_is_io_uring_where_it_works_and_epoll_elsewhere) {
    const char* const best = probe_backend(backend::io_uring) ? "^io_uring$" : "^epoll$";
    EXPECT_EXIT(tell(choice()), exited_with_success, best);
}

TEST_F(backend_choice_death_test, the_environment_decides_for_automatic) {
    ::setenv("SIMPLENET_BACKEND", "epoll", 1);
    EXPECT_EXIT(tell(choice()), exited_with_success, "^epoll$");
}

TEST_F(backend_choice_death_test, an_explicit_choice_wins_over_the_environment) {
    ::setenv("SIMPLENET_BACKEND", "io_uring", 1);
    EXPECT_EXIT(tell(choice({.backend = backend::epoll})), exited_with_success, "^epoll$");
    ::setenv("SIMPLENET_BACKEND", "nonsense", 1);
    EXPECT_EXIT(tell(choice({.backend = backend::epoll})), exited_with_success, "^epoll$");
}

TEST_F(backend_choice_death_test, a_name_that_is_no_backend_is_an_error) {
    for (const char* const name : {"kqueue", "EPOLL", "epoll ", "uring"}) {
        ::setenv("SIMPLENET_BACKEND", name, 1);
        EXPECT_EXIT(tell(choice()), exited_with_success,
                    "^SIMPLENET_BACKEND names no backend: epoll, io_uring or automatic$")
            << name;
    }
}

TEST_F(backend_choice_death_test, an_empty_environment_variable_is_ignored) {
    ::setenv("SIMPLENET_BACKEND", "", 1);
    EXPECT_EXIT(tell(choice()), exited_with_success, "^(epoll|io_uring)$");
}

std::string choice_without_io_uring(int error, loop_options options = {}) {
    if (!testing::refuse_system_calls({SYS_io_uring_setup}, error)) return testing::no_refusals;
    return choice(options);
}

TEST_F(backend_choice_death_test, automatic_is_epoll_if_io_uring_is_refused) {
    if (!testing::can_refuse_system_calls()) GTEST_SKIP() << testing::no_refusals;
    for (const int error : {EPERM, ENOSYS, EACCES, ENOMEM, EOPNOTSUPP, EINVAL}) {
        EXPECT_EXIT(tell(choice_without_io_uring(error)), exited_with_success, "^epoll$");
    }
}

// The message says which backend is unavailable, and why.
TEST_F(backend_choice_death_test,
       an_explicit_io_uring_that_is_refused_is_reported_with_the_reason) {
    if (!testing::can_refuse_system_calls()) GTEST_SKIP() << testing::no_refusals;
    for (const int error : {EPERM, ENOSYS, ENOMEM}) {
#if SIMPLENET_HAS_IO_URING
        const std::string why = std::system_category().message(error);
#else
        const std::string why = "the library was built without it";
#endif
        const std::string said = "^io_uring is unavailable: " + why + "$";
        ::unsetenv("SIMPLENET_BACKEND");
        EXPECT_EXIT(tell(choice_without_io_uring(error, {.backend = backend::io_uring})),
                    exited_with_success, said);
        ::setenv("SIMPLENET_BACKEND", "io_uring", 1);
        EXPECT_EXIT(tell(choice_without_io_uring(error)), exited_with_success, said);
    }
}

// A shortage must not be remembered as the verdict on io_uring for the life of the process.
TEST_F(backend_choice_death_test, a_shortage_of_descriptors_does_not_rule_out_io_uring) {
    if (choice({.backend = backend::io_uring}) != "io_uring")
        GTEST_SKIP() << "this kernel has no io_uring";
    const auto after_a_shortage = [] {
        {
            const testing::descriptor_limit none{0};
            if (choice({.backend = backend::io_uring}) != "Too many open files") return choice();
        }
        return choice({.backend = backend::io_uring});
    };
    EXPECT_EXIT(tell(after_a_shortage()), exited_with_success, "^io_uring$");
}

} // namespace
} // namespace simplenet::v0
