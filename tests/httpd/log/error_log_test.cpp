#include "httpd/log/error_log.hpp"

#include "httpd/log/log_test.hpp"
#include "support/error_of.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace httpd {
namespace {

using namespace std::chrono_literals;
using testing::eventually;
using testing::full_disk;
using ::testing::HasSubstr;
using testing::lines_of;
using ::testing::MatchesRegex;
using testing::readable_pipe;
using testing::size_of;

class error_log_test : public ::testing::Test {
protected:
    error_log& open(error_log_options options = {}) {
        if (options.path == "-") options.path = path_;
        auto opened = error_log::open(std::move(options));
        EXPECT_TRUE(opened) << opened.error().message();
        return log_.emplace(*std::move(opened));
    }
    /// Writes what waits.
    void close() { log_.reset(); }
    /// What follows the time of each line.
    [[nodiscard]] std::vector<std::string> messages() const {
        std::vector<std::string> all;
        for (const auto& each : lines_of(path_))
            all.push_back(each.substr(std::min<std::size_t>(each.size(), 25)));
        return all;
    }

    simplenet::testing::temporary_directory directory_;
    const std::string path_ = directory_ / "error.log";

private:
    std::optional<error_log> log_;
};

TEST_F(error_log_test, a_line_has_a_time_a_level_a_message_and_fields) {
    open().write(log_level::info, "it serves", {{"address", "127.0.0.1:80"}, {"loops", 2U}});

    EXPECT_TRUE(eventually([&] { return size_of(path_) != 0; }));

    const auto lines = lines_of(path_);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_THAT(lines[0], MatchesRegex("20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
                                       "\\.[0-9]{3}Z info it serves address=127\\.0\\.0\\.1:80 "
                                       "loops=2"));
}

TEST_F(error_log_test, each_level_has_a_name_and_lower_ones_are_not_written) {
    auto& log = open({.level = log_level::info});
    const auto all = {log_level::info, log_level::warning, log_level::error};
    for (const auto each : all)
        log.write(each, "it");
    log.write_to(simplenet::or_throw(error_log::open_file(path_)), log_level::warning);
    for (const auto each : all)
        log.write(each, "it");
    EXPECT_FALSE(log.is_enabled(log_level::info));
    EXPECT_TRUE(log.is_enabled(log_level::warning));
    close();

    EXPECT_EQ(messages(), (std::vector<std::string>{"info it", "warning it", "error it",
                                                    "warning it", "error it"}));
}

TEST_F(error_log_test, values_are_quoted_and_escaped_if_they_have_to_be) {
    open().write(log_level::info, "it",
                 {{"empty", ""},
                  {"space", "a b"},
                  {"sign", "a=b"},
                  {"hostile", "a\"b\\c\nd\x7f\xe4"},
                  {"negative", -7},
                  {"error", std::make_error_code(std::errc::permission_denied)}});
    close();

    EXPECT_EQ(messages()[0], R"(info it empty="" space="a b" sign="a=b" )"
                             R"(hostile="a\x22b\x5cc\x0ad\x7f\xe4" negative=-7 )"
                             R"(error="Permission denied")");
}

TEST_F(error_log_test, long_values_are_cut) {
    open().write(log_level::info, "it", {{"said", std::string(100'000, 'x')}});
    close();

    EXPECT_EQ(messages()[0], "info it said=\"" + std::string(2000, 'x') + "...\"");
}

TEST_F(error_log_test, the_limit_of_a_kind_is_told_and_others_go_on) {
    auto& log = open({.per_second = 3});
    // More than one second may pass meanwhile.
    for (int count = 0; count < 1000; ++count)
        log.write(log_level::error, "a backend has failed", {{"count", count}});
    log.write(log_level::info, "something else");
    const auto suppressed = log.suppressed();
    EXPECT_GT(suppressed, 900U);

    // By itself, while nothing more is written.
    const auto told = "warning a backend has failed: and " + std::to_string(suppressed) + " more";
    EXPECT_TRUE(eventually([&] { return !messages().empty() && messages().back() == told; }));

    EXPECT_EQ(messages().size(), 1000 - suppressed + 2);
}

TEST_F(error_log_test, messages_of_threads_are_in_the_order_of_time) {
    auto& log = open({.per_second = 0});
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (int number = 0; number < 50; ++number)
                log.write(log_level::info, "it", {{"thread", thread}, {"number", number}});
        });
    }
    threads.clear();
    close();

    std::vector<int> next(4);
    for (const auto& each : messages()) {
        int thread = 0;
        int number = 0;
        ASSERT_EQ(std::sscanf(each.c_str(), "info it thread=%d number=%d", &thread, &number), 2);
        EXPECT_EQ(next.at(thread)++, number);
    }
    EXPECT_EQ(next, (std::vector<int>{50, 50, 50, 50}));
}

TEST_F(error_log_test, the_next_line_says_what_was_lost) {
    readable_pipe pipe;
    auto& log = open({.path = pipe.path(), .per_second = 0, .buffer = 4096});
    int written = 0;
    while (log.dropped() < 10) {
        log.write(log_level::info, "it", {{"number", ++written}});
        std::this_thread::yield();
    }
    const auto dropped = log.dropped();

    std::string text;
    pipe.close_writer();
    {
        const std::jthread reader{[&] { text = pipe.read_all(); }};
        close();
    }

    EXPECT_THAT(text, HasSubstr(" warning messages of this log were lost count="));
    const auto lines = std::ranges::count(text, '\n');
    const auto notes = [&] {
        int count = 0;
        for (auto at = text.find("were lost"); at != std::string::npos;
             at = text.find("were lost", at + 1))
            ++count;
        return count;
    }();
    EXPECT_EQ(lines - notes + static_cast<int>(dropped), written);
}

TEST_F(error_log_test, works_again_when_the_disk_has_room) {
    auto& log = open();
    full_disk limit{20};
    log.write(log_level::info, "one");
    EXPECT_TRUE(eventually([&] { return size_of(path_) == 20; }));

    limit.end();
    log.write(log_level::info, "two");
    close();

    EXPECT_EQ(messages(), (std::vector<std::string>{"info one", "info two"}));
}

TEST_F(error_log_test, is_opened_again_after_a_rotation) {
    auto& log = open();
    log.write(log_level::info, "one");
    EXPECT_TRUE(eventually([&] { return messages().size() == 1; }));

    std::filesystem::rename(path_, path_ + ".1");
    log.reopen();
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(path_); }));
    log.write(log_level::info, "two");
    close();

    EXPECT_EQ(messages(), (std::vector<std::string>{"info two"}));
}

