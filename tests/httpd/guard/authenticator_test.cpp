#include "httpd/guard/authenticator.hpp"

#include "support/backend_test.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/spawn.hpp>

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpd {
namespace {

using simplenet::task;
using simplenet::http::basic_credentials;
using verdict = authenticator::verdict;

// A hash takes so long (30 ms) that all guesses have begun before one ends.
password_file users() {
    std::string problem;
    return simplenet::or_throw(password_file::parse(
        "ann:$2y$09$abcdefghijklmnopqrstuuHGaj8X0gyV0nNYEM.J5pTQDq3AfkM3W", problem));
}

std::vector<basic_credentials> guesses(int count) {
    std::vector<basic_credentials> all;
    for (int each = 0; each < count; ++each)
        all.push_back({.user = "ann", .password = "guess" + std::to_string(each)});
    return all;
}

simplenet::ip_address address(std::string_view text) {
    return simplenet::or_throw(simplenet::ip_address::parse(text));
}

/// Requests at once.
class crowd {
public:
    crowd(authenticator& asked, std::vector<basic_credentials> with,
          std::string_view from = "192.0.2.1")
        : with_{std::move(with)}
        , from_{address(from)} {
        for (const basic_credentials& each : with_)
            checks_.push_back(simplenet::spawn(asked.check(each, from_)));
    }

    task<std::map<verdict, int>> verdicts() {
        std::map<verdict, int> counts;
        for (auto& each : checks_)
            ++counts[co_await each];
        co_return counts;
    }

private:
    const std::vector<basic_credentials> with_;
    const simplenet::ip_address from_;
    std::vector<simplenet::join_handle<verdict>> checks_;
};

class authenticator_test : public simplenet::testing::backend_test {
protected:
    task<> expect(std::string user, std::string password, verdict expected) {
        const basic_credentials given{.user = user, .password = password};
        EXPECT_EQ(co_await asked.check(given, client), expected) << user << ' ' << password;
    }
    authenticator asked{users()};
    const simplenet::ip_address client = address("192.0.2.1");
};

TEST_P(authenticator_test, right_and_wrong_credentials_are_told_apart_again_and_again) {
    run([&]() -> task<> {
        for (int each = 0; each < 3; ++each) {
            co_await expect("ann", "secret", verdict::right);
            co_await expect("ann", "wrong", verdict::wrong);
            co_await expect("ann:secret", "", verdict::wrong);
            co_await expect("", "ann:secret", verdict::wrong);
            co_await expect("bob", "secret", verdict::wrong);
        }
    });
}

TEST_P(authenticator_test, a_crowd_that_guesses_waits_behind_itself) {
    run([&]() -> task<> {
        crowd guessing{asked, guesses(20)};
        crowd other{asked, {{.user = "ann", .password = "secret"}}, "192.0.2.2"};
        std::map<verdict, int> counts = co_await guessing.verdicts();
        EXPECT_EQ(counts[verdict::wrong], 4);
        EXPECT_EQ(counts[verdict::busy], 16);
        EXPECT_EQ((co_await other.verdicts())[verdict::right], 1);
        co_await expect("ann", "guess", verdict::wrong); // there are places again
    });
}

TEST_P(authenticator_test, a_crowd_with_the_same_credentials_waits_for_one_hash) {
    run([&]() -> task<> {
        const basic_credentials right{.user = "ann", .password = "secret"};
        crowd together{asked, std::vector<basic_credentials>(20, right)};
        EXPECT_EQ((co_await together.verdicts())[verdict::right], 20);
        const basic_credentials wrong{.user = "ann", .password = "guess"};
        crowd guessing{asked, std::vector<basic_credentials>(20, wrong)};
        EXPECT_EQ((co_await guessing.verdicts())[verdict::wrong], 20);
    });
}

// Four requests with the same guess used to hold all threads, each waiting for the first one.
TEST_P(authenticator_test, a_crowd_that_waits_for_one_hash_leaves_the_threads_to_others) {
    std::string problem;
    authenticator slow_and_fast{simplenet::or_throw(password_file::parse(
        "ann:$2y$12$abcdefghijklmnopqrstuuHGaj8X0gyV0nNYEM.J5pTQDq3AfkM3W\n" // takes 250 ms
        "bob:$5$rounds=1000$saltsalt$eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2",
        problem))};
    run([&]() -> task<> {
        const basic_credentials wrong{.user = "ann", .password = "guess"};
        const basic_credentials right{.user = "bob", .password = "secret"};
        const simplenet::ip_address other = address("192.0.2.2");
        int ended = 0;
        auto guess = [&]() -> task<> {
            EXPECT_EQ(co_await slow_and_fast.check(wrong, client), verdict::wrong);
            ++ended;
        };
        std::vector<simplenet::join_handle<>> guessing;
        for (int each = 0; each < 20; ++each)
            guessing.push_back(simplenet::spawn(guess()));
        auto asking = simplenet::spawn(slow_and_fast.check(right, other)); // behind all of them

        EXPECT_EQ(co_await asking, verdict::right);

        EXPECT_EQ(ended, 0);
        for (auto& each : guessing)
            co_await each;
    });
}

INSTANTIATE_TEST_SUITE_P(backends, authenticator_test, simplenet::testing::all_backends,
                         simplenet::testing::backend_name);

} // namespace
} // namespace httpd
