#include <simplenet/core/detail/contract.hpp>

#include <gtest/gtest.h>

#include <csignal>

namespace {

int checked_half(int even) {
    return SIMPLENET_EXPECTS(even % 2 == 0, "only even numbers have a half"), even / 2;
}

TEST(contract_test, a_condition_that_holds_has_no_effect) {
    EXPECT_EQ(checked_half(8), 4);
}

TEST(contract_test, a_violation_stops_the_program) {
    EXPECT_EXIT(checked_half(7), ::testing::KilledBySignal(SIGABRT), "");
}

TEST(contract_test, the_message_names_file_line_reason_and_expression) {
    EXPECT_DEATH(checked_half(7), "contract_test\\.cpp:[0-9]+: simplenet contract violation: "
                                  "only even numbers have a half \\(even % 2 == 0\\)");
}

TEST(contract_test, the_condition_is_evaluated_once) {
    int evaluated = 0;

    SIMPLENET_EXPECTS(++evaluated, "never broken");

    EXPECT_EQ(evaluated, 1);
}

TEST(contract_test, a_condition_may_convert_to_bool_explicitly) {
    struct explicit_truth {
        explicit operator bool() const { return true; }
    };

    SIMPLENET_EXPECTS(explicit_truth{}, "never broken");
}

#ifdef NDEBUG
TEST(contract_test, debug_checks_are_not_evaluated_in_release) {
    int evaluated = 0;

    SIMPLENET_DEBUG_EXPECTS(++evaluated == 0, "never looked at");

    EXPECT_EQ(evaluated, 0);
}
#else
TEST(contract_test, debug_checks_stop_the_program_in_debug) {
    EXPECT_DEATH(SIMPLENET_DEBUG_EXPECTS(false, "checked here"), "checked here");
}
#endif

TEST(contract_test, a_check_can_be_made_at_compile_time) {
    constexpr auto half = [](int even) {
        SIMPLENET_EXPECTS(even % 2 == 0, "only even numbers have a half");
        return even / 2;
    };

    static_assert(half(8) == 4);
}

} // namespace
