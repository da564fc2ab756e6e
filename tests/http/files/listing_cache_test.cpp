// Listings that many ask for: how many are made, when, and for whom.

#include "http/files/listing_cache.hpp"

#include "file_tree.hpp"
#include "support/backend_test.hpp"

#if SIMPLENET_SEAMS

#include "support/error_of.hpp"
#include "support/held_up.hpp"
#include "sys/seam.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/runtime/run_blocking.hpp>
#include <simplenet/testing/manual_clock.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace simplenet::v0::http::detail {
namespace {

using namespace std::chrono_literals;
using testing::backend_name;

constexpr static_options kept_for_an_hour{.revalidate_after = 1h};
constexpr static_options never_kept{.revalidate_after = 0s};

/// A client of the server.
class connection {
public:
    connection() {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
            throw std::system_error{errno, std::system_category()};
        }
        server_ = unique_fd{ends[0]};
        client_ = unique_fd{ends[1]};
    }
    /// The server's end.
    [[nodiscard]] int socket() const noexcept { return server_.get(); }
    void leave() { client_.reset(); }

private:
    unique_fd server_;
    unique_fd client_;
};

/// Counts listings.
class watched_directories : public simplenet::detail::sys::interceptor {
public:
    [[nodiscard]] bool has_begun() const noexcept { return begun_; }
    /// Read to the end.
    [[nodiscard]] int listings() const noexcept { return listings_; }

protected:
    virtual void before_reading() {}

private:
    long on_call(simplenet::detail::sys::pending_call& made) noexcept override {
        if (made.which() != simplenet::detail::sys::call::getdents) return made.make();
        if (!begun_.exchange(true)) before_reading();
        const long outcome = made.make();
        if (outcome == 0) ++listings_;
        return outcome;
    }

    std::atomic<bool> begun_ = false;
    std::atomic<int> listings_ = 0;
};
class counted_directories final : public watched_directories {
    simplenet::detail::sys::intercepting installed_{*this};
};

/// Holds up the first listing.
class slow_directory final : public watched_directories {
public:
    ~slow_directory() override { go_on(); }
    /// Until the listing is under way.
    [[nodiscard]] task<> begun() const {
        while (!has_begun())
            co_await yield();
    }
    void go_on() {
        if (!std::exchange(released_, true)) call_.release();
    }

private:
    void before_reading() override { call_.hold(); }

    testing::held_call call_;
    bool released_ = false;
    simplenet::detail::sys::intercepting installed_{*this};
};

class listing_cache_test : public testing::backend_test {
protected:
    using listed = result<page_ref>;

    void remake_cache(const static_options& options) { cache_.emplace(root(), options, turns_); }
    /// A loop whose time passes by advance() only.
    void stop_clock() {
        clock_.set_automatic(false);
        loop_options options;
        options.clock = &clock_;
        remake_loop(options);
    }

    [[nodiscard]] task<listed> page(std::string_view path, const connection& client) {
        return page(path, client, "10.0.0.1");
    }
    [[nodiscard]] task<listed> page(std::string_view path, const connection& client,
                                    std::string_view address) {
        return cache_->page({client.socket(), key(address)}, path, path);
    }
    [[nodiscard]] task<listed> page(std::string_view path) { return page(path, client_); }
    static client_key key(std::string_view address) {
        return key_of(or_throw(ip_address::parse(address)));
    }
    [[nodiscard]] std::string ask(std::string_view path) {
        std::string text;
        run([&]() -> task<> { text = told(co_await page(path)); });
        return text;
    }
    static std::string told(const listed& answer) {
        return answer ? **answer : answer.error().message();
    }

    /// Until whatever could begin by now has begun.
    static task<> settle() {
        for (int each = 0; each < 20; ++each) {
            auto nothing = run_blocking([] {});
            co_await std::move(nothing);
            co_await yield(); // it may be over before it is awaited
        }
    }

    [[nodiscard]] file_cache::root_ref root() const {
        return std::make_shared<const unique_fd>(or_throw(open_root(tree_.path(""))));
    }

    file_tree tree_;
    connection client_;
    testing::manual_clock clock_;
    const listing_cache::turns_ref turns_ = std::make_shared<fair_places>(1);
    std::optional<listing_cache> cache_{std::in_place, root(), kept_for_an_hour, turns_};
};

