#include "http/gateway/backend_set.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace simplenet::v0::http::detail {
namespace {

using namespace std::chrono_literals;

using moment = backend_set::clock::time_point;
constexpr moment start{1000s};

constexpr std::array three{backend{"a:1"}, backend{"b:1"}, backend{"c:1"}};

/// What one request is given that has tried nothing; it ends at once.
std::string choice_of(const backend_set& set, moment now = start) {
    backend_marks tried;
    const auto lease = set.pick(tried, now);
    return lease ? std::string{lease->name()} : "none";
}

/// Lets `name` fail at `now`.
void fail_at(const backend_set& set, std::string_view name, moment now) {
    backend_marks tried;
    while (auto lease = set.pick(tried, now)) {
        if (lease->name() == name) {
            lease->failed(now);
            return;
        }
    }
    ADD_FAILURE() << "there is no backend " << name;
}

TEST(backend_set_test, addresses_are_names_with_ports_or_paths) {
    for (const std::string_view good : {"localhost:9000", "127.0.0.1:1", "[::1]:65535",
                                        "unix:/run/php/php-fpm.sock", "unix:relative.sock"}) {
        EXPECT_TRUE(is_backend_address(good)) << good;
    }
    for (const std::string_view bad :
         {"", "localhost", "localhost:", "localhost:0", "localhost:65536", ":80", "::1:80", "[::1]",
          "http://a:80", "a b:80", "unix:", "a:80/"}) {
        EXPECT_FALSE(is_backend_address(bad)) << bad;
    }
    EXPECT_FALSE(is_backend_address("unix:" + std::string(200, 'x')));
    EXPECT_FALSE(is_backend_address(std::string_view{"unix:/a\0b", 9}));
    EXPECT_EQ(std::get<tcp_address>(*parse_backend_address("[::1]:80")).host, "::1");
}

TEST(backend_set_test, a_lease_that_has_ended_keeps_its_name_and_is_not_active) {
    const std::array one{backend{"a:1"}};
    const backend_set set{one};
    {
        backend_marks tried;
        std::optional<backend_lease> lease = set.pick(tried);
        ASSERT_TRUE(lease);
        EXPECT_EQ(set.status().front().active, 1U);

        lease->end();
        const backend_lease moved = *std::move(lease);

        EXPECT_EQ(set.status().front().active, 0U);
        EXPECT_EQ(moved.name(), "a:1");
    }
    EXPECT_EQ(set.status().front().active, 0U);
}

TEST(backend_set_test, those_who_wait_on_new_connections_are_seen_after_a_while) {
    const std::array one{backend{"a:1"}};
    const backend_set set{one, 10s};
    const auto lease = [&] {
        backend_marks tried;
        return *set.pick(tried, start);
    };
    backend_lease first = lease();
    backend_lease second = lease();
    first.waits_on_new();
    second.waits_on_new();
    first.succeeded();

    EXPECT_FALSE(first.do_others_wait(start)); // begins to look
    EXPECT_FALSE(first.do_others_wait(start + backend_lease::patience - 1ns));
    EXPECT_TRUE(first.do_others_wait(start + backend_lease::patience));
    second.succeeded();
    EXPECT_FALSE(first.do_others_wait(start + 1h));
}

TEST(backend_set_test, a_set_that_cannot_work_is_refused) {
    const std::vector<backend> too_many(most_backends + 1, backend{"a:1"});
    for (const std::vector<backend>& bad :
         {std::vector<backend>{}, too_many, std::vector{backend{"nonsense"}},
          std::vector{backend{"a:1", 0}}, std::vector{backend{"a:1", 1001}}}) {
        EXPECT_THROW(backend_set{bad}, std::system_error);
    }
}

TEST(backend_set_test, equal_backends_take_turns) {
    const backend_set set{three};

    EXPECT_EQ(choice_of(set), "a:1");
    EXPECT_EQ(choice_of(set), "b:1");
    EXPECT_EQ(choice_of(set), "c:1");
    EXPECT_EQ(choice_of(set), "a:1");
}

TEST(backend_set_test, turns_are_in_proportion_to_the_weights) {
    const backend_set set{std::array{backend{"a:1", 3}, backend{"b:1", 1}}};
    std::multiset<std::string> chosen;

    for (int each = 0; each < 40; ++each)
        chosen.insert(choice_of(set));

    EXPECT_EQ(chosen.count("a:1"), 30U);
}

TEST(backend_set_test, the_backend_with_the_fewest_requests_for_its_weight_is_next) {
    const backend_set set{std::array{backend{"a:1", 2}, backend{"b:1", 1}}};
    std::vector<backend_lease> held;
    std::multiset<std::string> chosen;

    for (int each = 0; each < 6; ++each) {
        backend_marks tried;
        held.push_back(*set.pick(tried, start));
        chosen.emplace(held.back().name());
    }

    EXPECT_EQ(chosen.count("a:1"), 4U);
    std::erase_if(held, [](const backend_lease& each) { return each.name() == "b:1"; });
    EXPECT_EQ(choice_of(set), "b:1");
}

TEST(backend_set_test, a_request_is_not_given_the_same_backend_twice) {
    const backend_set set{three};
    backend_marks tried;
    std::set<std::string> chosen;

    while (const auto lease = set.pick(tried, start))
        chosen.emplace(lease->name());

    EXPECT_EQ(chosen.size(), 3U);
}

TEST(backend_set_test, a_failed_backend_is_left_out_until_one_request_tries_it) {
    const backend_set set{three};
    fail_at(set, "b:1", start);
    for (int each = 0; each < 6; ++each)
        EXPECT_NE(choice_of(set, start + 9s), "b:1");

    backend_marks tried;
    const auto trial = set.pick(tried, start + 10s);

    EXPECT_EQ(trial->name(), "b:1");
    for (int each = 0; each < 6; ++each)
        EXPECT_NE(choice_of(set, start + 10s), "b:1");
}

TEST(backend_set_test, a_trial_that_succeeds_ends_the_absence) {
    const backend_set set{three};
    fail_at(set, "b:1", start);
    backend_marks tried;
    auto trial = *set.pick(tried, start + 10s);

    EXPECT_TRUE(trial.succeeded());

    EXPECT_FALSE(trial.succeeded());
    EXPECT_FALSE(set.status(start + 10s)[1].left_out);
    EXPECT_EQ(set.status()[1].failures, 1U);
    EXPECT_EQ(set.status()[1].answered, 2U);
}

TEST(backend_set_test, a_trial_that_fails_begins_the_absence_again) {
    const backend_set set{three};
    fail_at(set, "b:1", start);
    {
        backend_marks tried;
        auto trial = *set.pick(tried, start + 10s);
        EXPECT_FALSE(trial.failed(start + 15s));
    }

    EXPECT_EQ(set.status(start + 15s)[1].left_out, 10s);
    EXPECT_NE(choice_of(set, start + 24s), "b:1");
    EXPECT_EQ(choice_of(set, start + 25s), "b:1");
}

TEST(backend_set_test, a_trial_without_an_outcome_is_left_to_the_next_request) {
    const backend_set set{three};
    fail_at(set, "b:1", start);

    EXPECT_EQ(choice_of(set, start + 10s), "b:1");

    EXPECT_EQ(choice_of(set, start + 10s), "b:1");
}

TEST(backend_set_test, of_backends_that_all_failed_the_first_to_fail_is_tried) {
    const backend_set set{three};
    fail_at(set, "c:1", start);
    fail_at(set, "a:1", start + 1s);
    fail_at(set, "b:1", start + 2s);

    backend_marks tried;
    EXPECT_EQ(set.pick(tried, start + 3s)->name(), "c:1");
    EXPECT_EQ(set.pick(tried, start + 3s)->name(), "a:1");
    EXPECT_EQ(set.pick(tried, start + 3s)->name(), "b:1");
    EXPECT_FALSE(set.pick(tried, start + 3s));
    // A single one is never left out.
    const backend_set single{std::array{backend{"a:1"}}};
    fail_at(single, "a:1", start);
    EXPECT_EQ(choice_of(single, start), "a:1");
}

TEST(backend_set_test, full_backends_are_chosen_only_if_all_in_use_are_full) {
    const backend_set set{three};
    fail_at(set, "c:1", start);
    backend_marks tried;
    backend_marks full;
    full.add(0);

    EXPECT_EQ(set.pick(tried, start, full)->name(), "b:1");
    EXPECT_EQ(set.pick(tried, start, full)->name(), "a:1");
    EXPECT_EQ(set.pick(tried, start, full)->name(), "c:1");
}

TEST(backend_set_test, status_tells_the_figures_of_each_backend) {
    const backend_set set{std::array{backend{"a:1"}, backend{"unix:/b", 5}}};
    backend_marks tried;
    auto lease = *set.pick(tried, start);
    auto moved = std::move(lease);
    moved.failed(start);

    const auto status = set.status(start + 4s);

    EXPECT_EQ(status[0].active, 1U);
    EXPECT_EQ(status[0].failures, 1U);
    EXPECT_EQ(status[0].left_out, 6s);
    EXPECT_EQ(set.status(start + 20s)[0].left_out, 0s);
    EXPECT_EQ(status[1].address, "unix:/b");
    EXPECT_EQ(status[1].weight, 5U);
    EXPECT_EQ(status[1].active, 0U);
}

TEST(backend_set_test, counts_are_exact_with_several_threads) {
    const backend_set set{three, 0s};
    const auto use = [&set] {
        for (int each = 0; each < 2000; ++each) {
            backend_marks tried;
            auto lease = *set.pick(tried);
            if (each % 3 == 0) lease.failed();
            if (each % 3 == 1) lease.succeeded();
        }
    };

    std::vector<std::jthread> threads;
    for (int each = 0; each < 3; ++each)
        threads.emplace_back(use);
    threads.clear();

    std::uint64_t failures = 0;
    for (const backend_status& each : set.status()) {
        EXPECT_EQ(each.active, 0U);
        failures += each.failures;
    }
    EXPECT_EQ(failures, 3U * 667U);
}

} // namespace
} // namespace simplenet::v0::http::detail