TEST_F(error_log_test, a_line_that_was_torn_is_whole_in_the_next_file) {
    auto& log = open();
    {
        const full_disk limit{20};
        log.write(log_level::info, "one");
        EXPECT_TRUE(eventually([&] { return size_of(path_) == 20; }));
        std::filesystem::rename(path_, path_ + ".1");
        log.reopen();
        EXPECT_TRUE(eventually([&] { return size_of(path_) == 20; }));
    }
    close();

    EXPECT_EQ(messages(), (std::vector<std::string>{"info one"}));
}

TEST_F(error_log_test, a_line_that_was_torn_is_whole_in_a_file_of_another_name) {
    auto& log = open();
    {
        const full_disk limit{20};
        log.write(log_level::info, "one");
        EXPECT_TRUE(eventually([&] { return size_of(path_) == 20; }));
        log.write_to(simplenet::or_throw(error_log::open_file(path_ + ".2")), log_level::info);
        EXPECT_TRUE(eventually([&] { return size_of(path_ + ".2") == 20; }));
    }
    close();
    std::filesystem::rename(path_ + ".2", path_);

    EXPECT_EQ(messages(), (std::vector<std::string>{"info one"}));
}

TEST_F(error_log_test, says_that_it_cannot_be_opened_again) {
    auto& log = open();
    std::filesystem::rename(path_, path_ + ".1");
    std::filesystem::create_directory(path_);

    log.reopen();
    EXPECT_TRUE(eventually([&] { return size_of(path_ + ".1") != 0; }));
    close();

    EXPECT_THAT(lines_of(path_ + ".1")[0],
                HasSubstr("error cannot open the error log again error=\"Is a directory\""));
}

TEST_F(error_log_test, a_pipe_without_reader_ends_nothing) {
    readable_pipe pipe;
    auto& log = open({.path = pipe.path(), .per_second = 0, .buffer = 4096});
    pipe.close_reader();

    while (log.dropped() == 0)
        log.write(log_level::info, "it");

    close();
}

TEST_F(error_log_test, can_be_off) {
    auto& log = open({.path = "off"});

    log.write(log_level::error, "nowhere");

    EXPECT_FALSE(log.is_enabled(log_level::error));
    EXPECT_EQ(log.dropped(), 0U);
}

TEST_F(error_log_test, a_path_that_cannot_be_opened_is_an_error) {
    EXPECT_EQ(error_of(error_log::open({.path = directory_ / "no/directory"})),
              std::errc::no_such_file_or_directory);
}

} // namespace
} // namespace httpd