TEST_P(listing_cache_test, waiters_for_one_page_share_a_listing) {
    remake_cache(never_kept);
    tree_.write("d/file", "text");
    slow_directory directory;
    run([&]() -> task<> {
        std::vector<join_handle<listed>> waiters;
        for (int each = 0; each < 10; ++each)
            waiters.push_back(spawn(page("d")));
        co_await directory.begun();
        directory.go_on();
        for (auto& each : waiters)
            EXPECT_TRUE(told(co_await each).contains("./file"));
    });
    EXPECT_EQ(directory.listings(), 1);
}

TEST_P(listing_cache_test, a_page_is_used_again_until_it_is_too_old) {
    tree_.write("d/before", "text");
    const counted_directories directories;

    const std::string first = ask("d");
    tree_.write("d/after", "text");
    EXPECT_EQ(ask("d"), first);
    EXPECT_EQ(directories.listings(), 1);

    remake_cache(never_kept);
    static_cast<void>(ask("d"));
    tree_.write("d/last", "text");
    EXPECT_TRUE(ask("d").contains("./last"));
    EXPECT_EQ(directories.listings(), 3);
}

TEST_P(listing_cache_test, pages_with_other_titles_are_others) {
    tree_.write("d/file", "text");
    run([&]() -> task<> {
        for (const std::string_view title : {"/one/", "/two/"}) {
            const listed answer = co_await cache_->page({client_.socket(), {}}, "d", title);
            EXPECT_TRUE(told(answer).contains(title));
        }
    });
}

// All threads of run_blocking() made listings, and lookups of files waited for them.
TEST_P(listing_cache_test, listings_take_turns) {
    tree_.directory("a");
    tree_.directory("b");
    listing_cache other{root(), kept_for_an_hour, turns_};
    const counted_directories directories;
    fair_places::place held;
    run([&]() -> task<> {
        EXPECT_TRUE(turns_->take(key("10.0.0.9"), held));
        auto first = spawn(page("a"));
        auto second = spawn(other.page({client_.socket(), {}}, "b", "b"));
        co_await settle();
        EXPECT_FALSE(directories.has_begun());

        held.release();
        EXPECT_TRUE(co_await first);
        EXPECT_TRUE(co_await second);
    });
    EXPECT_EQ(directories.listings(), 2);
    EXPECT_TRUE(turns_->has_room(key("10.0.0.1")));
}

TEST_P(listing_cache_test, a_listing_whose_clients_have_left_is_not_made) {
    tree_.directory("d");
    connection leaving;
    const counted_directories directories;
    fair_places::place held;
    run([&]() -> task<> {
        EXPECT_TRUE(turns_->take(key("10.0.0.9"), held));
        auto left = spawn(page("d", leaving));
        auto also_left = spawn(page("d", leaving));
        co_await settle();
        leaving.leave();
        held.release();
        EXPECT_EQ(error_of(co_await left), std::errc::resource_unavailable_try_again);
        EXPECT_FALSE(co_await also_left);
    });
    EXPECT_FALSE(directories.has_begun());
    EXPECT_TRUE(turns_->has_room(key("10.0.0.1")));
}

TEST_P(listing_cache_test, a_turn_is_waited_for_only_so_long) {
    stop_clock();
    tree_.directory("d");
    const counted_directories directories;
    fair_places::place held;
    run([&]() -> task<> {
        EXPECT_TRUE(turns_->take(key("10.0.0.9"), held));
        auto waiting = spawn(page("d"));
        co_await settle();
        clock_.advance(listing_cache::longest_wait + 1s);
        const listed late = co_await waiting;
        EXPECT_EQ(error_of(late), std::errc::resource_unavailable_try_again);
    });
    EXPECT_FALSE(directories.has_begun());
}

// Its turn was behind that of another client for the same page.
TEST_P(listing_cache_test, whoever_has_waited_too_long_gets_the_page_of_another) {
    stop_clock();
    remake_cache(never_kept);
    tree_.directory("d");
    const counted_directories directories;
    fair_places::place held;
    run([&]() -> task<> {
        EXPECT_TRUE(turns_->take(key("10.0.0.9"), held));
        fair_places::place also_held;
        fair_places::turn first{*turns_, key("10.0.0.1"), also_held};
        auto before = spawn([](fair_places::turn own) -> task<> {
            EXPECT_TRUE(co_await std::move(own));
        }(std::move(first)));
        auto maker = spawn(page("d", client_, "10.0.0.2"));
        co_await settle();
        fair_places::place last_held;
        fair_places::turn last{*turns_, key("10.0.0.3"), last_held};
        auto behind = spawn([](fair_places::turn own) -> task<> {
            EXPECT_TRUE(co_await std::move(own));
        }(std::move(last)));
        auto late = spawn(page("d", client_, "10.0.0.4"));
        co_await settle();
        held.release();
        co_await before;
        also_held.release();
        EXPECT_TRUE(co_await maker);
        co_await behind;

        clock_.advance(listing_cache::longest_wait + 1s); // its turn has not come
        EXPECT_TRUE(co_await late);
    });
    EXPECT_EQ(directories.listings(), 1);
}

