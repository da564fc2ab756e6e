#include <simplenet/core/unique_fd.hpp>

#include <gtest/gtest.h>

#include <type_traits>

#include <fcntl.h>
#include <unistd.h>

namespace {

using simplenet::unique_fd;

static_assert(!std::is_copy_constructible_v<unique_fd> && !std::is_copy_assignable_v<unique_fd>);
static_assert(std::is_nothrow_move_constructible_v<unique_fd>);
static_assert(std::is_nothrow_move_assignable_v<unique_fd>);
static_assert(!std::is_convertible_v<int, unique_fd>);
static_assert(sizeof(unique_fd) == sizeof(int));

int open_null() {
    return ::open("/dev/null", O_RDWR | O_CLOEXEC);
}

bool is_open(int fd) {
    return ::fcntl(fd, F_GETFD) != -1;
}

TEST(unique_fd_test, owns_nothing_by_default) {
    const unique_fd none;

    EXPECT_FALSE(none);
    EXPECT_EQ(none.get(), -1);
}

TEST(unique_fd_test, a_negative_number_owns_nothing) {
    const unique_fd failed{-5};

    EXPECT_FALSE(failed);
    EXPECT_EQ(failed.get(), -1);
}

TEST(unique_fd_test, zero_is_a_descriptor) {
    unique_fd standard_input{0};

    EXPECT_TRUE(standard_input);
    EXPECT_EQ(standard_input.release(), 0);
}

TEST(unique_fd_test, the_destructor_closes) {
    const int fd = open_null();
    {
        const unique_fd owner{fd};
        EXPECT_TRUE(is_open(fd));
    }
    EXPECT_FALSE(is_open(fd));
}

TEST(unique_fd_test, release_leaves_the_descriptor_open) {
    unique_fd owner{open_null()};
    const int fd = owner.release();

    EXPECT_FALSE(owner);
    EXPECT_TRUE(is_open(fd));
    ::close(fd);
}

TEST(unique_fd_test, reset_closes_the_owned_descriptor) {
    const int fd = open_null();
    unique_fd owner{fd};

    owner.reset();

    EXPECT_FALSE(owner);
    EXPECT_FALSE(is_open(fd));
}

TEST(unique_fd_test, reset_takes_another_descriptor) {
    const int first = open_null();
    const int second = open_null();
    unique_fd owner{first};

    owner.reset(second);

    EXPECT_FALSE(is_open(first));
    EXPECT_EQ(owner.get(), second);
    EXPECT_TRUE(is_open(second));
}

TEST(unique_fd_test, reset_to_the_same_descriptor_keeps_it_open) {
    unique_fd owner{open_null()};

    owner.reset(owner.get());

    EXPECT_TRUE(is_open(owner.get()));
}

TEST(unique_fd_test, moving_transfers_the_descriptor) {
    unique_fd from{open_null()};
    const int fd = from.get();
    const unique_fd to{std::move(from)};

    EXPECT_EQ(to.get(), fd);
    EXPECT_FALSE(from); // NOLINT(bugprone-use-after-move): a moved-from owner owns nothing.
    EXPECT_TRUE(is_open(fd));
}

TEST(unique_fd_test, move_assignment_closes_the_previous_descriptor) {
    unique_fd from{open_null()};
    unique_fd to{open_null()};
    const int kept = from.get();
    const int replaced = to.get();

    to = std::move(from);

    EXPECT_EQ(to.get(), kept);
    EXPECT_FALSE(is_open(replaced));
}

TEST(unique_fd_test, moving_into_itself_changes_nothing) {
    unique_fd owner{open_null()};
    unique_fd& same = owner;

    owner = std::move(same);

    EXPECT_TRUE(is_open(owner.get()));
}

TEST(unique_fd_test, swap_exchanges_the_descriptors) {
    unique_fd left{open_null()};
    unique_fd right;
    const int fd = left.get();

    swap(left, right);

    EXPECT_FALSE(left);
    EXPECT_EQ(right.get(), fd);
}

} // namespace
