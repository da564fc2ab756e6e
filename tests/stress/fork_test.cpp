// fork(2) in a process with a loop: the parent continues unaffected, whatever the child does. The
// child can make loops of its own, and is stopped with a message if it uses one of the parent's.

#include "support/backend_test.hpp"
#include "support/child_process.hpp"
#include "support/coroutines.hpp"
#include "support/full_form.hpp"
#include "support/placed_bytes.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::child_process;
using testing::placed_bytes;
using testing::short_or_full;

class fork_test : public testing::backend_test {
protected:
    static task<> write_placed(tcp_stream& stream, std::uint64_t seed, const bool& over) {
        const placed_bytes content{seed};
        std::uint64_t offset = 0;
        while (!over) {
            const auto piece = content.piece(offset, 1 + offset % 9000);
            const auto sent = co_await async_write_all(stream, const_buffer{piece});
            EXPECT_TRUE(sent);
            if (!sent) co_return;
            offset += *sent;
            co_await yield();
        }
        EXPECT_TRUE(stream.shutdown_write());
    }
    static task<> read_placed(tcp_stream& stream, std::uint64_t seed) {
        const placed_bytes content{seed};
        std::uint64_t offset = 0;
        while (auto lease = co_await stream.receive()) {
            const auto mistake = content.mistake(offset, lease->bytes());
            EXPECT_FALSE(mistake) << *mistake;
            offset += lease->size();
        }
    }

    /// The things that a child may do while the parent's loop runs.
    int in_child(int number) {
        switch (number % 3) {
        case 0:
            return 0; // _exit() at once
        case 1:       // an executed program inherits no descriptor
            ::execl("/bin/true", "true", nullptr);
            return 1;
        default: // keeps all its descriptors for a while
            ::usleep(1000);
            return 0;
        }
    }
};

TEST_P(fork_test, the_parent_continues) {
    constexpr int connections = 4;
    const int children = short_or_full(30, 1000);
    std::vector<testing::stream_pair> pairs;
    for (int each = 0; each < connections; ++each)
        pairs.push_back(testing::connected_pair({.ours = 8192, .theirs = 8192}));
    run(
        [&]() -> task<> {
            bool over = false;
            task_group all;
            for (int each = 0; each < connections; ++each) {
                all.spawn(write_placed(pairs[each].ours, each, over));
                all.spawn(read_placed(pairs[each].theirs, each));
            }
            for (int number = 0; number < children; ++number) {
                child_process child{[&] { return in_child(number); }};
                co_await testing::turns(5);
                EXPECT_EQ(child.end(), "status 0");
                co_await testing::turns(5);
            }
            over = true;
            EXPECT_TRUE(co_await all.join());
        },
        std::max<std::chrono::seconds>(testing::test_limit, 45s));
    testing::report_figures(std::to_string(children) + " children");
}

TEST_P(fork_test, a_child_has_loops_of_its_own) {
    auto [ours, theirs] = testing::connect_raw();
    bool read = false;
    loop().spawn([&]() -> task<> {
        std::array<char, 4> buffer;
        read = (co_await async_read_exact(ours, buffer)).has_value();
    });
    loop().poll(); // so that the task waits

    const backend on = GetParam();
    child_process child{[on] {
        event_loop own = or_throw(event_loop::create({.backend = on}));
        auto [one, other] = testing::connected_pair();
        int status = 1;
        auto echo = [&]() -> task<> {
            std::array<char, 4> buffer;
            const auto sent = co_await async_write_all(one, "ping");
            const auto read_there = co_await async_read_exact(other, buffer);
            const auto slept = co_await async_sleep(1ms);
            status = sent && read_there && slept ? 0 : 1;
        };
        own.spawn(echo());
        own.run();
        return status;
    }};
    EXPECT_EQ(child.end(), "status 0");

    theirs.send("four");
    loop().run();
    EXPECT_TRUE(read);
}