TEST_P(listing_cache_test, a_client_that_left_does_not_concern_the_others) {
    tree_.directory("d");
    connection leaving;
    fair_places::place held;
    run([&]() -> task<> {
        EXPECT_TRUE(turns_->take(key("10.0.0.9"), held));
        auto left = spawn(page("d", leaving));
        auto there = spawn(page("d"));
        co_await settle();
        leaving.leave();
        held.release();
        EXPECT_TRUE(co_await there);
        EXPECT_FALSE(co_await left);
    });
}

// A crowd of requests for other directories came first.
TEST_P(listing_cache_test, listings_take_turns_by_client) {
    fair_places::place held;
    std::string order;
    const auto note = [&](std::string name, std::string address) -> task<> {
        EXPECT_TRUE(co_await page(name, client_, address));
        order += name;
    };
    for (const char* each : {"a", "b", "c", "d"})
        tree_.directory(each);
    run([&]() -> task<> {
        EXPECT_TRUE(turns_->take(key("10.0.0.9"), held));
        std::vector<join_handle<>> waiting;
        for (const char* each : {"a", "b", "c"})
            waiting.push_back(spawn(note(each, "10.0.0.1")));
        waiting.push_back(spawn(note("d", "10.0.0.2")));
        co_await settle();
        held.release();
        for (join_handle<>& each : waiting)
            co_await each;
    });
    EXPECT_EQ(order, "adbc");
}

// Such a client may have ended only the side on which it sends.
TEST_P(listing_cache_test, a_client_that_keeps_nobody_waiting_need_not_be_there) {
    tree_.write("d/file", "text");
    connection left;
    left.leave();
    run([&]() -> task<> { EXPECT_TRUE(co_await page("d", left)); });
}

TEST_P(listing_cache_test, a_listing_that_nobody_waits_for_does_not_begin) {
    tree_.write("d/file", "text");
    const counted_directories directories;
    fair_places::place held;
    run([&]() -> task<> {
        EXPECT_TRUE(turns_->take(key("10.0.0.9"), held));
        auto stopped = spawn(page("d"));
        co_await settle();
        stopped.request_stop();
        EXPECT_EQ(error_of(co_await stopped), std::errc::operation_canceled);
        auto waiting = page("d");
        auto limited = with_timeout(std::move(waiting), 1ms);
        const listed late = co_await std::move(limited);
        EXPECT_EQ(error_of(late), errc::deadline_exceeded);
        held.release();
        co_await settle();
    });
    EXPECT_FALSE(directories.has_begun());
    EXPECT_TRUE(ask("d").contains("./file"));
}

TEST_P(listing_cache_test, the_stop_of_a_waiter_does_not_concern_the_others) {
    tree_.write("d/file", "text");
    slow_directory directory;
    run([&]() -> task<> {
        auto first = spawn(page("d"));
        auto second = spawn(page("d"));
        co_await directory.begun();
        first.request_stop();
        EXPECT_FALSE(co_await first);
        directory.go_on();
        EXPECT_TRUE(told(co_await second).contains("./file"));
    });
    EXPECT_EQ(directory.listings(), 1);
}

TEST_P(listing_cache_test, errors_are_not_remembered) {
    EXPECT_EQ(ask("d"), std::make_error_code(std::errc::no_such_file_or_directory).message());
    tree_.write("d/file", "text");
    EXPECT_TRUE(ask("d").contains("./file"));
}

TEST_P(listing_cache_test, the_newest_pages_are_kept) {
    const auto name = [](int number) { return "d" + std::to_string(number); };
    for (int each = 0; each < 33; ++each)
        tree_.directory(name(each));
    const counted_directories directories;
    for (int each = 0; each < 33; ++each)
        static_cast<void>(ask(name(each)));

    static_cast<void>(ask(name(1)));
    EXPECT_EQ(directories.listings(), 33);
    static_cast<void>(ask(name(0)));
    EXPECT_EQ(directories.listings(), 34);
}

