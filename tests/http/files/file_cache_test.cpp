// The cache of files: what it keeps, and when it looks again.

#include "http/files/file_cache.hpp"

#include "file_tree.hpp"
#include "support/backend_test.hpp"
#include "support/descriptor_limit.hpp"
#include "sys/calls.hpp"

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/time/deadline.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#if SIMPLENET_SEAMS
#include "support/fault_plan.hpp"
#include "support/held_up.hpp"
#endif

namespace simplenet::v0::http::detail {
namespace {

using namespace std::chrono_literals;
using testing::backend_name;

constexpr static_options never_again{.revalidate_after = 1h};
constexpr static_options every_time{.revalidate_after = 0s};

/// The text of one representation.
std::string contents_of(const open_file& file) {
    return file.in_memory ? file.contents : text_of(file.fd.get());
}

/// The text of a file, "directory", or the message of an error.
std::string told(const result<served_ref>& answer) {
    if (!answer) return answer.error().message();
    return (*answer)->is_directory ? "directory" : contents_of((*answer)->plain);
}
std::string message_of(std::errc code) {
    return std::make_error_code(code).message();
}

class file_cache_test : public testing::backend_test {
protected:
    void remake_cache(const static_options& options, std::chrono::nanoseconds unused_for = 1min) {
        cache_.emplace(root(), options, unused_for);
    }

    [[nodiscard]] result<served_ref> open(std::string_view path) {
        result<served_ref> answer;
        run([&]() -> task<> { answer = co_await cache_->open(path); });
        return answer;
    }
    [[nodiscard]] std::string ask(std::string_view path) { return told(open(path)); }

