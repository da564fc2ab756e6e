// Opening beneath a root, in both ways: by openat2(2) and by walking.

#include "http/files/open_beneath.hpp"

#include "file_tree.hpp"
#include "support/backend_test.hpp"
#include "support/full_form.hpp"
#if SIMPLENET_SEAMS
#include "support/fault_plan.hpp"
#endif

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

namespace simplenet::v0::http::detail {
namespace {

using opening = result<opened> (*)(int, std::string_view, access, open_rules) noexcept;

/// What `path` leads to: the text of a file, "directory", or the name of an error.
std::string outcome_of(const result<opened>& found) {
    if (found) return found->is_directory() ? "directory" : text_of(found->fd.get());
    switch (found.error().value()) {
    case ENOENT:
        return "ENOENT";
    case ENOTDIR:
        return "ENOTDIR";
    case ELOOP:
        return "ELOOP";
    case EXDEV:
        return "EXDEV";
    case EACCES:
        return "EACCES";
    case EINVAL:
        return "EINVAL";
    case ENAMETOOLONG:
        return "ENAMETOOLONG";
    default:
        return found.error().message();
    }
}

class open_beneath_test : public ::testing::TestWithParam<opening> {
protected:
    [[nodiscard]] result<opened> open(std::string_view path, open_rules rules = {},
                                      access how = access::read) const {
        return GetParam()(tree_.root(), path, how, rules);
    }
    [[nodiscard]] std::string ask(std::string_view path, open_rules rules = {}) const {
        return outcome_of(open(path, rules));
    }

    struct expected {
        std::string_view path;
        std::string_view outcome;
    };
    void expect(std::initializer_list<expected> table, open_rules rules = {}) const {
        for (const expected& each : table)
            EXPECT_EQ(ask(each.path, rules), each.outcome) << each.path;
    }

