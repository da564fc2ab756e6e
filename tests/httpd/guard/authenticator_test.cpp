#include "httpd/guard/authenticator.hpp"

#include "support/backend_test.hpp"
#include "support/error_of.hpp"

#include <simplenet/coro/spawn.hpp>

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <string_view>
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

class authenticator_test : public simplenet::testing::backend_test {
protected:
    task<> expect(std::string user, std::string password, verdict expected) {
        const basic_credentials given{.user = user, .password = password};
        EXPECT_EQ(co_await asked.check(given), expected) << user << ' ' << password;
    }
    authenticator asked{users()};
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

TEST_P(authenticator_test, a_crowd_that_guesses_takes_only_some_of_the_threads) {
    run([&]() -> task<> {
        co_await expect("ann", "secret", verdict::right);
        std::vector<basic_credentials> texts;
        for (int each = 0; each < 20; ++each)
            texts.push_back({.user = "ann", .password = "guess" + std::to_string(each)});
        std::vector<simplenet::join_handle<verdict>> guesses;
        for (const basic_credentials& each : texts)
            guesses.push_back(simplenet::spawn(asked.check(each)));
        std::map<verdict, int> counts;
        for (auto& each : guesses)
            ++counts[co_await each];
        EXPECT_EQ(counts[verdict::wrong], 4);
        EXPECT_EQ(counts[verdict::busy], 16);
        // Whoever was right before is not asked to wait, and there are places again.
        co_await expect("ann", "secret", verdict::right);
        co_await expect("ann", "guess", verdict::wrong);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, authenticator_test, simplenet::testing::all_backends,
                         simplenet::testing::backend_name);

} // namespace
} // namespace httpd
