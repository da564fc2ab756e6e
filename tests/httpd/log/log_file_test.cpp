#include "httpd/log/log_file.hpp"

#include "support/error_of.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace httpd {
namespace {

using namespace std::chrono_literals;
using simplenet::testing::temporary_directory;

/// Blocks the signals of writes, as the logs' threads do.
class log_file_test : public ::testing::Test {
protected:
    void SetUp() override {
        ::sigset_t signals;
        ::sigemptyset(&signals);
        ::sigaddset(&signals, SIGPIPE);
        ::sigaddset(&signals, SIGXFSZ);
        ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
    }
    void TearDown() override {
        // A pending signal would end the program once it is no longer blocked.
        std::signal(SIGPIPE, SIG_IGN);
        std::signal(SIGXFSZ, SIG_IGN);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        std::signal(SIGPIPE, SIG_DFL);
        std::signal(SIGXFSZ, SIG_DFL);
    }

    static std::shared_ptr<log_file> open(const std::string& path) {
        auto opened = log_file::open(path, STDOUT_FILENO);
        EXPECT_TRUE(opened) << opened.error().message();
        return *opened;
    }
    static std::string content(const std::string& path) {
        std::ifstream file{path};
        return {std::istreambuf_iterator<char>{file}, {}};
    }

    std::error_code why_;
    temporary_directory directory_;

private:
    ::sigset_t before_{};
};

TEST_F(log_file_test, appends_to_what_is_there) {
    const auto path = directory_ / "log";
    std::ofstream{path} << "before\n";

    const auto file = open(path);

    EXPECT_EQ(file->write("one\ntwo\n", 0ms, why_), 8U);
    EXPECT_EQ(content(path), "before\none\ntwo\n");
}

TEST_F(log_file_test, a_new_file_is_not_for_everybody) {
    const auto path = directory_ / "log";
    const auto before = ::umask(0);
    open(path);
    ::umask(before);

    struct stat state{};
    ASSERT_EQ(::stat(path.c_str(), &state), 0);

    EXPECT_EQ(state.st_mode & 0777U, 0640U);
}

TEST_F(log_file_test, reopen_makes_a_new_file_after_a_rotation) {
    const auto path = directory_ / "log";
    const auto file = open(path);
    EXPECT_EQ(file->write("one\n", 0ms, why_), 4U);
    std::filesystem::rename(path, path + ".1");

    EXPECT_EQ(file->write("two\n", 0ms, why_), 4U);
    ASSERT_TRUE(file->reopen());
    EXPECT_EQ(file->write("three\n", 0ms, why_), 6U);

    EXPECT_EQ(content(path + ".1"), "one\ntwo\n");
    EXPECT_EQ(content(path), "three\n");
}

TEST_F(log_file_test, the_old_file_stays_if_there_cannot_be_a_new_one) {
    const auto path = directory_ / "log";
    const auto file = open(path);
    std::filesystem::rename(path, path + ".1");
    std::filesystem::create_directory(path);

    EXPECT_EQ(error_of(file->reopen()), std::errc::is_a_directory);

    EXPECT_EQ(file->write("one\n", 0ms, why_), 4U);
    EXPECT_EQ(content(path + ".1"), "one\n");
}

TEST_F(log_file_test, a_full_disk_is_reported) {
    const auto file = open("/dev/full");

    EXPECT_EQ(file->write("one\n", 0ms, why_), 0U);
    EXPECT_EQ(why_, std::errc::no_space_on_device);
}

TEST_F(log_file_test, a_short_write_tells_how_much_is_there) {
    const auto path = directory_ / "log";
    const auto file = open(path);
    ::rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    const ::rlimit small{6, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);

    const auto written = file->write("one\ntwo\n", 0ms, why_);

    ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(written, 6U);
    EXPECT_EQ(why_, std::errc::file_too_large);
    EXPECT_EQ(file->write("o\n", 0ms, why_), 2U);
    EXPECT_EQ(content(path), "one\ntwo\n");
}

TEST_F(log_file_test, a_pipe_without_reader_is_an_error_and_ends_nothing) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::close(ends[0]);
    const auto file = *log_file::open("-", ends[1]);

    EXPECT_EQ(file->write("one\n", 0ms, why_), 0U);

    EXPECT_EQ(why_, std::errc::broken_pipe);
    ::close(ends[1]);
}

TEST_F(log_file_test, a_pipe_that_nobody_reads_does_not_block) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const auto file = *log_file::open("-", ends[1]);
    std::string lines;
    while (lines.size() < 200'000)
        lines += "a line\n";

    const auto written = file->write(lines, 1ms, why_);

    EXPECT_EQ(why_, std::errc::resource_unavailable_try_again);
    EXPECT_GE(written, 4096U);
    EXPECT_LT(written, lines.size());
    EXPECT_EQ(written % 7, 0U); // whole lines
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_F(log_file_test, a_named_pipe_without_reader_cannot_be_opened) {
    const auto path = directory_ / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);

    EXPECT_EQ(error_of(log_file::open(path, STDOUT_FILENO)), std::errc::no_such_device_or_address);
}

} // namespace
} // namespace httpd