/// Like a sandbox: without the handlers of pthread_atfork(3).
pid_t by_clone() {
    return static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

/// Uses the parts of the library that exist once in a process and have threads: the resolver and
/// the watchdog. `kept` remains watched.
int use_threads_of_the_process(backend on, std::optional<event_loop>& kept) {
    static std::atomic<bool> reported;
    reported = false;
    kept = or_throw(event_loop::create({
        .backend = on,
        .stall_threshold = 1ms,
        .on_stall = [](const stall_report&) { reported = true; },
    }));
    int status = 1;
    kept->spawn([&]() -> task<> {
        const auto found = co_await with_timeout(async_resolve("localhost", 80), 20s);
        const auto until = std::chrono::steady_clock::now() + 20s;
        while (!reported && std::chrono::steady_clock::now() < until)
            ::usleep(1000); // a stall
        status = found && reported ? 0 : 1;
    });
    kept->run();
    return status;
}

pid_t fork_as_first_of_new_pid_namespace() {
    return ::unshare(CLONE_NEWPID) == 0 ? ::fork() : -1;
}

/// A child and a grandchild with such threads, both created in the same way.
std::string end_of_grandchild(backend on, pid_t (*make)()) {
    child_process child{[=] {
                            std::optional<event_loop> ours;
                            if (use_threads_of_the_process(on, ours) != 0) return 2;
                            child_process grandchild{[=] {
                                                         std::optional<event_loop> its_own;
                                                         return use_threads_of_the_process(on,
                                                                                           its_own);
                                                     },
                                                     make};
                            return grandchild.end() == "status 0" ? 0 : 3;
                        },
                        make};
    return child.end();
}

TEST_P(fork_test, a_child_has_a_resolver_and_a_watchdog_of_its_own) {
    if (testing::under_thread_sanitizer) {
        GTEST_SKIP() << "it does not follow a process with threads into fork(2)";
    }
    EXPECT_EQ(end_of_grandchild(GetParam(), ::fork), "status 0");
}

TEST_P(fork_test, a_child_by_clone_has_a_resolver_and_a_watchdog_of_its_own) {
    if (testing::under_thread_sanitizer) {
        GTEST_SKIP() << "it does not follow a process with threads into fork(2)";
    }
    EXPECT_EQ(end_of_grandchild(GetParam(), by_clone), "status 0");
}

// Both processes have the id 1. The second must not mistake the threads of the first, which do not
// exist in it, for its own, and wait for them.
TEST_P(fork_test, the_first_process_of_a_pid_namespace_has_a_resolver_and_a_watchdog_of_its_own) {
    if (testing::under_thread_sanitizer) {
        GTEST_SKIP() << "it does not follow a process with threads into fork(2)";
    }
    child_process namespaces{[] {
        const int unprivileged = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
        return ::unshare(CLONE_NEWPID | unprivileged) == 0 ? 0 : 1;
    }};
    if (namespaces.end() != "status 0") {
        ASSERT_EQ(std::getenv("SIMPLENET_REQUIRE_NAMESPACES"), nullptr);
        GTEST_SKIP() << "this machine refuses namespaces to tests";
    }

    child_process outside{[on = GetParam()] {
        if (::geteuid() != 0 && ::unshare(CLONE_NEWUSER) != 0) return 4;
        return end_of_grandchild(on, fork_as_first_of_new_pid_namespace) == "status 0" ? 0 : 1;
    }};
    EXPECT_EQ(outside.end(), "status 0");
}

TEST_P(fork_test, a_child_by_clone_that_runs_a_loop_of_its_parent_is_stopped) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto run_it = [this] {
        auto in_child = [this] {
            loop().run();
            return 0;
        };
        child_process child{in_child, by_clone};
        std::exit(child.end() == "signal 6" ? 0 : 1);
    };
    EXPECT_EXIT(run_it(), ::testing::ExitedWithCode(0), "before the fork");
}

// After a fork the processes share the kernel's side of a loop: completions taken by the child
// would be missing in the parent, and entries added by the child would appear there.
TEST_P(fork_test, a_child_that_runs_a_loop_of_its_parent_is_stopped) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto run_it = [this] {
        child_process child{[this] {
            loop().run();
            return 0;
        }};
        std::exit(child.end() == "signal 6" ? 0 : 1);
    };
    EXPECT_EXIT(run_it(), ::testing::ExitedWithCode(0), "before the fork");
}

TEST_P(fork_test, a_child_that_continues_inside_a_loop_is_stopped) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto fork_inside = [this] {
        int status = 1;
        loop().spawn([&]() -> task<> {
            const pid_t child = ::fork();
            if (child == 0) {
                co_await yield();
                ::_exit(0); // never
            }
            int how = 0;
            ::waitpid(child, &how, 0);
            status = WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT ? 0 : 1;
            co_await yield();
        });
        loop().run();
        std::exit(status);
    };
    EXPECT_EXIT(fork_inside(), ::testing::ExitedWithCode(0), "before the fork");
}

TEST_P(fork_test, a_child_may_leave_the_scope_of_a_loop) {
    auto loop_of_parent =
        std::make_unique<event_loop>(or_throw(event_loop::create({.backend = GetParam()})));
    auto [ours, theirs] = testing::connect_raw();
    bool read = false;
    loop_of_parent->spawn([&]() -> task<> {
        std::array<char, 4> buffer;
        read = (co_await async_read_exact(ours, buffer)).has_value();
    });
    loop_of_parent->poll();

    child_process child{[&] {
        loop_of_parent.reset();
        return 0;
    }};
    EXPECT_EQ(child.end(), "status 0");

    theirs.send("four");
    loop_of_parent->run();
    EXPECT_TRUE(read) << "destroying the child's copy affected the parent's loop";
}

INSTANTIATE_TEST_SUITE_P(backends, fork_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
