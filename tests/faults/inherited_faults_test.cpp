// Faults in every call and allocation of inherited_listeners(). A process takes its sockets only
// once, so each fault has a process of its own.

#include "support/failing_allocations.hpp"
#include "support/fault_plan.hpp"
#include "support/inherited_descriptors.hpp"
#include "support/possible_errors.hpp"

#include <simplenet/server/inherited_listeners.hpp>

#include <cstddef>
#include <limits>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

constexpr std::size_t no_allocation = std::numeric_limits<std::size_t>::max();
const std::string all_of_them =
    "a name that needs memory of its own=3 and another name of that kind=4";

/// What a call with a fault and a call after it return, in a process that was passed two sockets.
/// Empty: there was nothing left to fail.
/// @param disturb  Plans faults in calls.
template <class Disturb>
std::string call_twice(Disturb disturb, std::size_t allocation, bool lasts) {
    std::vector<unique_fd> passed;
    passed.push_back(tcp_listening());
    passed.push_back(tcp_listening());
    return in_child(passed, [&]() -> std::string {
        set_pid_and_count(2);
        set("LISTEN_FDNAMES", "a name that needs memory of its own:and another name of that kind");
        std::string first = "bad_alloc";
        bool failed = false;
        std::ptrdiff_t left = 0;
        {
            fault_plan plan;
            disturb(plan);
            const std::ptrdiff_t before = failing_allocations::live();
            try {
                const failing_allocations armed{allocation, lasts};
                const auto taken = inherited_listeners();
                failed = failing_allocations::seen() > allocation || plan.struck() != 0;
                first = taken ? "taken" : taken.error().message();
            } catch (const std::bad_alloc&) {
                failed = true;
                left = failing_allocations::live() - before;
            }
        }
        if (!failed) return {};
        if (left != 0) first += ", and memory leaked";
        const std::string second = inherited();
        const std::string third = inherited();
        return first + ", then " + second + ", then " + third;
    });
}

std::string expected_after(const std::string& failure) {
    return failure + ", then " + all_of_them + ", then none";
}

TEST(inherited_faults_test, every_call_that_fails_takes_none_of_the_sockets) {
    for (const call which : {call::getsockopt, call::fcntl}) {
        for (const possible_error error : errors_of(which)) {
            for (const unsigned times : {1U, from_then_on}) {
                unsigned places = 0;
                for (;; ++places) {
                    const std::string outcome = call_twice(
                        [&](fault_plan& plan) { plan.fail(which, places, error.number, times); },
                        no_allocation, false);
                    if (outcome.empty()) break;
                    const std::error_code code{error.number, std::system_category()};
                    EXPECT_EQ(outcome, expected_after(code.message()))
                        << detail::sys::to_string(which) << " #" << places;
                }
                EXPECT_GE(places, 2U) << detail::sys::to_string(which);
            }
        }
    }
}

TEST(inherited_faults_test, every_allocation_that_fails_takes_none_of_the_sockets) {
    for (const bool lasts : {false, true}) {
        std::size_t places = 0;
        for (;; ++places) {
            const std::string outcome = call_twice([](fault_plan&) {}, places, lasts);
            if (outcome.empty()) break;
            EXPECT_EQ(outcome, expected_after("bad_alloc")) << "allocation #" << places;
        }
        EXPECT_GE(places, 3U); // the vector and two names
    }
}

} // namespace
} // namespace simplenet::v0::testing
