#pragma once
// promtool: what Prometheus's own checker says about metrics (Debian: prometheus).

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

inline bool has_promtool() {
    return std::system("promtool --version >/dev/null 2>&1") == 0; // NOLINT(concurrency-mt-unsafe)
}

/// Fails if `promtool check metrics` finds anything wrong with `text`, or unusual.
inline void expect_good_metrics(std::string_view text) {
    char path[] = "/tmp/simplenet_metrics.XXXXXX";
    const int file = ::mkstemp(path);
    ASSERT_GE(file, 0);
    EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(file);
    const std::string command = std::string{"promtool check metrics 2>&1 <"} + path;
    std::FILE* const output = ::popen(command.c_str(), "r");
    ASSERT_NE(output, nullptr);
    std::string said;
    for (int each = 0; (each = std::fgetc(output)) != EOF;)
        said += static_cast<char>(each);
    const int status = ::pclose(output);
    ::unlink(path);
    EXPECT_EQ(status, 0) << said << text;
    EXPECT_EQ(said, "") << text;
}

} // namespace simplenet::v0::testing
