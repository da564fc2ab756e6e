#include "httpd/log/access_log.hpp"

#include "httpd/log/error_log.hpp"
#include "httpd/log/log_test.hpp"
#include "support/error_of.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
using testing::readable_pipe;
using testing::size_of;

void append(access_log& to, const std::string& target) {
    to.append({.method = "GET", .target = target, .version = 11, .status = 200});
}

/// The target of a line of either format; the whole line if it is none.
std::string target_of(const std::string& line) {
    const bool is_json = line.starts_with(R"({"time":")") && line.ends_with(R"("site":""})");
    const bool is_combined = line.starts_with("0.0.0.0 - - [") && line.ends_with(R"( "-" "-")");
    const std::string_view before = is_json ? R"("target":")" : R"("GET )";
    const auto begin = line.find(before);
    const auto end = line.find(is_json ? R"(","version)" : " HTTP/1.1", begin);
    if ((!is_json && !is_combined) || begin == std::string::npos || end == std::string::npos)
        return line;
    return line.substr(begin + before.size(), end - begin - before.size());
}

std::vector<std::string> targets_of(const std::string& path) {
    std::vector<std::string> targets;
    for (const auto& each : lines_of(path))
        targets.push_back(target_of(each));
    return targets;
}

std::vector<std::string> numbers(int from, int to) {
    std::vector<std::string> all;
    for (int each = from; each < to; ++each)
        all.push_back(std::to_string(each));
    return all;
}

class access_log_test : public ::testing::Test {
protected:
    access_log& open(access_log_options options) {
        auto opened = access_log::open(std::move(options));
        EXPECT_TRUE(opened) << opened.error().message();
        return log_.emplace(*std::move(opened));
    }
    access_log& open() { return open({.path = path_}); }
    /// Writes what waits.
    void close() { log_.reset(); }

    simplenet::testing::temporary_directory directory_;
    const std::string path_ = directory_ / "access.log";

private:
    std::optional<access_log> log_;
};

TEST_F(access_log_test, writes_what_waits_at_its_end) {
    auto& log = open();
    for (const auto& each : numbers(0, 1000))
        append(log, each);

    close();

    EXPECT_EQ(targets_of(path_), numbers(0, 1000));
}

TEST_F(access_log_test, writes_a_line_soon_after_any_pause) {
    auto& log = open();

    for (int number = 0; number < 3; ++number) {
        append(log, std::to_string(number));
        EXPECT_TRUE(eventually([&] { return targets_of(path_) == numbers(0, number + 1); }));
    }
}

