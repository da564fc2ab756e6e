#include "httpd/status/figures.hpp"

#include <chrono>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace httpd {
namespace {

using namespace std::chrono_literals;

TEST(process_figures_test, are_those_of_this_process) {
    const auto found = read_process_figures();

    EXPECT_GT(found.resident_bytes, 1'000'000U);
    EXPECT_GT(found.cpu_time, 0ns);
    EXPECT_GE(found.descriptor_limit, found.descriptors);
    const auto age = std::chrono::system_clock::now() - found.started;
    EXPECT_GT(age, -1s);
    EXPECT_LT(age, 1h);
}

TEST(process_figures_test, an_open_descriptor_is_counted) {
    const auto before = read_process_figures().descriptors;
    const int one = ::open("/dev/null", O_RDONLY | O_CLOEXEC);

    EXPECT_EQ(read_process_figures().descriptors, before + 1);
    ::close(one);
}

} // namespace
} // namespace httpd
