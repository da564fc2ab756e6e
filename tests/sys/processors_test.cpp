#include "sys/processors.hpp"

#include "support/temporary_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <pthread.h>
#include <sched.h>

namespace {

namespace sys = simplenet::detail::sys;
using ::testing::ElementsAre;
using ::testing::Optional;

/// A root directory with the files that the kernel would show.
class processors_test : public ::testing::Test {
protected:
    void write(std::string_view path, std::string_view text) const {
        const std::filesystem::path file{root_ / path};
        std::filesystem::create_directories(file.parent_path());
        std::ofstream{file} << text;
    }
    [[nodiscard]] auto quota() const { return sys::processor_quota(root_ / ""); }

    simplenet::testing::temporary_directory root_;
};

TEST_F(processors_test, there_is_no_quota_without_control_groups) {
    EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(processors_test, a_group_without_a_limit_gives_no_quota) {
    write("proc/self/cgroup", "0::/\n");
    write("sys/fs/cgroup/cpu.max", "max 100000\n");

    EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(processors_test, cpu_max_of_one_processor_is_a_quota_of_one) {
    write("proc/self/cgroup", "0::/\n");
    write("sys/fs/cgroup/cpu.max", "100000 100000\n");

    EXPECT_THAT(quota(), Optional(1U));
}

TEST_F(processors_test, a_quota_is_rounded_down) {
    write("proc/self/cgroup", "0::/\n");
    write("sys/fs/cgroup/cpu.max", "290000 100000\n");

    EXPECT_THAT(quota(), Optional(2U));
}

TEST_F(processors_test, a_quota_below_one_processor_is_one) {
    write("proc/self/cgroup", "0::/\n");
    write("sys/fs/cgroup/cpu.max", "20000 100000\n");

    EXPECT_THAT(quota(), Optional(1U));
}

TEST_F(processors_test, the_smallest_quota_of_the_ancestors_counts) {
    write("proc/self/cgroup", "0::/system.slice/web.service/worker\n");
    write("sys/fs/cgroup/system.slice/cpu.max", "300000 100000\n");
    write("sys/fs/cgroup/system.slice/web.service/cpu.max", "800000 200000\n");
    write("sys/fs/cgroup/system.slice/web.service/worker/cpu.max", "max 100000\n");

    EXPECT_THAT(quota(), Optional(3U));
}

TEST_F(processors_test, the_first_version_has_two_files) {
    write("proc/self/cgroup", "5:memory:/job\n4:cpu,cpuacct:/job\n0::/job\n");
    write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
    write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "50000\n");

    EXPECT_THAT(quota(), Optional(4U));
}

TEST_F(processors_test, a_negative_quota_of_the_first_version_is_none) {
    write("proc/self/cgroup", "4:cpu:/\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");

    EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(processors_test, hierarchies_are_found_where_they_are_mounted) {
    write("proc/self/mountinfo",
          "22 27 0:21 / /proc rw - proc proc rw\n"
          "41 31 0:38 / /my\\040groups rw,relatime shared:9 - cgroup2 cgroup2 rw\n");
    write("proc/self/cgroup", "0::/a\n");
    write("my groups/a/cpu.max", "200000 100000\n");

    EXPECT_THAT(quota(), Optional(2U));
}

TEST_F(processors_test, a_container_that_mounts_its_own_group_finds_the_quota) {
    write("proc/self/mountinfo",
          "32 31 0:29 /docker/123 /sys/fs/cgroup/cpu ro master:7 - cgroup cgroup rw,cpuacct,cpu\n");
    write("proc/self/cgroup", "4:cpuacct,cpu:/docker/123\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");

    EXPECT_THAT(quota(), Optional(3U));
}

TEST_F(processors_test, broken_files_give_no_quota) {
    write("proc/self/cgroup", "0::/\nnonsense\n4:cpu\n");
    write("proc/self/mountinfo", "- - -\n1 2 3 4 5 6 7 8 9\n1 2 3 4 5 6 - cgroup2\n");
    for (const char* text : {"", "\n", "max\n", "1", "many of them\n", "100000 0\n", "-5 100\n"}) {
        write("sys/fs/cgroup/cpu.max", text);
        EXPECT_EQ(quota(), std::nullopt) << text;
    }
}

TEST_F(processors_test, the_affinity_mask_limits_the_processors) {
    std::jthread{[] {
        const auto all = sys::allowed_processors();
        ASSERT_FALSE(all.empty());

        EXPECT_EQ(sys::pin_thread(pthread_self(), all.back()), 0);

        EXPECT_THAT(sys::allowed_processors(), ElementsAre(all.back()));
        EXPECT_EQ(sys::usable_processors(), 1U);
    }}.join();
}

TEST_F(processors_test, a_thread_cannot_be_pinned_to_a_processor_that_does_not_exist) {
    EXPECT_EQ(sys::pin_thread(pthread_self(), 70'000), -EINVAL);
}

} // namespace
