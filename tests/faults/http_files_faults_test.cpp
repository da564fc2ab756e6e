// Faults in every call, completion and allocation of opening files for HTTP, of their cache, and of
// pages of directories.

#include "http/files/file_cache.hpp"
#include "http/files/file_tree.hpp"
#include "http/files/listing.hpp"
#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <simplenet/coro/or_return.hpp>
#include <simplenet/runtime/run_blocking.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <sys/stat.h>

namespace simplenet::v0::http::detail {
namespace {

using namespace std::chrono_literals;
using testing::backend_name;
using testing::call;
using testing::fault_scenario;

/// All files changed for the last time an hour before they really did, so that a second lookup only
/// compares.
class hour_old_files final : public simplenet::detail::sys::interceptor {
    long on_call(simplenet::detail::sys::pending_call& made) noexcept override {
        const long outcome = made.make();
        if (made.which() == call::fstat && outcome == 0) {
            made.argument<struct stat*>(1)->st_ctim.tv_sec -= 3600;
        }
        return outcome;
    }
    simplenet::detail::sys::intercepting installed_{*this};
};

class http_files_faults_test : public testing::fail_everywhere_test {
protected:
    http_files_faults_test() {
        tree_.write("d/small", "small");
        tree_.write("d/large", std::string(100, 'x'));
        tree_.write("d/small.gz", "gzip");
        tree_.link("link", "d/../d/small");
        path_ = tree_.path("");
        // A thread of run_blocking() starts when the others are busy, and keeps memory that it
        // frees.
        expect_caches();
    }

public:
    static inline std::string path_; // for the scenarios

private:
    file_tree tree_;
    hour_old_files aged_;
};

/// Threads outlive coroutines of this one, and free their last memory.
class files_play : public fault_scenario {
public:
    [[nodiscard]] bool crosses_threads() const override { return true; }

protected:
    static result<file_cache::root_ref> open_the_root() {
        auto root = open_root(http_files_faults_test::path_);
        if (!root) return fail(root);
        return std::make_shared<const unique_fd>(*std::move(root));
    }
};

class opening_files : public files_play {
    task<result<std::string>> play() override {
        auto root = co_await or_return(open_the_root());
        file_cache cache{std::move(root), {.small_file = 50, .revalidate_after = 0s}};
        std::string got;
        for (const char* const path : {"link", "d/large", "link", "d/large", "d"}) {
            auto opening = cache.open(path);
            const served_ref file = co_await or_return(co_await std::move(opening));
            got += file->is_directory      ? "directory"
                   : file->plain.in_memory ? file->plain.contents
                                           : text_of(file->plain.fd.get());
        }
        co_return got;
    }
};
TEST_P(http_files_faults_test, file_cache) {
    fail_everywhere<opening_files>();
}

class walking : public files_play {
    task<result<std::string>> play() override {
        const auto root = co_await or_return(open_the_root());
        auto walk = [](int directory) { return walk_beneath(directory, "link", access::read, {}); };
        auto walked = run_blocking(walk, root->get());
        const opened found = co_await or_return(co_await std::move(walked));
        co_return text_of(found.fd.get());
    }
};
TEST_P(http_files_faults_test, walk_beneath) {
    fail_everywhere<walking>();
}

class listing_a_directory : public files_play {
    task<result<std::string>> play() override {
        const auto root = co_await or_return(open_the_root());
        auto list = [](int directory) { return list_directory(directory, "", {}); };
        auto listed = run_blocking(list, root->get());
        const std::string page = co_await or_return(co_await std::move(listed));
        co_return testing::told(page.contains("<table>"), page.ends_with("</html>\n"));
    }
};
TEST_P(http_files_faults_test, list_directory) {
    fail_everywhere<listing_a_directory>();
}

INSTANTIATE_TEST_SUITE_P(backends, http_files_faults_test, testing::real_backends, backend_name);

} // namespace
} // namespace simplenet::v0::http::detail
