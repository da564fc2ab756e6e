#pragma once
// full_form: some tests have two lengths. CI runs the short form; scripts/soak.sh sets
// SIMPLENET_FULL=1 for the one behind the figures in docs/development/testing.md.

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Whether the environment asks for the full form.
inline bool full_form() {
    const char* const asked = std::getenv("SIMPLENET_FULL");
    return asked != nullptr && std::string_view{asked} == "1";
}

/// One of two lengths.
template <class T>
T short_or_full(T in_short, T in_full) {
    return full_form() ? in_full : in_short;
}

/// A number from the environment; empty if the variable is not set or is not a number.
inline std::optional<std::uint64_t> number_from_environment(const char* name) {
    const char* const text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    const std::string_view digits{text};
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
    if (error != std::errc{} || end != digits.end()) return std::nullopt;
    return number;
}

/// The seed with which a test begins: SIMPLENET_SEED, to reproduce a failure; otherwise always the
/// same in the short form, and a different one each time in the full form.
inline std::uint64_t first_seed() {
    if (const auto given = number_from_environment("SIMPLENET_SEED")) return *given;
    if (!full_form()) return 1;
    return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count() /
                                      1000 % 1'000'000'000);
}

/// A line of figures, which scripts/soak.sh collects into its table.
inline void report_figures(const std::string& figures) {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::printf("FIGURES %s.%s: %s\n", test->test_suite_name(), test->name(), figures.c_str());
    std::fflush(stdout);
}

} // namespace simplenet::v0::testing