    file_tree tree_;
    std::optional<file_cache> cache_{std::in_place, root(), never_again};

private:
    [[nodiscard]] file_cache::root_ref root() const {
        return std::make_shared<const unique_fd>(or_throw(open_root(tree_.path(""))));
    }
};

TEST_P(file_cache_test, keeps_small_files_in_memory_and_others_open) {
    remake_cache({.small_file = 8, .revalidate_after = 1h});
    tree_.write("small.txt", "12345678");
    tree_.write("large.css", "123456789");
    tree_.write("empty.html", "");

    const auto small = open("small.txt");
    const auto large = open("large.css");
    const auto empty = open("empty.html");

    ASSERT_TRUE(small && large && empty);
    EXPECT_EQ((*small)->plain.contents, "12345678");
    EXPECT_FALSE((*small)->plain.fd);
    EXPECT_EQ((*small)->plain.size, 8U);
    EXPECT_TRUE((*empty)->plain.in_memory);
    EXPECT_FALSE((*large)->plain.in_memory);
    EXPECT_EQ(contents_of((*large)->plain), "123456789");
    EXPECT_EQ((*large)->plain.size, 9U);
    EXPECT_TRUE((*large)->content_type.starts_with("text/css"));
    EXPECT_EQ(cache_->file_count(), 3U);
    EXPECT_EQ(cache_->byte_count(), 8U);
}

TEST_P(file_cache_test, finds_what_was_opened_without_another_lookup) {
    tree_.write("a", "text");

    EXPECT_FALSE(cache_->find("a"));
    const auto opened = open("a");
    tree_.write("a", "other");

    const auto found = cache_->find("a");
    ASSERT_TRUE(found && *found && opened);
    EXPECT_EQ(**found, *opened);
    EXPECT_EQ(ask("a"), "text");
}

// The disk kept the space of a deleted file until a thousand others had been asked for.
TEST_P(file_cache_test, closes_files_that_nobody_asks_for) {
    // However long it may be used without another look.
    remake_cache({.small_file = 0, .revalidate_after = std::chrono::nanoseconds::max()}, 1ms);
    tree_.write("a", "text");
    EXPECT_EQ(ask("a"), "text");
    EXPECT_EQ(cache_->file_count(), 1U);

    int asked = 0;
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (cache_->file_count() != 0 && std::chrono::steady_clock::now() < end)
        static_cast<void>(ask("missing" + std::to_string(++asked)));

    EXPECT_EQ(cache_->file_count(), 0U);
    EXPECT_EQ(ask("a"), "text");
}

TEST_P(file_cache_test, remembers_that_nothing_is_there) {
    tree_.link("out", "../outside/secret");
    ASSERT_EQ(::mkfifo(tree_.path("fifo").c_str(), 0644), 0);

    EXPECT_EQ(ask("later"), message_of(std::errc::no_such_file_or_directory));
    EXPECT_EQ(ask("out"), message_of(std::errc::cross_device_link));
    EXPECT_EQ(ask("fifo"), message_of(std::errc::permission_denied));
    tree_.write("later", "text");

    EXPECT_EQ(cache_->other_count(), 3U);
    ASSERT_TRUE(cache_->find("later"));
    EXPECT_EQ(ask("later"), message_of(std::errc::no_such_file_or_directory));
    cache_->clear();
    EXPECT_EQ(ask("later"), "text");
}

TEST_P(file_cache_test, tells_directories_apart) {
    tree_.write("dir/index.html", "text");

    EXPECT_EQ(ask("dir"), "directory");
    EXPECT_EQ(ask(""), "directory");
    EXPECT_EQ(cache_->other_count(), 2U);
    EXPECT_EQ(cache_->file_count(), 0U);
}

TEST_P(file_cache_test, refuses_bad_and_hidden_paths_without_a_lookup) {
    for (const char* const path : {"/etc/passwd", "../outside/secret", "a//b", "a%2fb"}) {
        const auto found = cache_->find(path);
        ASSERT_TRUE(found) << path;
        EXPECT_EQ(told(*found), message_of(std::errc::invalid_argument)) << path;
    }
    const auto hidden = cache_->find(".git/config");
    ASSERT_TRUE(hidden);
    EXPECT_EQ(told(*hidden), message_of(std::errc::no_such_file_or_directory));
    EXPECT_EQ(cache_->other_count(), 0U);
}

// Every way in which a path may lead to something else, and the answer that follows.
TEST_P(file_cache_test, notices_whatever_happens_to_a_path) {
    remake_cache(every_time);
    const std::string missing = message_of(std::errc::no_such_file_or_directory);
    const std::string outside = message_of(std::errc::cross_device_link);
    const auto remove = [&](const char* name) { ::unlink(tree_.path(name).c_str()); };
    const std::pair<std::function<void()>, std::string> changes[]{
        {[&] { tree_.write("d/name", "first"); }, "first"},
        {[&] { tree_.write("d/name", "secnd"); }, "secnd"},
        {[&] { tree_.write("d/name", ""); }, ""},
        {[&] { tree_.write("d/new", "moved"), tree_.rename("d/new", "d/name"); }, "moved"},
        {[&] { remove("d/name"); }, missing},
        {[&] { tree_.write("e/name", "other"), tree_.link("d/name", "../e/name"); }, "other"},
        {[&] { tree_.rename("e", "f"); }, missing},
        {[&] { tree_.link("e", "f"); }, "other"},
        {[&] { remove("e"), tree_.link("e", "../outside"); }, outside},
        {[&] { tree_.write("../outside/name", "secret"); }, outside},
        {[&] { remove("e"), remove("d/name"), tree_.directory("d/name"); }, "directory"},
        {[&] { ::rmdir(tree_.path("d/name").c_str()), tree_.write("d/name", "again"); }, "again"}};

    for (const auto& [change, answer] : changes) {
        change();
        EXPECT_EQ(ask("d/name"), answer);
    }
}

TEST_P(file_cache_test, an_answer_goes_on_with_the_file_that_it_has) {
    remake_cache({.small_file = 0, .revalidate_after = 0s});
    tree_.write("name", "old");
    const auto before = open("name");
    ASSERT_TRUE(before);

    tree_.write("new", "new");
    tree_.rename("new", "name");
    EXPECT_EQ(ask("name"), "new");
    cache_.reset();

    EXPECT_EQ(contents_of((*before)->plain), "old");
}

TEST_P(file_cache_test, drops_the_least_recently_used_file) {
    remake_cache({.max_open = 2, .revalidate_after = 1h});
    for (const char* const name : {"a", "b", "c"})
        tree_.write(name, name);

    EXPECT_EQ(ask("a"), "a");
    EXPECT_EQ(ask("b"), "b");
    EXPECT_TRUE(cache_->find("a"));
    EXPECT_EQ(ask("c"), "c");

    EXPECT_EQ(cache_->file_count(), 2U);
    EXPECT_TRUE(cache_->find("a"));
    EXPECT_FALSE(cache_->find("b"));
}

TEST_P(file_cache_test, bounds_the_bytes_in_memory) {
    remake_cache({.small_file = 60, .small_total = 100, .revalidate_after = 1h});
    for (const char* const name : {"a", "b", "c", "d"}) {
        tree_.write(name, std::string(60, 'x'));
        EXPECT_TRUE(open(name));
        EXPECT_LE(cache_->byte_count(), 100U);
    }
    EXPECT_EQ(cache_->file_count(), 1U);
    EXPECT_TRUE(cache_->find("d"));
}

TEST_P(file_cache_test, what_is_too_large_for_the_cache_leaves_the_others_in_it) {
    remake_cache({.max_open = 2, .revalidate_after = 1h});
    for (const char* const name : {"a", "b", "c.js", "c.js.gz", "c.js.br"})
        tree_.write(name, "text");

    EXPECT_EQ(ask("a"), "text");
    EXPECT_EQ(ask("b"), "text");
    EXPECT_EQ(ask("c.js"), "text");

    EXPECT_EQ(cache_->file_count(), 2U);
    EXPECT_TRUE(cache_->find("a"));
    EXPECT_FALSE(cache_->find("c.js"));
}

TEST_P(file_cache_test, works_without_room_for_a_file) {
    remake_cache({.max_open = 0, .small_total = 0, .revalidate_after = 1h});
    tree_.write("a", "text");

    EXPECT_EQ(ask("a"), "text");
    EXPECT_EQ(ask("a"), "text");
    EXPECT_EQ(cache_->file_count(), 0U);
}

TEST_P(file_cache_test, bounds_the_paths_that_are_missing) {
    tree_.write("a", "text");
    EXPECT_EQ(ask("a"), "text");
    run([&]() -> task<> {
        for (int number = 0; number < 1'100; ++number)
            EXPECT_FALSE(co_await cache_->open("none" + std::to_string(number)));
        EXPECT_FALSE(co_await cache_->open(std::string(2'000, 'x')));
    });

    EXPECT_EQ(cache_->other_count(), 1'000U);
    EXPECT_TRUE(cache_->find("none1099"));
    EXPECT_FALSE(cache_->find("none0"));
    EXPECT_TRUE(cache_->find("a"));
}

TEST_P(file_cache_test, finds_compressed_files_beside_a_file) {
    tree_.write("a.js", "plain");
    tree_.write("a.js.gz", "gzip");
    tree_.write("a.js.br", "brotli");
    tree_.write("b.js", "plain");

    const auto both = open("a.js");
    const auto none = open("b.js");
    const auto itself = open("a.js.gz");

    ASSERT_TRUE(both && (*both)->gzip && (*both)->br && none && itself);
    EXPECT_EQ(contents_of(*(*both)->gzip), "gzip");
    EXPECT_EQ(contents_of(*(*both)->br), "brotli");
    EXPECT_NE((*both)->gzip->etag, (*both)->plain.etag);
    EXPECT_TRUE((*both)->content_type.contains("javascript"));
    EXPECT_FALSE((*none)->gzip || (*none)->br);
    EXPECT_FALSE((*itself)->gzip || (*itself)->br);
    EXPECT_EQ(cache_->file_count(), 5U);
}

TEST_P(file_cache_test, compressed_files_are_regular_current_and_beneath_the_root) {
    const auto use = [&](const char* name) {
        const auto opened = open(name);
        return opened && ((*opened)->gzip || (*opened)->br);
    };
    for (const char* const name : {"old.js", "old.js.gz", "out.js", "dir.js", "../outside/x.gz"})
        tree_.write(name, "text");
    const timespec past[2]{{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
    ::utimensat(AT_FDCWD, tree_.path("old.js.gz").c_str(), past, 0);
    tree_.link("out.js.gz", "../outside/x.gz");
    tree_.directory("dir.js.br");

    EXPECT_FALSE(use("old.js"));
    EXPECT_FALSE(use("out.js"));
    EXPECT_FALSE(use("dir.js"));
    ::utimensat(AT_FDCWD, tree_.path("old.js").c_str(), past, 0);
    cache_->clear();
    EXPECT_TRUE(use("old.js")); // as old as the file
    remake_cache({.precompressed = false});
    EXPECT_FALSE(use("old.js"));
}

TEST_P(file_cache_test, the_date_of_a_file_is_never_in_the_future) {
    tree_.write("a", "text");
    const timespec tomorrow{.tv_sec = ::time(nullptr) + 86'400, .tv_nsec = 0};
    const timespec dates[2]{tomorrow, tomorrow};
    ASSERT_EQ(::utimensat(AT_FDCWD, tree_.path("a").c_str(), dates, 0), 0);

    // Until a second begins: the clock of Date, as that of time(2), is a tick behind the exact one.
    const std::time_t start = ::time(nullptr);
    for (std::time_t now = start; now == start; now = ::time(nullptr)) {
        remake_cache(every_time);
        const auto opened = open("a");
        ASSERT_TRUE(opened);
        ASSERT_LE((*opened)->plain.modified, ::time(nullptr));
    }
}

TEST_P(file_cache_test, a_file_that_has_just_changed_has_a_weak_tag_and_is_read_again) {
    remake_cache(every_time);
    tree_.write("a", "text");
    const auto first = open("a");
    const auto second = open("a");

    ASSERT_TRUE(first && second);
    EXPECT_TRUE((*first)->plain.is_recent);
    EXPECT_TRUE((*first)->plain.etag.starts_with("W/\"4-")) << (*first)->plain.etag;
    EXPECT_TRUE((*first)->plain.etag.ends_with('"'));
    EXPECT_NE(*first, *second);
    EXPECT_EQ((*first)->plain.etag, (*second)->plain.etag);
}

#if SIMPLENET_SEAMS
using testing::call;
using testing::fault_plan;

/// All files changed for the last time an hour before they really did.
class aged_files final : public simplenet::detail::sys::interceptor {
    long on_call(simplenet::detail::sys::pending_call& made) noexcept override {
        const long outcome = made.make();
        if (made.which() == call::fstat && outcome == 0) {
            made.argument<struct stat*>(1)->st_ctim.tv_sec -= 3600;
        }
        return outcome;
    }
    simplenet::detail::sys::intercepting installed_{*this};
};

TEST_P(file_cache_test, an_unchanged_file_stays_the_same_and_has_a_strong_tag) {
    const aged_files aged;
    remake_cache(every_time);
    for (const char* const name : {"a.js", "a.js.gz", "b"})
        tree_.write(name, "text");

    for (const char* const name : {"a.js", "b"}) {
        const auto first = open(name);
        const auto second = open(name);
        ASSERT_TRUE(first && second);
        EXPECT_EQ(*first, *second);
        EXPECT_TRUE((*first)->plain.etag.starts_with("\"4-"));
    }
}

TEST_P(file_cache_test, a_version_of_the_same_size_and_date_has_another_tag) {
    const aged_files aged;
    remake_cache(every_time);
    const timespec fixed[2]{{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
    std::vector<std::string> tags;
    for (const char* const text : {"one", "two"}) {
        ::unlink(tree_.path("a").c_str());
        tree_.write("a", text);
        ::utimensat(AT_FDCWD, tree_.path("a").c_str(), fixed, 0);
        // The clock of the file system ticks.
        struct stat made{};
        struct stat other{};
        ::stat(tree_.path("a").c_str(), &made);
        do {
            tree_.write("tick", "");
            ::stat(tree_.path("tick").c_str(), &other);
        } while (made.st_ctim.tv_nsec == other.st_ctim.tv_nsec);
        const auto opened = open("a");
        ASSERT_TRUE(opened);
        EXPECT_EQ(contents_of((*opened)->plain), text);
        tags.push_back((*opened)->plain.etag);
    }
    EXPECT_NE(tags[0], tags[1]);
}

TEST_P(file_cache_test, notices_compressed_files_that_come_and_go) {
    const aged_files aged;
    remake_cache(every_time);
    tree_.write("a.js", "text");
    const auto has = [&] {
        const auto opened = open("a.js");
        return opened && (*opened)->br;
    };

    EXPECT_FALSE(has());
    tree_.write("a.js.br", "text");
    EXPECT_TRUE(has());
    EXPECT_TRUE(has());
    ::unlink(tree_.path("a.js.br").c_str());
    EXPECT_FALSE(has());
}

// A cache of a thousand open files took all descriptors of a process that has 1024.
TEST_P(file_cache_test, a_file_takes_the_place_of_another_when_most_descriptors_are_in_use) {
    remake_cache({.small_file = 0, .revalidate_after = 1h});
    EXPECT_NE(ask("none"), ""); // the thread that looks has begun
    const testing::descriptor_limit limit{40};
    const auto lowest = [] { return simplenet::detail::sys::lowest_free_descriptor(); };
    const int end = simplenet::detail::sys::descriptor_limit();
    std::vector<unique_fd> others;
    while (lowest() < end - end / 4)
        others.emplace_back(::eventfd(0, EFD_CLOEXEC));

    for (const char* each : {"a", "b", "c"}) {
        tree_.write(each, "text");
        EXPECT_EQ(ask(each), "text");
    }

    EXPECT_EQ(cache_->file_count(), 1U);
    EXPECT_TRUE(cache_->find("c"));
}

TEST_P(file_cache_test, a_hit_makes_no_system_call) {
    tree_.write("a", "text");
    EXPECT_EQ(ask("a"), "text");
    fault_plan plan;

    EXPECT_TRUE(cache_->find("a"));

    for (const call which : {call::openat2, call::openat, call::fstat, call::pread, call::close})
        EXPECT_EQ(plan.count(which), 0U);
}

TEST_P(file_cache_test, errors_of_the_moment_are_not_remembered) {
    tree_.write("a", "text");
    for (const int error : {EIO, ENOMEM, EMFILE}) {
        {
            fault_plan plan;
            plan.fail(call::openat2, 0, error, testing::from_then_on);
            EXPECT_EQ(open("a").error(), std::error_code(error, std::system_category()));
        }
        EXPECT_EQ(ask("a"), "text");
        cache_->clear();
    }
}

TEST_P(file_cache_test, gives_up_its_own_descriptors_if_there_are_no_others) {
    remake_cache({.small_file = 0, .revalidate_after = 1h});
    tree_.write("a", "a");
    tree_.write("b", "b");
    EXPECT_EQ(ask("a"), "a");
    fault_plan plan;
    plan.fail(call::openat2, 0, EMFILE);

    EXPECT_EQ(ask("b"), "b");

    EXPECT_FALSE(cache_->find("a"));
    EXPECT_EQ(cache_->file_count(), 1U);
}

TEST_P(file_cache_test, a_file_in_memory_is_served_as_it_was_if_there_is_no_descriptor) {
    remake_cache(every_time);
    tree_.write("a", "before");
    EXPECT_EQ(ask("a"), "before");
    tree_.write("a", "after");
    {
        fault_plan plan;
        plan.fail(call::openat2, 0, EMFILE, testing::from_then_on);
        EXPECT_EQ(ask("a"), "before");
        EXPECT_EQ(open("b").error(), std::errc::too_many_files_open);
    }

    EXPECT_EQ(ask("a"), "after");
}

TEST_P(file_cache_test, serves_the_files_of_a_directory_that_may_not_be_listed) {
    tree_.write("d/a", "text");
    fault_plan plan;
    plan.fail(call::openat2, 0, EACCES);

    EXPECT_EQ(ask("d"), "directory");
    EXPECT_EQ(ask("d/a"), "text");
}

TEST_P(file_cache_test, a_file_that_changes_while_it_is_read_is_read_again_or_stays_open) {
    tree_.write("a", "text");
    /// Writes to the file before each read.
    class writing final : public simplenet::detail::sys::interceptor {
    public:
        writing(const file_tree& tree, int times)
            : tree_{tree}
            , left_{times} {}

    private:
        long on_call(simplenet::detail::sys::pending_call& made) noexcept override {
            if (made.which() == call::pread && left_-- > 0) tree_.write("a", "text" + more_);
            more_ += '+';
            return made.make();
        }
        const file_tree& tree_;
        int left_;
        std::string more_;
        simplenet::detail::sys::intercepting installed_{*this};
    };
    {
        const writing once{tree_, 1};
        const auto read_again = open("a");
        ASSERT_TRUE(read_again);
        EXPECT_TRUE((*read_again)->plain.in_memory);
        EXPECT_EQ((*read_again)->plain.contents.size(), (*read_again)->plain.size);
    }
    cache_->clear();
    const writing always{tree_, 100};
    const auto stays = open("a");
    ASSERT_TRUE(stays);
    EXPECT_FALSE((*stays)->plain.in_memory);
    EXPECT_TRUE((*stays)->plain.fd);
    EXPECT_TRUE((*stays)->plain.contents.empty());
}

/// Holds up the first lookup.
class slow_disk final : public simplenet::detail::sys::interceptor {
public:
    ~slow_disk() override { go_on(); }
    /// Until the lookup is under way.
    [[nodiscard]] task<> begun() const {
        while (lookups_ == 0)
            co_await yield();
    }
    void go_on() {
        if (!std::exchange(released_, true)) call_.release();
    }
    [[nodiscard]] int lookups() const noexcept { return lookups_; }

private:
    long on_call(simplenet::detail::sys::pending_call& made) noexcept override {
        if (made.which() == call::openat2 && lookups_++ == 0) call_.hold();
        return made.make();
    }
    testing::held_call call_;
    bool released_ = false;
    std::atomic<int> lookups_ = 0;
    simplenet::detail::sys::intercepting installed_{*this};
};

TEST_P(file_cache_test, waiters_for_one_path_share_a_lookup) {
    tree_.write("a.gz", "text");
    slow_disk disk;
    run([&]() -> task<> {
        std::vector<join_handle<result<served_ref>>> waiters;
        for (int each = 0; each < 10; ++each)
            waiters.push_back(spawn(cache_->open("a.gz")));
        co_await disk.begun();
        disk.go_on();
        for (auto& each : waiters)
            EXPECT_EQ(told(co_await each), "text");
    });
    EXPECT_EQ(disk.lookups(), 1);
}

TEST_P(file_cache_test, the_stop_of_a_waiter_does_not_concern_the_others) {
    tree_.write("a.gz", "text");
    slow_disk disk;
    run([&]() -> task<> {
        auto first = spawn(cache_->open("a.gz"));
        auto second = spawn(cache_->open("a.gz"));
        co_await disk.begun();
        first.request_stop();
        const auto stopped = co_await first;
        EXPECT_EQ(told(stopped), message_of(std::errc::operation_canceled));
        auto limited = with_timeout(cache_->open("a.gz"), 1ms);
        const auto late = co_await std::move(limited);
        EXPECT_EQ(late.error(), errc::deadline_exceeded);
        disk.go_on();
        EXPECT_EQ(told(co_await second), "text");
    });
    EXPECT_EQ(disk.lookups(), 1);
}

TEST_P(file_cache_test, a_lookup_that_nobody_waits_for_is_still_remembered) {
    tree_.write("a.gz", "text");
    slow_disk disk;
    run([&]() -> task<> {
        auto only = spawn(cache_->open("a.gz"));
        co_await disk.begun();
        only.request_stop();
        EXPECT_FALSE(co_await only);
        disk.go_on();
    });
    EXPECT_TRUE(cache_->find("a.gz"));
}

TEST_P(file_cache_test, a_lookup_survives_its_cache) {
    tree_.write("a.gz", "text");
    slow_disk disk;
    run([&]() -> task<> {
        auto waiter = spawn(cache_->open("a.gz"));
        co_await disk.begun();
        cache_.reset();
        disk.go_on();
        EXPECT_EQ(told(co_await waiter), "text");
    });
}

TEST_P(file_cache_test, the_end_of_a_loop_leaves_nothing_behind) {
    tree_.write("a.gz", "text");
    {
        slow_disk disk;
        loop().spawn([](file_cache& cache, const slow_disk& slow, event_loop& here) -> task<> {
            auto waiter = spawn(cache.open("a.gz"));
            co_await slow.begun();
            here.stop();
            static_cast<void>(co_await waiter);
        }(*cache_, disk, loop()));
        loop().run();
        destroy_loop();
    }
    remake_loop();

    EXPECT_EQ(ask("a.gz"), "text");
}
#endif

INSTANTIATE_TEST_SUITE_P(backends, file_cache_test, testing::all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::http::detail