    testing::watchdog watchdog_;
    file_tree tree_;
};

TEST_P(open_beneath_test, opens_files_and_directories) {
    tree_.write("a.txt", "a");
    tree_.write("dir/deep/b.txt", "b");

    expect({{"a.txt", "a"},
            {"dir/deep/b.txt", "b"},
            {"dir", "directory"},
            {"dir/deep", "directory"},
            {"", "directory"},
            {"b.txt", "ENOENT"},
            {"dir/none/b.txt", "ENOENT"},
            {"a.txt/b", "ENOTDIR"},
            {"a.txt%00", "ENOENT"},
            {"%2e%2e", "ENOENT"}});
}

TEST_P(open_beneath_test, refuses_what_is_not_a_relative_path) {
    using namespace std::string_view_literals;
    tree_.write("a.txt", "a");

    for (const auto path :
         {"/"sv, "/etc/passwd"sv, "//a.txt"sv, "."sv, ".."sv, "../outside/secret"sv, "./a.txt"sv,
          "dir/../a.txt"sv, "a.txt/"sv, "a.txt/."sv, "a.txt/.."sv, "dir//a"sv, "..%2Foutside"sv,
          "..%2foutside"sv, "a%2Fb"sv, "a.txt\0"sv, "a.txt\0.html"sv, "\0"sv}) {
        EXPECT_EQ(ask(path), "EINVAL") << path;
        EXPECT_EQ(ask(path, {.hidden = true}), "EINVAL") << path;
    }
    expect({{"...", "ENOENT"},
            {"..a", "ENOENT"},
            {"a..", "ENOENT"},
            {"%2", "ENOENT"},
            {"%25", "ENOENT"}});
}

TEST_P(open_beneath_test, hidden_names_are_missing_unless_they_are_asked_for) {
    for (const char* const name : {".git/config", "dir/.env", "dir/.well-known/a", ".well-knownx",
                                   ".well-known/.a", ".well-known/acme"})
        tree_.write(name, "text");

    expect({{".git", "ENOENT"},
            {".git/config", "ENOENT"},
            {"dir/.env", "ENOENT"},
            {"dir/.well-known/a", "ENOENT"},
            {".well-knownx", "ENOENT"},
            {".well-known/.a", "ENOENT"},
            {".well-known", "directory"},
            {".well-known/acme", "text"}});
    expect({{".git/config", "text"}, {"dir/.env", "text"}, {".well-known/.a", "text"}},
           {.hidden = true});
}

TEST_P(open_beneath_test, follows_links_that_stay_beneath_the_root) {
    tree_.write("dir/deep/b.txt", "b");
    tree_.write(".secret/c", "c");
    const std::pair<const char*, const char*> links[]{{"file", "dir/deep/b.txt"},
                                                      {"folder", "dir/"},
                                                      {"dir/up", "../dir/./deep//.././deep/b.txt"},
                                                      {"dir/root", ".."},
                                                      {"twice", "folder/root/file"},
                                                      {"slashed", "dir/deep/b.txt/"},
                                                      {"dotted", "dir/deep/b.txt/."},
                                                      {"hidden", ".secret/c"},
                                                      {"here", "."}};
    for (const auto& [name, target] : links)
        tree_.link(name, target);

    expect({{"file", "b"},
            {"folder", "directory"},
            {"folder/deep/b.txt", "b"},
            {"dir/up", "b"},
            {"dir/root", "directory"},
            {"dir/root/dir/root/file", "b"},
            {"twice", "b"},
            {"here/here/file", "b"},
            {"hidden", "c"},
            {"slashed", "ENOTDIR"},
            {"dotted", "ENOTDIR"},
            {"file/x", "ENOTDIR"}});
}

TEST_P(open_beneath_test, refuses_links_that_leave_the_root) {
    tree_.write("dir/b.txt", "b");
    tree_.link("up", "..");
    tree_.link("secret", "../outside/secret");
    tree_.link("back", "../root/dir/b.txt"); // leads back, but passes through outside
    tree_.link("dir/far", "../../outside/secret");
    tree_.link("absolute", "/etc/passwd");
    tree_.link("inside", tree_.path("dir/b.txt"));
    tree_.link("slash", "/");
    tree_.link("null", "/dev/null");
    tree_.link("many", "../../../../../../../../../../etc/passwd");

    for (const char* const path :
         {"up", "up/outside/secret", "secret", "back", "dir/far", "absolute", "inside", "slash",
          "slash/etc/passwd", "null", "many"}) {
        EXPECT_EQ(ask(path), "EXDEV") << path;
        EXPECT_TRUE(is_missing(open(path).error())) << path;
    }
}

TEST_P(open_beneath_test, refuses_links_without_an_end) {
    tree_.write("file", "text");
    tree_.link("self", "self");
    tree_.link("one", "two");
    tree_.link("two", "one");
    tree_.link("nothing", "none");
    tree_.link("l1", "file");
    for (int number = 2; number <= 41; ++number)
        tree_.link("l" + std::to_string(number), "l" + std::to_string(number - 1));

    expect({{"self", "ELOOP"},
            {"self/x", "ELOOP"},
            {"one", "ELOOP"},
            {"nothing", "ENOENT"},
            {"l40", "text"}, // path_resolution(7): 40 links
            {"l41", "ELOOP"}});
}

TEST_P(open_beneath_test, follows_no_link_if_that_is_the_policy) {
    tree_.write("dir/file", "text");
    tree_.link("link", "dir/file");
    tree_.link("folder", "dir");

    expect({{"dir/file", "text"}, {"link", "ELOOP"}, {"folder", "ELOOP"}, {"folder/file", "ELOOP"}},
           {.follow = symlinks::never});
}

TEST_P(open_beneath_test, neither_waits_for_a_fifo_nor_opens_sockets_and_devices) {
    ASSERT_EQ(::mkfifo(tree_.path("fifo").c_str(), 0644), 0);
    const unique_fd listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
    tree_.path("socket").copy(name.sun_path, sizeof name.sun_path - 1);
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
    const bool device = ::mknod(tree_.path("null").c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0;
    tree_.link("link", "fifo");

    for (const access how : {access::read, access::look}) {
        EXPECT_EQ(outcome_of(open("fifo", {}, how)), "EACCES");
        EXPECT_EQ(outcome_of(open("link", {}, how)), "EACCES");
        EXPECT_EQ(outcome_of(open("socket", {}, how)), "EACCES");
        if (!device) continue;
        EXPECT_EQ(outcome_of(open("null", {}, how)), "EACCES");
    }
    EXPECT_EQ(ask("fifo/x"), "ENOTDIR");
}

TEST_P(open_beneath_test, follows_no_magic_link) {
    auto proc = open_root("/proc/self");
    ASSERT_TRUE(proc) << proc.error().message();

    for (const char* const path : {"cwd", "exe", "root/etc/passwd", "fd/0"}) {
        const auto found = GetParam()(proc->get(), path, access::read, {});
        EXPECT_FALSE(found) << path;
    }
    EXPECT_TRUE(GetParam()(proc->get(), "status", access::read, {}));
}

TEST_P(open_beneath_test, refuses_names_that_are_too_long) {
    const std::string name(256, 'n');
    std::string path = "d";
    while (path.size() < 4096)
        path += "/d";

    EXPECT_EQ(ask(name), "ENAMETOOLONG");
    EXPECT_EQ(ask(path), "ENAMETOOLONG");
    EXPECT_EQ(ask(path.substr(0, 4095)), "ENOENT");
    EXPECT_TRUE(is_missing(open(name).error()));
}

/// A thread without the privileges of root (credentials(7): they follow the file system's user).
class without_privileges {
public:
    without_privileges() { ::setfsuid(65534); }
    without_privileges(const without_privileges&) = delete;
    without_privileges& operator=(const without_privileges&) = delete;
    ~without_privileges() { ::setfsuid(::geteuid()); }
};

TEST_P(open_beneath_test, reports_missing_permissions) {
    tree_.write("locked/file", "text");
    tree_.write("listed/file", "text");
    tree_.write("private", "text");
    tree_.link("dots", "listed/..");
    tree_.link("dot", "listed/.");
    ::chmod(tree_.path("").c_str(), 0755);
    ::chmod(tree_.path("locked").c_str(), 0);
    ::chmod(tree_.path("listed").c_str(), 0444);
    ::chmod(tree_.path("private").c_str(), 0);

    if (::geteuid() == 0) {
        const without_privileges now;
        expect({{"locked", "EACCES"},
                {"locked/file", "EACCES"},
                {"listed", "directory"},
                {"listed/file", "EACCES"},
                {"dots", "EACCES"},
                {"dot", "EACCES"},
                {"private", "EACCES"}});
        EXPECT_TRUE(open("private", {}, access::look));
        EXPECT_TRUE(open("locked", {}, access::look));
    }
    ::chmod(tree_.path("locked").c_str(), 0755);
    ::chmod(tree_.path("listed").c_str(), 0755);
}

TEST_P(open_beneath_test, follows_no_foreign_link_in_a_shared_directory) {
    int protection = 0;
    std::ifstream{"/proc/sys/fs/protected_symlinks"} >> protection;
    if (::geteuid() != 0 || protection == 0) GTEST_SKIP() << "needs root, and the protection";
    tree_.write("file", "text");
    tree_.directory("shared");
    tree_.link("shared/own", "../file");
    tree_.link("shared/foreign", "../file");
    ASSERT_EQ(::lchown(tree_.path("shared/foreign").c_str(), 65534, 65534), 0);
    ASSERT_EQ(::chmod(tree_.path("shared").c_str(), 01777), 0);

    expect({{"shared/own", "text"}, {"shared/foreign", "EACCES"}});
}

TEST_P(open_beneath_test, a_look_opens_nothing_for_reading) {
    tree_.write("file", "text");
    tree_.link("link", "file");

    const auto found = open("link", {}, access::look);

    ASSERT_TRUE(found);
    EXPECT_EQ(found->status.st_size, 4);
    EXPECT_TRUE(S_ISREG(found->status.st_mode));
    EXPECT_EQ(text_of(found->fd.get()), "unreadable");
}

TEST_P(open_beneath_test, descriptors_are_closed_on_exec_and_none_is_left) {
    tree_.write("a/b/c", "text");
    tree_.link("a/b/up", "../../a/b/../b/c");
    const int before = ::dup(0);
    ::close(before);

    {
        const auto found = open("a/b/up");
        ASSERT_TRUE(found);
        EXPECT_NE(::fcntl(found->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    }

    const int after = ::dup(0);
    ::close(after);
    EXPECT_EQ(after, before);
}

/// Renames in a thread of its own until destroyed.
class renaming {
public:
    template <class Rename>
    explicit renaming(Rename rename)
        : thread_{[this, rename] {
            while (!over_.load(std::memory_order_relaxed)) {
                rename();
                ++rounds_;
            }
        }} {}
    renaming(const renaming&) = delete;
    renaming& operator=(const renaming&) = delete;
    ~renaming() {
        over_ = true;
        thread_.join();
    }
    [[nodiscard]] unsigned rounds() const noexcept { return rounds_; }

private:
    std::atomic<bool> over_ = false;
    std::atomic<unsigned> rounds_ = 0;
    std::thread thread_;
};

constexpr int race_rounds = 20'000;

TEST_P(open_beneath_test, a_directory_swapped_for_a_link_never_leads_out) {
    tree_.write("dir/secret", "inside");
    tree_.link("link", "../outside");
    const std::string dir = tree_.path("dir");
    const std::string link = tree_.path("link");
    int inside = 0;

    {
        const renaming swapped{
            [&] { ::renameat2(AT_FDCWD, dir.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE); }};
        for (int round = 0; round < race_rounds || swapped.rounds() < 100; ++round) {
            const std::string text = ask("dir/secret");
            EXPECT_TRUE(text == "inside" || text == "EXDEV" || text == "EAGAIN") << text;
            inside += text == "inside" ? 1 : 0;
        }
    }

    EXPECT_GT(inside, 0);
}

TEST_P(open_beneath_test, a_directory_moved_out_while_a_link_climbs_never_leads_out) {
    tree_.write("file", "inside");
    tree_.write("d/sub/x", "inside");
    tree_.write("../file", "outside");
    tree_.link("via", "d/sub/../../file");
    tree_.directory("../outside/d");
    const std::string here = tree_.path("d/sub");
    const std::string there = tree_.path("../outside/sub");

    int inside = 0;
    {
        const renaming moved{[&] {
            ::rename(here.c_str(), there.c_str());
            ::rename(there.c_str(), here.c_str());
        }};
        for (int round = 0; round < race_rounds || moved.rounds() < 100; ++round) {
            const std::string text = ask("via");
            EXPECT_NE(text, "outside");
            inside += text == "inside" ? 1 : 0;
        }
    }

    EXPECT_GT(inside, 0);
}

const auto name_of_way = [](const auto& way) {
    return std::string{way.param == &open_beneath ? "openat2" : "walk"};
};
INSTANTIATE_TEST_SUITE_P(ways, open_beneath_test, ::testing::Values(&open_beneath, &walk_beneath),
                         name_of_way);

#if SIMPLENET_SEAMS
/// Runs `action` before the `index`-th openat(2).
class before_openat final : public simplenet::detail::sys::interceptor {
public:
    before_openat(int index, std::function<void()> action)
        : left_{index}
        , action_{std::move(action)} {}

private:
    long on_call(simplenet::detail::sys::pending_call& made) noexcept override {
        if (made.which() == simplenet::detail::sys::call::openat && left_-- == 0) action_();
        return made.make();
    }
    int left_;
    std::function<void()> action_;
};

TEST(walk_beneath_test, notices_at_any_step_that_its_directory_was_moved_out) {
    for (int step = 0; step < 12; ++step) {
        const file_tree tree;
        tree.write("d/e/name", "inside");
        before_openat move{step, [&] {
                               tree.rename("d/e", "../outside/e");
                               tree.rename("../outside/secret", "../outside/e/name");
                           }};
        const simplenet::detail::sys::intercepting installed{move};

        const auto found = walk_beneath(tree.root(), "d/e/name", access::read, {});

        EXPECT_NE(outcome_of(found), "outside") << step;
        EXPECT_EQ(found.has_value(), step > 4) << step; // it was over
    }
}

TEST(walk_beneath_test, a_link_that_takes_the_place_of_a_file_gets_the_treatment_of_a_link) {
    const std::pair<const char*, const char*> table[]{{"other", "new"},
                                                      {"../outside/secret", "EXDEV"}};
    for (const auto& [target, outcome] : table) {
        const file_tree tree;
        tree.write("name", "old");
        tree.write("other", "new");
        tree.link("link", target);
        before_openat swap{1, [&] { tree.rename("link", "name"); }};
        const simplenet::detail::sys::intercepting installed{swap};

        EXPECT_EQ(outcome_of(walk_beneath(tree.root(), "name", access::read, {})), outcome);
    }
}

TEST(openat2_test, walks_where_the_kernel_or_a_sandbox_refuses_openat2) {
    const file_tree tree;
    tree.write("d/name", "text");
    tree.link("up", "d/../d/name");
    for (const int error : {ENOSYS, EPERM, EAGAIN}) {
        testing::fault_plan plan;
        plan.fail(testing::call::openat2, 0, error, testing::from_then_on);

        EXPECT_EQ(outcome_of(open_beneath(tree.root(), "up", access::read, {})), "text");
        EXPECT_EQ(outcome_of(open_beneath(tree.root(), "none", access::read, {})), "ENOENT");
    }
}

TEST(openat2_test, tries_again_when_a_rename_raced) {
    const file_tree tree;
    tree.write("name", "text");
    testing::fault_plan plan;
    plan.fail(testing::call::openat2, 0, EAGAIN, 3);

    EXPECT_EQ(outcome_of(open_beneath(tree.root(), "name", access::read, {})), "text");
    EXPECT_EQ(plan.count(testing::call::openat), 0U);
}
#endif

// Both ways, in trees of random directories, files and links.

class random_tree {
public:
    explicit random_tree(std::uint32_t seed)
        : random_{seed} {
        std::vector<std::string> directories{""};
        for (int entry = 0; entry < 24; ++entry) {
            const std::string name = directories[below(directories.size())] + name_at(below(5));
            switch (below(3)) {
            case 0:
                if (::mkdir(tree_.path(name).c_str(), 0755) == 0) directories.push_back(name + "/");
                break;
            case 1:
                if (!std::filesystem::exists(std::filesystem::symlink_status(tree_.path(name)))) {
                    tree_.write(name, std::to_string(entry));
                }
                break;
            default:
                static_cast<void>(!::symlink(target().c_str(), tree_.path(name).c_str()));
            }
        }
    }

    std::string path() {
        std::string made = name_at(below(5));
        for (std::size_t more = below(4); more > 0; --more)
            made += '/' + name_at(below(5));
        return made;
    }
    [[nodiscard]] int root() const noexcept { return tree_.root(); }

private:
    std::size_t below(std::size_t limit) { return random_() % limit; }
    static std::string name_at(std::size_t at) { return {static_cast<char>('a' + at)}; }
    std::string target() {
        static constexpr std::string_view parts[]{"a", "b", "c", "d", "e", "..", "..", ".", ""};
        std::string made{parts[below(std::size(parts))]};
        for (std::size_t more = below(4); more > 0; --more)
            made.append("/").append(parts[below(std::size(parts))]);
        return made.empty() ? "." : made;
    }

    std::mt19937 random_;
    file_tree tree_;
};

TEST(walk_beneath_test, agrees_with_openat2_in_random_trees) {
    const testing::watchdog watchdog;
    const int trees = testing::full_form() ? 5'000 : 300;
    int found = 0;
    for (int seed = 0; seed < trees; ++seed) {
        random_tree tree{static_cast<std::uint32_t>(seed)};
        testing::watchdog::restart();
        for (int ask = 0; ask < 60; ++ask) {
            const std::string path = tree.path();
            const open_rules rules{.follow = ask % 5 == 0 ? symlinks::never : symlinks::beneath};
            const access how = ask % 2 == 0 ? access::read : access::look;
            const auto kernel = open_beneath(tree.root(), path, how, rules);
            const auto walked = walk_beneath(tree.root(), path, how, rules);

            ASSERT_EQ(kernel.has_value(), walked.has_value()) << "seed " << seed << ": " << path;
            if (!kernel) {
                ASSERT_EQ(kernel.error(), walked.error()) << "seed " << seed << ": " << path;
                continue;
            }
            ++found;
            ASSERT_EQ(kernel->status.st_ino, walked->status.st_ino) << path;
        }
    }
    EXPECT_GT(found, trees);
}

TEST(status_of_test, tells_the_client_what_it_may_know) {
    const std::pair<int, unsigned> table[]{
        {ENOENT, 404}, {ENOTDIR, 404}, {ELOOP, 404},  {EXDEV, 404},  {ENAMETOOLONG, 404},
        {EINVAL, 404}, {EACCES, 403},  {EMFILE, 503}, {ENFILE, 503}, {ENOMEM, 503},
        {EAGAIN, 503}, {EIO, 500},     {EPERM, 500}};
    for (const auto& [error, status] : table) {
        EXPECT_EQ(status_of({error, std::system_category()}), status) << error;
        EXPECT_EQ(status_of({error, std::generic_category()}), status) << error;
    }
    EXPECT_FALSE(is_missing(make_error_code(errc::end_of_stream)));
}

TEST(open_root_test, opens_directories_only) {
    const file_tree tree;
    tree.write("file", "text");
    tree.link("link", "../outside");
    using namespace std::string_view_literals;

    EXPECT_TRUE(open_root(tree.path("link")));
    EXPECT_EQ(open_root(tree.path("file")).error(), std::errc::not_a_directory);
    EXPECT_EQ(open_root(tree.path("none")).error(), std::errc::no_such_file_or_directory);
    EXPECT_EQ(open_root("/tmp\0x"sv).error(), std::errc::invalid_argument);
    EXPECT_EQ(open_root(std::string(5'000, 'x')).error(), std::errc::filename_too_long);
}

} // namespace
} // namespace simplenet::v0::http::detail
