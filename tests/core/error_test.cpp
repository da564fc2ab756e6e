#include <simplenet/core/error.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

namespace {

using namespace simplenet;

// Properties on which other layers rely.
static_assert(std::is_error_code_enum_v<errc>);
static_assert(!std::is_error_condition_enum_v<errc>);
static_assert(std::is_same_v<result<>, std::expected<void, std::error_code>>);
static_assert(std::is_trivially_destructible_v<transfer_error>);
static_assert(std::is_convertible_v<transfer_error, std::error_code>);
static_assert(detail::failable<result<int>> && detail::failable<const transfer_result&>);
static_assert(!detail::failable<std::expected<int, std::string>> && !detail::failable<int>);
// A failed transfer reports the bytes it moved.
static_assert(!std::is_convertible_v<std::unexpected<std::error_code>, transfer_result>);

constexpr errc every_errc[] = {
    errc::end_of_stream,      errc::deadline_exceeded,   errc::name_not_found,
    errc::name_lookup_failed, errc::backend_unavailable, errc::queue_full,
    errc::limit_exceeded,
};

TEST(error_test, the_category_is_named_simplenet) {
    EXPECT_STREQ(error_category().name(), "simplenet");
    EXPECT_EQ(&error_category(), &error_category());
}

TEST(error_test, an_errc_is_an_error_code_of_the_category) {
    const std::error_code code = errc::queue_full;

    EXPECT_EQ(code.category(), error_category());
    EXPECT_EQ(code.value(), static_cast<int>(errc::queue_full));
    EXPECT_EQ(code, errc::queue_full);
    EXPECT_NE(code, errc::limit_exceeded);
}

TEST(error_test, no_errc_means_success) {
    for (const errc code : every_errc)
        EXPECT_TRUE(make_error_code(code)) << static_cast<int>(code);
}

TEST(error_test, every_errc_has_a_message_of_its_own) {
    EXPECT_EQ(make_error_code(errc::end_of_stream).message(), "end of stream");
    EXPECT_EQ(make_error_code(errc::deadline_exceeded).message(), "deadline exceeded");
    EXPECT_EQ(make_error_code(errc::name_not_found).message(), "name not found");
    EXPECT_EQ(make_error_code(errc::name_lookup_failed).message(), "name lookup failed");
    EXPECT_EQ(make_error_code(errc::backend_unavailable).message(), "backend unavailable");
    EXPECT_EQ(make_error_code(errc::queue_full).message(), "queue full");
    EXPECT_EQ(make_error_code(errc::limit_exceeded).message(), "limit exceeded");
}

TEST(error_test, an_unknown_value_has_a_message_with_its_number) {
    EXPECT_EQ(error_category().message(4711), "unknown simplenet error 4711");
}

TEST(error_test, errc_deadline_exceeded_equals_timed_out) {
    const std::error_code ours = errc::deadline_exceeded;
    const std::error_code kernels{ETIMEDOUT, std::system_category()};

    EXPECT_EQ(ours, std::errc::timed_out);
    EXPECT_EQ(kernels, std::errc::timed_out);
    EXPECT_NE(kernels, errc::deadline_exceeded);
}

TEST(error_test, only_the_deadline_has_an_equivalent_errno) {
    for (const errc code : every_errc) {
        const std::error_condition general = make_error_code(code).default_error_condition();
        const bool has_errno = general.category() == std::generic_category();

        EXPECT_EQ(has_errno, code == errc::deadline_exceeded) << make_error_code(code);
    }
}

TEST(error_test, fail_takes_every_kind_of_error) {
    const std::error_code reset{ECONNRESET, std::system_category()};
    const result<int> from_code = fail(reset);
    const result<int> from_ours = fail(errc::queue_full);
    const result<> from_errno = fail(std::errc::invalid_argument);

    EXPECT_EQ(from_code.error(), reset);
    EXPECT_EQ(from_ours.error(), errc::queue_full);
    EXPECT_EQ(from_errno.error(), std::errc::invalid_argument);
}

TEST(error_test, fail_passes_on_the_error_of_another_result) {
    const result<int> failed = fail(errc::name_not_found);
    const result<std::string> passed = fail(failed);
    const result<> from_temporary = fail(result<int>{fail(errc::queue_full)});

    EXPECT_EQ(passed.error(), errc::name_not_found);
    EXPECT_EQ(from_temporary.error(), errc::queue_full);
}

TEST(error_test, fail_passes_on_the_code_of_a_failed_transfer) {
    const transfer_result broken =
        std::unexpected{transfer_error{make_error_code(errc::end_of_stream), 12}};
    const result<> passed = fail(broken);

    EXPECT_EQ(passed.error(), errc::end_of_stream);
}

TEST(error_test, a_system_error_keeps_its_errno) {
    const result<> failed = fail(std::error_code{ECONNREFUSED, std::system_category()});

    EXPECT_EQ(failed.error().value(), ECONNREFUSED);
    EXPECT_EQ(failed.error().category(), std::system_category());
    EXPECT_EQ(failed.error(), std::errc::connection_refused);
}

TEST(error_test, or_throw_gives_the_value) {
    EXPECT_EQ(or_throw(result<int>{7}), 7);
    EXPECT_EQ(or_throw(transfer_result{9}), 9U);
    EXPECT_NO_THROW(or_throw(result<>{}));
}

TEST(error_test, or_throw_refers_to_the_value_of_a_named_result) {
    result<std::string> outcome{"text"};
    const result<std::string>& constant = outcome;

    EXPECT_EQ(&or_throw(outcome), &*outcome);
    static_assert(std::is_same_v<decltype(or_throw(outcome)), std::string&>);
    static_assert(std::is_same_v<decltype(or_throw(constant)), const std::string&>);
}

TEST(error_test, or_throw_moves_the_value_out_of_a_temporary) {
    auto value = or_throw(result<std::unique_ptr<int>>{std::make_unique<int>(3)});

    EXPECT_EQ(*value, 3);
    static_assert(std::is_same_v<decltype(or_throw(result<std::string>{})), std::string>);
}

TEST(error_test, or_throw_throws_a_system_error_with_the_code) {
    const transfer_result broken =
        std::unexpected{transfer_error{make_error_code(errc::end_of_stream), 12}};

    try {
        or_throw(broken);
        FAIL() << "nothing was thrown";
    } catch (const std::system_error& thrown) {
        EXPECT_EQ(thrown.code(), errc::end_of_stream);
    }
    EXPECT_THROW(or_throw(result<>{fail(errc::queue_full)}), std::system_error);
}

/// A category whose code has no equivalent in errno and means one of our errcs.
class foreign_category final : public std::error_category {
public:
    const char* name() const noexcept override { return "foreign"; }
    std::string message(int) const override { return "in words of its own"; }
    std::error_condition default_error_condition(int) const noexcept override {
        return {static_cast<int>(errc::name_not_found), simplenet::error_category()};
    }
};

TEST(error_test, a_code_of_another_category_can_mean_one_of_ours) {
    static const foreign_category foreign;
    const std::error_code code{42, foreign};

    EXPECT_TRUE(code == errc::name_not_found);
    EXPECT_TRUE(errc::name_not_found == code);
    EXPECT_TRUE(code != errc::name_lookup_failed);
    EXPECT_TRUE(transfer_error{code} == errc::name_not_found);
    EXPECT_FALSE(code == make_error_code(errc::name_not_found)); // two codes compare exactly
    EXPECT_EQ(code.message(), "in words of its own");
    EXPECT_FALSE(std::error_code{} == errc::end_of_stream);
    EXPECT_FALSE(std::error_code(1, std::system_category()) == errc::end_of_stream);
}

TEST(error_test, a_transfer_error_compares_like_its_code) {
    const transfer_error error{make_error_code(errc::deadline_exceeded), 5};

    EXPECT_TRUE(error == errc::deadline_exceeded);
    EXPECT_TRUE(errc::deadline_exceeded == error);
    EXPECT_TRUE(error == make_error_code(errc::deadline_exceeded));
    EXPECT_TRUE(error == std::errc::timed_out);
    EXPECT_TRUE(std::errc::timed_out == error);
    EXPECT_TRUE(error == std::make_error_condition(std::errc::timed_out));
    EXPECT_TRUE(error != errc::end_of_stream);
    EXPECT_TRUE(error != std::errc::connection_reset);
}

TEST(error_test, transfer_errors_with_equal_counts_are_equal) {
    const transfer_error five{make_error_code(errc::end_of_stream), 5};
    const transfer_error six{make_error_code(errc::end_of_stream), 6};

    EXPECT_TRUE(five == five);
    EXPECT_TRUE(five != six);
}

TEST(error_test, a_transfer_error_has_the_message_of_its_code) {
    const transfer_result outcome =
        std::unexpected{transfer_error{make_error_code(errc::end_of_stream), 12}};

    EXPECT_EQ(outcome.error().message(), make_error_code(errc::end_of_stream).message());
}

TEST(error_test, a_transfer_error_converts_to_its_code) {
    const transfer_error error{make_error_code(errc::end_of_stream)};
    const std::error_code code = error;

    EXPECT_EQ(code, errc::end_of_stream);
    EXPECT_EQ(error.transferred, 0U);
}

} // namespace
