// The page that shows a directory.

#include "http/files/listing.hpp"

#include "file_tree.hpp"
#include "support/backend_test.hpp"

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#if SIMPLENET_SEAMS
#include "support/fault_plan.hpp"
#endif

namespace simplenet::v0::http::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class listing_test : public ::testing::Test {
protected:
    [[nodiscard]] std::string page_of(std::string_view path, listing_options options = {}) const {
        const auto page = list_directory(tree_.root(), path, options);
        return page ? *page : page.error().message();
    }
    /// The targets of the links in the page.
    [[nodiscard]] std::vector<std::string> links(std::string_view path,
                                                 listing_options options = {}) const {
        static constexpr std::string_view mark = "href=\"";
        const std::string page = page_of(path, options);
        std::vector<std::string> found;
        for (std::size_t at = page.find(mark); at != page.npos; at = page.find(mark, at)) {
            at += mark.size();
            found.push_back(page.substr(at, page.find('"', at) - at));
        }
        return found;
    }

    testing::watchdog watchdog_;
    file_tree tree_;
};

TEST_F(listing_test, shows_directories_first_and_sorts_by_name) {
    for (const char* const name : {"b.txt", "a.txt", "z/file", "y/file", "B.txt"})
        tree_.write(name, "text");

    EXPECT_THAT(links(""), ElementsAre("./y/", "./z/", "./B.txt", "./a.txt", "./b.txt"));
    EXPECT_THAT(links("y"), ElementsAre("./file"));
    EXPECT_THAT(links("y", {.parent = true}), ElementsAre("../", "./file"));
}

TEST_F(listing_test, shows_sizes_and_dates) {
    tree_.write("a", std::string(1'234, 'x'));
    const timespec time[2]{{.tv_sec = 951'827'696, .tv_nsec = 0},
                           {.tv_sec = 951'827'696, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, tree_.path("a").c_str(), time, 0), 0);

    EXPECT_THAT(page_of(""), HasSubstr(">a</a></td><td>1234</td><td>2000-02-29 12:34</td></tr>"));
}

TEST_F(listing_test, no_name_becomes_markup_or_a_link_to_another_place) {
    for (const char* const name : {"<script>alert(1)</script", "\"onclick=x", "javascript:alert(1)",
                                   "a b&c'd", "?q#f", "100%25", "\xc3\xa4", "\xff\x01\n"})
        tree_.write(name, "text");

    EXPECT_THAT(links("<script>alert(1)<"), ElementsAre("./script"));
    EXPECT_THAT(links(""), ElementsAre("./%3Cscript%3Ealert%281%29%3C/", "./%22onclick%3Dx",
                                       "./100%2525", "./%3Fq%23f", "./a%20b%26c%27d",
                                       "./javascript%3Aalert%281%29", "./%C3%A4", "./%FF%01%0A"));
    const std::string page = page_of("", {.title = "/<b>\"x\"/"});
    EXPECT_THAT(page, Not(HasSubstr("<script>")));
    EXPECT_THAT(page, HasSubstr("<h1>/&lt;b&gt;&quot;x&quot;/</h1>"));
    EXPECT_THAT(page, HasSubstr(">a b&amp;c&#39;d</a>"));
    EXPECT_THAT(page, HasSubstr(">&#xfffd;&#xfffd;&#xfffd;</a>"));
}

TEST_F(listing_test, shows_what_a_request_could_open) {
    for (const char* const name : {".git/config", ".env", "a%2Fb", "file", "d/file"})
        tree_.write(name, "text");
    ASSERT_EQ(::mkfifo(tree_.path("fifo").c_str(), 0644), 0);
    tree_.link("in", "file");
    tree_.link("folder", "d");
    tree_.link("out", "../outside/secret");
    tree_.link("up", "..");
    tree_.link("nothing", "none");

    EXPECT_THAT(links(""), ElementsAre("./d/", "./folder/", "./file", "./in"));
    EXPECT_THAT(links("", {.rules = {.follow = symlinks::never}}), ElementsAre("./d/", "./file"));
    EXPECT_THAT(links("", {.rules = {.hidden = true}}),
                ElementsAre("./.git/", "./d/", "./folder/", "./.env", "./file", "./in"));
}

TEST_F(listing_test, a_long_page_is_cut_and_says_so) {
    for (int number = 0; number < 5; ++number)
        tree_.write("file" + std::to_string(number), "text");

    EXPECT_THAT(page_of("", {.most = 3}), HasSubstr("There are more than these 3 entries."));
    EXPECT_EQ(links("", {.most = 3}).size(), 3U);
    EXPECT_THAT(page_of("", {.most = 5}), Not(HasSubstr("There are more")));
}

TEST_F(listing_test, a_directory_of_many_entries_is_read_to_its_end) {
    for (int number = 0; number < 2'000; ++number)
        tree_.write("a file with a longer name, number " + std::to_string(number), "");

    EXPECT_EQ(links("").size(), 2'000U);
}

TEST_F(listing_test, lists_nothing_outside_of_the_root) {
    tree_.write("file", "text");
    tree_.write(".secret/file", "text");
    tree_.link("out", "../outside");

    for (const char* const path : {"out", "..", "/", "file", "none", ".secret"}) {
        EXPECT_FALSE(list_directory(tree_.root(), path, {})) << path;
        EXPECT_THAT(links(path), IsEmpty()) << path;
    }
    EXPECT_EQ(list_directory(tree_.root(), "file", {}).error(), std::errc::not_a_directory);
}

#if SIMPLENET_SEAMS
TEST_F(listing_test, an_entry_that_disappears_is_left_out) {
    for (const char* const name : {"a", "b", "c"})
        tree_.write(name, "text");
    testing::fault_plan plan;
    plan.fail(testing::call::fstatat, 1, ENOENT);

    EXPECT_EQ(links("").size(), 2U);
}

TEST_F(listing_test, a_directory_that_cannot_be_read_is_an_error) {
    tree_.write("a", "text");
    testing::fault_plan plan;
    plan.fail(testing::call::getdents, 1, EIO);

    EXPECT_EQ(list_directory(tree_.root(), "", {}).error(), std::errc::io_error);
}
#endif

} // namespace
} // namespace simplenet::v0::http::detail