TEST_F(access_log_test, writes_many_lines_at_once_without_waiting) {
    auto& log = open(
        {.path = path_, .buffer = std::size_t{128} * 1024, .longest_wait = std::chrono::hours{1}});

    for (int number = 0; number < 1000; ++number)
        append(log, std::to_string(number));

    EXPECT_TRUE(eventually([&] { return size_of(path_) > 60'000; }));
}

TEST_F(access_log_test, a_path_that_cannot_be_opened_is_an_error) {
    EXPECT_EQ(error_of(access_log::open({.path = directory_ / "no/such/directory"})),
              std::errc::no_such_file_or_directory);
}

TEST_F(access_log_test, no_line_is_lost_or_torn_while_the_file_is_rotated) {
    constexpr int threads = 4;
    constexpr int rotations = 100;
    auto& log = open();
    std::vector<std::jthread> writers;
    std::atomic<bool> enough = false;
    std::atomic<int> appended = 0;
    for (int thread = 0; thread < threads; ++thread) {
        writers.emplace_back([&, thread] {
            for (int number = 0; !enough; ++number) {
                append(log, std::to_string(thread) + '/' + std::to_string(number));
                ++appended;
                if (number % 100 == 0) std::this_thread::sleep_for(1ms);
            }
        });
    }
    for (int rotation = 0; rotation < rotations; ++rotation) {
        std::filesystem::rename(path_, path_ + '.' + std::to_string(rotation));
        log.reopen();
        ASSERT_TRUE(eventually([&] { return std::filesystem::exists(path_); }));
    }
    enough = true;
    writers.clear();
    EXPECT_EQ(log.dropped(), 0U);
    close();

    // In the order of the files, the lines of each thread are in order.
    std::map<char, int> next;
    int found = 0;
    const auto check = [&](const std::string& path) {
        for (const auto& each : targets_of(path)) {
            ASSERT_GE(each.size(), 3U);
            ASSERT_EQ(each.substr(2), std::to_string(next[each[0]]++)) << path;
            ++found;
        }
    };
    for (int rotation = 0; rotation < rotations; ++rotation)
        check(path_ + '.' + std::to_string(rotation));
    check(path_);
    EXPECT_EQ(found, appended);
}

TEST_F(access_log_test, lines_that_do_not_fit_are_dropped_whole_and_counted) {
    readable_pipe pipe;
    auto& log = open({.path = pipe.path(), .buffer = 4096});
    for (const auto& each : numbers(0, 5000))
        append(log, each);
    const auto dropped = log.dropped();
    EXPECT_GT(dropped, 0U);

    std::string text;
    pipe.close_writer();
    {
        const std::jthread reader{[&] { text = pipe.read_all(); }};
        close();
    }

    EXPECT_EQ(std::ranges::count(text, '\n') + static_cast<int>(dropped), 5000);
    EXPECT_TRUE(text.ends_with("\n"));
}

TEST_F(access_log_test, goes_on_with_the_torn_line_when_the_disk_has_room_again) {
    auto& log = open();
    full_disk limit{1000};
    for (const auto& each : numbers(0, 100))
        append(log, each);
    ASSERT_TRUE(eventually([&] { return size_of(path_) == 1000; }));

    limit.end();
    close();

    EXPECT_EQ(targets_of(path_), numbers(0, 100));
}

TEST_F(access_log_test, a_torn_line_is_whole_in_the_next_file) {
    auto& log = open();
    full_disk limit{1000};
    for (const auto& each : numbers(0, 100))
        append(log, each);
    ASSERT_TRUE(eventually([&] { return size_of(path_) == 1000; }));
    std::filesystem::rename(path_, path_ + ".1");
    log.reopen();
    ASSERT_TRUE(eventually([&] { return size_of(path_) == 1000; }));

    limit.end();
    close();

    const auto torn = lines_of(path_ + ".1");
    ASSERT_FALSE(torn.empty());
    const auto whole = static_cast<int>(torn.size()) - 1;
    EXPECT_TRUE(torn.back().ends_with("<no end>"));
    EXPECT_EQ(targets_of(path_), numbers(whole, 100));
}

TEST_F(access_log_test, a_torn_line_is_not_interrupted_by_another_thread) {
    auto& log = open();
    full_disk limit{1000};
    for (int thread = 0; thread < 3; ++thread) {
        std::thread{[&] {
            for (const auto& each : numbers(0, 100))
                append(log, each);
        }}.join();
    }
    ASSERT_TRUE(eventually([&] { return size_of(path_) == 1000; }));

    limit.end();
    close();

    auto found = targets_of(path_);
    EXPECT_EQ(found.size(), 300U);
    EXPECT_EQ(std::ranges::count(found, "99"), 3);
    EXPECT_TRUE(std::ranges::all_of(found, [](const auto& each) { return each.size() <= 2; }));
}

TEST_F(access_log_test, a_pipe_without_reader_loses_lines_and_ends_nothing) {
    readable_pipe pipe;
    auto& log = open({.path = pipe.path(), .buffer = 4096});
    pipe.close_reader();

    for (const auto& each : numbers(0, 10'000))
        append(log, each);

    EXPECT_GT(log.dropped(), 9000U);
    close();
}

TEST_F(access_log_test, the_error_log_is_told_when_lines_cannot_be_written) {
    const auto errors_path = directory_ / "error.log";
    auto errors = error_log::open({.path = errors_path});
    ASSERT_TRUE(errors);
    auto& log = open({.path = "/dev/full", .errors = &*errors});
    append(log, "1");
    ASSERT_TRUE(eventually([&] { return lines_of(errors_path).size() == 1; }));

    log.write_to(simplenet::or_throw(access_log::open_file(path_)), log_format::combined);
    append(log, "2");
    ASSERT_TRUE(eventually([&] { return lines_of(errors_path).size() == 2; }));
    EXPECT_EQ(log.dropped(), 1U);

    EXPECT_THAT(lines_of(errors_path)[0],
                HasSubstr(" error cannot write the access log path=/dev/full "));
    EXPECT_THAT(lines_of(errors_path)[0], HasSubstr("error=\"No space left on device\""));
    EXPECT_THAT(lines_of(errors_path)[1],
                HasSubstr(" warning the access log is written again lost=1"));
    close();
}

TEST_F(access_log_test, another_path_and_format_hold_from_the_next_line_on) {
    auto& log = open();
    append(log, "before");

    log.write_to(simplenet::or_throw(access_log::open_file(path_ + ".json")), log_format::json);
    append(log, "after");
    close();

    EXPECT_EQ(targets_of(path_), (std::vector<std::string>{"before"}));
    EXPECT_EQ(targets_of(path_ + ".json"), (std::vector<std::string>{"after"}));
    EXPECT_TRUE(lines_of(path_ + ".json")[0].starts_with("{"));
}

TEST_F(access_log_test, each_line_is_where_its_format_belongs_while_threads_write) {
    auto& log = open();
    std::atomic<bool> enough = false;
    std::atomic<int> appended = 0;
    std::vector<std::jthread> writers;
    for (int thread = 0; thread < 3; ++thread) {
        writers.emplace_back([&] {
            while (!enough) {
                append(log, "x");
                if (++appended % 100 == 0) std::this_thread::sleep_for(1ms);
            }
        });
    }

    for (int round = 0; round < 20; ++round) {
        log.write_to(simplenet::or_throw(access_log::open_file(path_ + ".json")), log_format::json);
        log.write_to(simplenet::or_throw(access_log::open_file(path_)), log_format::combined);
    }
    enough = true;
    writers.clear();
    EXPECT_EQ(log.dropped(), 0U);
    close();

    const auto combined = lines_of(path_);
    const auto json = lines_of(path_ + ".json");
    EXPECT_EQ(combined.size() + json.size(), static_cast<std::size_t>(appended.load()));
    EXPECT_TRUE(std::ranges::all_of(combined, [](const auto& each) { return each[0] == '0'; }));
    EXPECT_TRUE(std::ranges::all_of(json, [](const auto& each) { return each[0] == '{'; }));
}

TEST_F(access_log_test, nothing_changes_if_the_new_path_cannot_be_opened) {
    auto& log = open();

    EXPECT_EQ(error_of(access_log::open_file(directory_ / "no/directory")),
              std::errc::no_such_file_or_directory);
    append(log, "1");
    close();

    EXPECT_EQ(targets_of(path_), (std::vector<std::string>{"1"}));
}

TEST_F(access_log_test, can_be_turned_off_and_on) {
    auto& log = open({.path = "off"});
    append(log, "nowhere");

    log.write_to(simplenet::or_throw(access_log::open_file(path_)), log_format::combined);
    append(log, "1");
    log.write_to(simplenet::or_throw(access_log::open_file("off")), log_format::combined);
    append(log, "nowhere");
    log.write_to(simplenet::or_throw(access_log::open_file(path_)), log_format::combined);
    append(log, "2");
    EXPECT_EQ(log.dropped(), 0U);
    close();

    EXPECT_EQ(targets_of(path_), (std::vector<std::string>{"1", "2"}));
}

TEST_F(access_log_test, threads_that_end_leave_their_lines_and_counts) {
    readable_pipe pipe;
    auto& log = open({.path = pipe.path(), .buffer = 4096});
    std::thread{[&] {
        for (const auto& each : numbers(0, 5000))
            append(log, each);
    }}.join();
    const auto dropped = log.dropped();
    EXPECT_GT(dropped, 0U);

    std::string text;
    pipe.close_writer();
    {
        const std::jthread reader{[&] { text = pipe.read_all(); }};
        EXPECT_TRUE(eventually([&] { // the thread's buffer is gone
            std::thread{[&] { append(log, "x"); }}.join();
            return log.dropped() == dropped;
        }));
        close();
    }

    EXPECT_GT(std::ranges::count(text, '\n') + static_cast<int>(dropped), 5000);
}

TEST_F(access_log_test, a_request_whose_texts_are_huge_has_a_line) {
    auto& log = open({.path = path_, .buffer = std::size_t{256} * 1024});
    append(log, std::string(1'000'000, 'x'));
    append(log, "next");
    close();

    EXPECT_EQ(targets_of(path_), (std::vector<std::string>{std::string(8192, 'x'), "next"}));
}

TEST_F(access_log_test, several_logs_do_not_mix) {
    auto& log = open();
    auto other = access_log::open({.path = path_ + ".2"});
    ASSERT_TRUE(other);

    for (const auto& each : numbers(0, 20))
        append(std::stoi(each) % 2 == 0 ? log : *other, each);
    close();

    EXPECT_EQ(targets_of(path_).size(), 10U);
    EXPECT_TRUE(eventually([&] { return targets_of(path_ + ".2").size() == 10; }));
}

} // namespace
} // namespace httpd