TEST_P(listing_cache_test, pages_have_a_limit_in_bytes) {
    // In a page, a byte that is not UTF-8 becomes eleven.
    const std::string filling(240, '\xff');
    const auto fill = [&](const std::string& directory, int files) {
        tree_.directory(directory);
        for (int each = 0; each < files; ++each)
            tree_.write(directory + '/' + filling + std::to_string(each), "");
    };
    fill("a", 700);
    fill("b", 700);
    fill("c", 700);
    fill("too large", 1700);
    const counted_directories directories;
    for (const char* each : {"a", "b"})
        static_cast<void>(ask(each));
    EXPECT_GT(ask("too large").size(), 4U << 20U);
    EXPECT_EQ(directories.listings(), 3);

    static_cast<void>(ask("a"));
    EXPECT_EQ(directories.listings(), 3);
    static_cast<void>(ask("c"));
    static_cast<void>(ask("b"));
    EXPECT_EQ(directories.listings(), 4);
    static_cast<void>(ask("a"));
    EXPECT_EQ(directories.listings(), 5);
}

TEST_P(listing_cache_test, a_page_that_is_not_kept_any_more_is_shared_while_it_is_used) {
    const auto name = [](int number) { return "d" + std::to_string(number); };
    for (int each = 0; each < 34; ++each)
        tree_.directory(name(each));
    const counted_directories directories;
    run([&]() -> task<> {
        const listed used = co_await page(name(0));
        for (int each = 1; each < 34; ++each)
            static_cast<void>(co_await page(name(each)));
        const listed again = co_await page(name(0));
        EXPECT_EQ(or_throw(again), or_throw(used));
        EXPECT_TRUE(co_await page(name(2))); // it did not take the place of this one
        EXPECT_EQ(directories.listings(), 34);
    });
}

// Each of those who waited for it made it again.
TEST_P(listing_cache_test, a_page_that_is_too_large_to_keep_is_shared_while_it_is_used) {
    remake_cache(never_kept);
    const std::string filling(240, '\xff'); // a page has eleven bytes for each of these
    tree_.directory("d");
    for (int each = 0; each < 1700; ++each)
        tree_.write("d/" + filling + std::to_string(each), "");
    const counted_directories directories;
    run([&]() -> task<> {
        std::vector<join_handle<listed>> waiters;
        for (int each = 0; each < 10; ++each)
            waiters.push_back(spawn(page("d")));
        std::vector<page_ref> used;
        for (auto& each : waiters) {
            const listed made = co_await each;
            EXPECT_TRUE(made);
            if (made) used.push_back(*made);
        }
        EXPECT_EQ(directories.listings(), 1);
        EXPECT_GT(used.front()->size(), 4U << 20U);
        EXPECT_EQ(used.back(), used.front());
        // Nobody who asks from now on.
        EXPECT_TRUE(co_await page("d"));
        EXPECT_EQ(directories.listings(), 2);
    });
}

TEST_P(listing_cache_test, a_listing_survives_its_cache) {
    tree_.write("d/file", "text");
    slow_directory directory;
    run([&]() -> task<> {
        auto waiter = spawn(page("d"));
        co_await directory.begun();
        cache_.reset();
        directory.go_on();
        EXPECT_TRUE(told(co_await waiter).contains("./file"));
    });
}

TEST_P(listing_cache_test, the_end_of_a_loop_leaves_nothing_behind) {
    tree_.write("d/file", "text");
    {
        slow_directory directory;
        loop().spawn([](listing_cache& cache, int client, const slow_directory& slow,
                        event_loop& here) -> task<> {
            auto waiter = spawn(cache.page({client, {}}, "d", "d"));
            auto next = spawn(cache.page({client, {}}, "", ""));
            co_await slow.begun();
            here.stop();
            static_cast<void>(co_await waiter);
            static_cast<void>(co_await next);
        }(*cache_, client_.socket(), directory, loop()));
        loop().run();
        destroy_loop();
    }
    remake_loop();

    EXPECT_TRUE(ask("d").contains("./file"));
}

INSTANTIATE_TEST_SUITE_P(backends, listing_cache_test, testing::all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::http::detail

#endif
