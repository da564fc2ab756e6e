#include <simplenet/core/detail/intrusive_list.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

namespace {

using simplenet::detail::intrusive_list;
using simplenet::detail::list_hook;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct by_age;

struct element : list_hook<>, list_hook<by_age> {
    explicit element(int number)
        : number{number} {}

    int number;
};

using plain_hook = list_hook<>;
using list = intrusive_list<element>;

static_assert(!std::is_copy_constructible_v<list> && !std::is_move_constructible_v<list>);
static_assert(!std::is_copy_constructible_v<plain_hook>);

bool linked(const element& one) {
    return one.plain_hook::linked();
}

template <class List>
std::vector<int> numbers(List& of) {
    std::vector<int> seen;
    of.for_each([&](element& one) { seen.push_back(one.number); });
    return seen;
}

class intrusive_list_test : public ::testing::Test {
protected:
    element one{1};
    element two{2};
    element three{3};
    list elements;
};

TEST_F(intrusive_list_test, a_new_list_is_empty) {
    EXPECT_TRUE(elements.empty());
    EXPECT_FALSE(linked(one));
    EXPECT_THAT(numbers(elements), IsEmpty());
}

TEST_F(intrusive_list_test, push_back_keeps_the_order) {
    elements.push_back(one);
    elements.push_back(two);
    elements.push_back(three);

    EXPECT_THAT(numbers(elements), ElementsAre(1, 2, 3));
    EXPECT_EQ(&elements.front(), &one);
    EXPECT_EQ(&elements.back(), &three);
    EXPECT_TRUE(linked(two));
}

TEST_F(intrusive_list_test, push_front_reverses_the_order) {
    elements.push_front(one);
    elements.push_front(two);

    EXPECT_THAT(numbers(elements), ElementsAre(2, 1));
}

TEST_F(intrusive_list_test, pop_front_unlinks_the_first) {
    elements.push_back(one);
    elements.push_back(two);

    EXPECT_EQ(&elements.pop_front(), &one);

    EXPECT_FALSE(linked(one));
    EXPECT_THAT(numbers(elements), ElementsAre(2));
}

TEST_F(intrusive_list_test, an_element_leaves_without_knowing_the_list) {
    elements.push_back(one);
    elements.push_back(two);
    elements.push_back(three);

    two.plain_hook::unlink();

    EXPECT_THAT(numbers(elements), ElementsAre(1, 3));
}

TEST_F(intrusive_list_test, unlinking_an_element_in_no_list_does_nothing) {
    one.plain_hook::unlink();

    EXPECT_FALSE(linked(one));
}

TEST_F(intrusive_list_test, an_element_can_be_inserted_again) {
    elements.push_back(one);
    elements.push_back(two);

    elements.push_back(elements.pop_front());

    EXPECT_THAT(numbers(elements), ElementsAre(2, 1));
}

TEST_F(intrusive_list_test, a_destroyed_element_leaves_its_list) {
    auto dying = std::make_unique<element>(4);
    elements.push_back(one);
    elements.push_back(*dying);
    elements.push_back(two);

    dying.reset();

    EXPECT_THAT(numbers(elements), ElementsAre(1, 2));
}

TEST_F(intrusive_list_test, a_destroyed_list_unlinks_its_elements) {
    {
        list dying;
        dying.push_back(one);
        dying.push_back(two);
    }
    EXPECT_FALSE(linked(one));
    EXPECT_FALSE(linked(two));
}

TEST_F(intrusive_list_test, tags_let_an_element_be_in_two_lists) {
    intrusive_list<element, by_age> ages;
    elements.push_back(one);
    elements.push_back(two);
    ages.push_back(two);
    ages.push_back(one);

    elements.pop_front();

    EXPECT_THAT(numbers(elements), ElementsAre(2));
    EXPECT_THAT(numbers(ages), ElementsAre(2, 1));
}

TEST_F(intrusive_list_test, splice_back_appends_all_elements) {
    list other;
    elements.push_back(one);
    other.push_back(two);
    other.push_back(three);

    elements.splice_back(other);

    EXPECT_THAT(numbers(elements), ElementsAre(1, 2, 3));
    EXPECT_EQ(&elements.back(), &three);
    EXPECT_TRUE(other.empty());
}

TEST_F(intrusive_list_test, both_lists_are_usable_after_splice_back) {
    list other;
    other.push_back(one);

    elements.splice_back(other);
    other.push_back(two);
    one.plain_hook::unlink();
    elements.push_back(three);

    EXPECT_THAT(numbers(elements), ElementsAre(3));
    EXPECT_THAT(numbers(other), ElementsAre(2));
}

TEST_F(intrusive_list_test, splicing_an_empty_list_changes_nothing) {
    list other;
    elements.push_back(one);

    elements.splice_back(other);

    EXPECT_THAT(numbers(elements), ElementsAre(1));
}

TEST_F(intrusive_list_test, splicing_a_list_to_itself_changes_nothing) {
    elements.push_back(one);
    elements.push_back(two);

    elements.splice_back(elements);

    EXPECT_THAT(numbers(elements), ElementsAre(1, 2));
}

TEST_F(intrusive_list_test, a_visitor_may_unlink_the_element) {
    elements.push_back(one);
    elements.push_back(two);
    elements.push_back(three);

    elements.for_each([](element& each) {
        if (each.number != 2) each.plain_hook::unlink();
    });

    EXPECT_THAT(numbers(elements), ElementsAre(2));
}

TEST_F(intrusive_list_test, a_visitor_may_destroy_the_element) {
    std::array owned{std::make_unique<element>(0), std::make_unique<element>(1)};
    elements.push_back(*owned[0]);
    elements.push_back(*owned[1]);

    elements.for_each([&](element& each) { owned[std::size_t(each.number)].reset(); });

    EXPECT_TRUE(elements.empty());
}

#ifndef NDEBUG
TEST_F(intrusive_list_test, inserting_an_element_twice_stops_a_debug_build) {
    elements.push_back(one);

    EXPECT_DEATH(elements.push_back(one), "an element can be in one list at a time");
}

TEST_F(intrusive_list_test, front_of_an_empty_list_stops_a_debug_build) {
    EXPECT_DEATH((void)elements.front(), "an empty list has no first element");
    EXPECT_DEATH((void)elements.back(), "an empty list has no last element");
    EXPECT_DEATH(elements.pop_front(), "an empty list has no first element");
}
#endif

} // namespace
