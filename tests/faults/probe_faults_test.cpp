// Faults in every call of the probe for io_uring, and of a loop created after it. A process probes
// only once, so each fault has a process of its own.

#include "support/backend_test.hpp"
#include "support/child_process.hpp"
#include "support/fault_parts.hpp"
#include "support/fault_plan.hpp"

#include <simplenet/simplenet.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>
#include <linux/io_uring.h>

namespace simplenet::v0::testing {
namespace {

constexpr int as_promised = 0;
constexpr int broken = 1;
constexpr int no_fault = 2; // fewer calls were made

bool is_shortage(std::error_code error) {
    return error == std::errc::too_many_files_open ||
           error == std::errc::too_many_files_open_in_system;
}

/// `made` is a working loop, or an error that `may_be` accepts.
bool is_fine(result<event_loop> made, auto may_be) {
    if (!made) {
        if (may_be(made.error())) return true;
        std::fprintf(stderr, "no loop: %s\n", made.error().message().c_str());
        return false;
    }
    bool spoke = false;
    made->spawn([&]() -> task<> {
        auto ends = co_await make_connection();
        std::array<std::byte, 1> byte{};
        if (!ends) co_return;
        if (!co_await async_write_all(ends->client, "x")) co_return;
        if (co_await async_read_exact(ends->server, byte)) spoke = true;
    });
    made->run();
    if (!spoke) std::fprintf(stderr, "a loop that does not work\n");
    return spoke;
}

std::ptrdiff_t open_descriptors() {
    const std::filesystem::directory_iterator open{"/proc/self/fd"};
    return std::distance(begin(open), end(open));
}

/// Runs in a process of its own, which ends with exit(3) to keep its coverage data.
/// @param first    The backend requested during the fault.
/// @param disturb  Plans the fault with `error`, at call `at`.
template <class Disturb>
[[noreturn]] int choose(backend first, Disturb disturb, unsigned at, int error) {
    ::unsetenv("SIMPLENET_BACKEND");
    const std::ptrdiff_t before = open_descriptors();
    bool struck = false;
    auto made = [&] {
        fault_plan plan;
        disturb(plan, at, error);
        auto outcome = event_loop::create({.backend = first});
        struck = plan.struck() != 0;
        return outcome;
    }();
    const bool shortage = is_shortage({error, std::system_category()});
    bool fine = is_fine(std::move(made), [&](std::error_code why) {
        return (shortage && is_shortage(why)) ||
               (first == backend::io_uring && !shortage && why == errc::backend_unavailable);
    });
    // The result of the probe is remembered; any other fault is over.
    fine = is_fine(event_loop::create(), [](std::error_code) { return false; }) && fine;
    fine = is_fine(event_loop::create({.backend = backend::io_uring}),
                   [&](std::error_code why) {
                       return why == errc::backend_unavailable && !shortage;
                   }) &&
           fine;
    if (open_descriptors() != before) {
        std::fprintf(stderr, "descriptors were left open\n");
        fine = false;
    }
    std::exit(!fine ? broken : struck ? as_promised : no_fault);
}

template <class Disturb>
void disturb_each(const std::string& name, std::initializer_list<int> errors, Disturb disturb) {
    for (const backend first : {backend::automatic, backend::io_uring}) {
        for (const int error : errors) {
            for (unsigned at = 0;; ++at) {
                std::fflush(nullptr);
                child_process child{[&] { return choose(first, disturb, at, error); }};
                const std::string end = child.end();
                if (end == "status 2") break;
                EXPECT_EQ(end, "status 0") << to_string(first) << ", " << name << " #" << at << ": "
                                           << std::generic_category().message(error);
            }
        }
    }
}

void fail_each(const std::string& name, auto which, std::initializer_list<int> errors) {
    disturb_each(name, errors,
                 [=](fault_plan& plan, unsigned at, int error) { plan.fail(which, at, error); });
}

bool io_uring_works() {
    child_process child{[] { return probe_backend(backend::io_uring) ? 0 : 1; }};
    return child.end() == "status 0";
}

class probe_faults_test : public ::testing::Test {
protected:
    void SetUp() override {
        if (!io_uring_works()) leave_out(backend::io_uring);
    }
};

TEST_F(probe_faults_test, every_call_that_fails) {
    fail_each("mmap", call::mmap, {ENOMEM});
    fail_each("uring_setup", call::uring_setup, {ENOMEM, EMFILE, ENFILE, EPERM, ENOSYS, EINVAL});
    fail_each("uring_register", call::uring_register, {ENOMEM, EINVAL});
    fail_each("socketpair", call::socketpair, {EMFILE, ENFILE, ENOBUFS});
    fail_each("send", call::send, {ENOMEM});
    fail_each("uring_enter", call::uring_enter, {EINTR, ENOMEM});
    fail_each("eventfd", call::eventfd, {EMFILE, ENFILE, ENOMEM});
}

TEST_F(probe_faults_test, every_entry_that_fails) {
    using kind = fault_plan::entry_kind;
    fail_each("a multishot receive", kind{IORING_OP_RECV, true}, {EINVAL, ENOBUFS});
    fail_each("a receive", kind{IORING_OP_RECV, false}, {EINVAL, EAGAIN});
}

TEST_F(probe_faults_test, every_completion_that_is_late_or_the_last_of_its_multishot) {
    disturb_each("a late completion", {0},
                 [](fault_plan& plan, unsigned at, int) { plan.hold(at, 2); });
    disturb_each("a last completion", {0, ENOBUFS},
                 [](fault_plan& plan, unsigned at, int error) { plan.end_multishot(at, error); });
}

} // namespace
} // namespace simplenet::v0::testing
