#include "httpd/guard/password_file.hpp"

#include "support/error_of.hpp"
#include "support/temporary_directory.hpp"

#include <fstream>
#include <gmock/gmock.h>
#include <string>

namespace httpd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Hashes of "secret", with low costs.
constexpr std::string_view users =
    "# a comment\r\n"
    "\n"
    "sha256:$5$rounds=1000$saltsalt$eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2\n"
    "sha512:$6$rounds=1000$saltsalt$LAV5VE5Y7w1d73x1mFNspYWUpazfmwv2SoepNXNKJ/otop/"
    "Zok96Hr8Q13LEv0DRY/x8v0/crpIjl8NJSAqXV/\r\n"
    "bcrypt:$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n"
    "yescrypt:$y$j75$saltsalt$0gBD67sgmJgRX3RZ6wHHO7sHimQEWGCWN85o4Twogh2";

password_file parse(std::string_view text) {
    std::string problem;
    auto parsed = password_file::parse(text, problem);
    EXPECT_TRUE(parsed) << problem;
    return simplenet::or_throw(std::move(parsed));
}

std::string problem_of(std::string_view text) {
    std::string problem;
    const auto parsed = password_file::parse(text, problem);
    EXPECT_EQ(error_of(parsed), std::errc::invalid_argument);
    return problem;
}

TEST(password_file_test, the_right_password_of_a_user_matches) {
    const password_file file = parse(users);
    EXPECT_EQ(file.size(), 4U);
    for (const char* const user : {"sha256", "sha512", "bcrypt", "yescrypt"}) {
        EXPECT_TRUE(file.matches(user, "secret")) << user;
        EXPECT_FALSE(file.matches(user, "Secret")) << user;
        EXPECT_FALSE(file.matches(user, "")) << user;
    }
    EXPECT_FALSE(file.matches("nobody", "secret"));
    EXPECT_FALSE(file.matches("", ""));
    EXPECT_FALSE(parse("").matches("nobody", "secret"));
}

TEST(password_file_test, what_is_wrong_is_told_with_its_line) {
    const std::string good{"a:$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n"};
    EXPECT_THAT(problem_of(good + "b"), HasSubstr("line 2: no `user:hash`"));
    EXPECT_THAT(problem_of("\n\n:x"), HasSubstr("line 3: no `user:hash`"));
    EXPECT_THAT(problem_of("b:plain"), HasSubstr("line 1: the hash is neither"));
    EXPECT_THAT(problem_of("b:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="), HasSubstr("neither bcrypt"));
    EXPECT_THAT(problem_of("b:$apr1$abcdefgh$xxx"), HasSubstr("neither bcrypt"));
    EXPECT_THAT(problem_of("b:$2y$99$abc"), HasSubstr("malformed"));
    EXPECT_THAT(problem_of(good + good), HasSubstr("line 2: the user has a line already"));
}

TEST(password_file_test, a_hash_that_is_not_whole_is_malformed) {
    for (std::string hash : {"$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW",
                             "$5$rounds=1000$saltsalt$eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2",
                             "$y$j75$saltsalt$0gBD67sgmJgRX3RZ6wHHO7sHimQEWGCWN85o4Twogh2"}) {
        EXPECT_EQ(parse("a:" + hash).size(), 1U);
        EXPECT_THAT(problem_of("a:" + hash + "x"), HasSubstr("malformed")) << hash;
        hash.back() = ' ';
        EXPECT_THAT(problem_of("a:" + hash), HasSubstr("malformed")) << hash;
        hash.pop_back();
        EXPECT_THAT(problem_of("a:" + hash), HasSubstr("malformed")) << hash;
    }
}

// An unknown user used to take as long as the first one of the file, and each known user as long as
// its own hash: the time told names.
TEST(password_file_test, a_wrong_password_takes_as_long_for_every_user) {
    const std::string salt_8 =
        "$5$rounds=1000$saltsalt$eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2";
    const std::string bcrypt = "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
    const std::string same_kind = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrX";
    const std::string dearer = "$2b$05$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
    const std::string salt_4 = "$5$rounds=1000$salt$eKLZU9t9OoPWrqOQsoTIKG0aYkZ5rGOoOQhiIvoSWX2";
    const password_file mixed = parse("a:" + salt_8 + "\nb:" + bcrypt + "\nc:" + same_kind +
                                      "\nd:" + dearer + "\ne:" + salt_4 + "\n");

    EXPECT_EQ(mixed.kinds(), 4U);
    EXPECT_THAT(mixed.settings_for("a"), ElementsAre(salt_8, bcrypt, dearer, salt_4));
    EXPECT_THAT(mixed.settings_for("c"), ElementsAre(same_kind, salt_8, dearer, salt_4));
    EXPECT_THAT(mixed.settings_for("e"), ElementsAre(salt_4, salt_8, bcrypt, dearer));
    EXPECT_THAT(mixed.settings_for("nobody"), ElementsAre(salt_8, bcrypt, dearer, salt_4));
    EXPECT_EQ(parse("").kinds(), 0U);
}

TEST(password_file_test, a_hash_of_the_same_kind_is_nobody_elses_password) {
    const password_file file = parse(users);
    EXPECT_FALSE(file.matches("nobody", "secret"));
    EXPECT_FALSE(file.matches("", "secret"));
}

TEST(password_file_test, the_order_of_the_lines_means_nothing) {
    const std::string one = "a:$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";
    const std::string two = "b:$2y$05$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";
    EXPECT_EQ(parse(one + two), parse(two + one));
}

// Hashing once would take hours, by these rounds.
TEST(password_file_test, reading_hashes_nothing) {
    const std::string hash = "$6$rounds=999999999$saltsalt$" + std::string(86, 'a');
    EXPECT_EQ(parse("a:" + hash + "\nb:" + hash).size(), 2U);
}

TEST(password_file_test, files_that_cannot_be_read_are_errors) {
    const simplenet::testing::temporary_directory directory;
    std::string problem;
    EXPECT_EQ(error_of(password_file::read(directory / "none", problem)),
              std::errc::no_such_file_or_directory);
    EXPECT_EQ(error_of(password_file::read(directory / "", problem)), std::errc::is_a_directory);
    std::ofstream{directory / "users"} << users;
    EXPECT_TRUE(password_file::read(directory / "users", problem));
}

} // namespace
} // namespace httpd
