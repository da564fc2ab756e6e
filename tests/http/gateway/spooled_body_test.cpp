#include "http/gateway/spooled_body.hpp"
#include "support/backend_test.hpp"
#include "support/error_of.hpp"
#include "support/temporary_directory.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/http/errc.hpp>
#include <simplenet/time/deadline.hpp>
#include <simplenet/time/sleep.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace simplenet::v0::testing {
namespace {

using namespace std::chrono_literals;
using http::detail::spooled_body;

/// `size` bytes in pieces; then an end.
class text_source {
public:
    text_source(std::string text, std::size_t piece, std::error_code end = errc::end_of_stream)
        : text_{std::move(text)}
        , piece_{piece}
        , end_{end} {}
    task<result<std::size_t>> read_some(mutable_buffer into) {
        const std::size_t count = std::min({into.size(), piece_, text_.size() - at_});
        if (count == 0) co_return fail(end_);
        std::memcpy(into.data(), text_.data() + at_, count);
        at_ += count;
        co_return count;
    }

private:
    std::string text_;
    std::size_t piece_;
    std::size_t at_ = 0;
    std::error_code end_;
};

/// Text whose every part is different.
std::string numbers(std::size_t size) {
    std::string text;
    for (std::size_t each = 0; text.size() < size; ++each)
        text += std::to_string(each) + ' ';
    text.resize(size);
    return text;
}

task<std::string> text_of(spooled_body& body) {
    std::string text;
    std::string buffer(5000, '\0');
    for (;;) {
        const auto count = co_await body.read_some(buffer);
        if (!count) {
            EXPECT_EQ(error_of(count), errc::end_of_stream);
            co_return text;
        }
        text.append(buffer, 0, *count);
    }
}

class spooled_body_test : public backend_test {
protected:
    temporary_directory folder_;
    std::string path_ = folder_ / "";
};

TEST_P(spooled_body_test, bodies_of_any_size_can_be_read_twice) {
    for (const std::size_t size : {0, 1, 4096, 65535, 65536, 65537, 131072, 131073, 700000}) {
        for (const std::size_t piece : {1000, 65536}) {
            run([&]() -> task<> {
                const std::string text = numbers(size);
                text_source source{text, piece};
                spooled_body body{path_};

                EXPECT_TRUE(co_await body.fill(source));

                EXPECT_EQ(body.size(), size);
                EXPECT_EQ(body.is_in_memory(), size <= spooled_body::default_memory);
                EXPECT_EQ(co_await text_of(body), text);
                body.rewind();
                EXPECT_EQ(co_await text_of(body), text);
                body.rewind(size / 2);
                EXPECT_EQ(co_await text_of(body), text.substr(size / 2));
            });
        }
    }
}

TEST_P(spooled_body_test, the_file_has_no_name) {
    run([&]() -> task<> {
        text_source source{numbers(200000), 65536};
        spooled_body body{path_};
        EXPECT_TRUE(co_await body.fill(source));

        EXPECT_TRUE(std::filesystem::is_empty(path_));
    });
}

TEST_P(spooled_body_test, an_error_of_the_reader_leaves_nothing_to_read) {
    for (const std::size_t size : {100, 200000}) {
        run([&]() -> task<> {
            text_source source{numbers(size), 65536, http::errc::incomplete_message};
            spooled_body body{path_};

            const auto filled = co_await body.fill(source);

            EXPECT_EQ(error_of(filled), http::errc::incomplete_message);
            EXPECT_EQ(body.disk_status(), 0U);
            EXPECT_EQ(co_await text_of(body), "");
        });
    }
}

TEST_P(spooled_body_test, a_missing_directory_matters_to_large_bodies_only) {
    run([&]() -> task<> {
        const std::string nowhere = folder_ / "missing";
        text_source small{numbers(100), 100};
        spooled_body in_memory{nowhere};
        EXPECT_TRUE(co_await in_memory.fill(small));

        text_source large{numbers(200000), 65536};
        spooled_body in_file{nowhere};
        const auto filled = co_await in_file.fill(large);

        EXPECT_EQ(error_of(filled), std::errc::no_such_file_or_directory);
        EXPECT_EQ(in_file.disk_status(), 500U);
    });
}

/// No file may be larger than `bytes`.
class file_size_limit {
public:
    explicit file_size_limit(rlim_t bytes) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit now{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &now);
        handler_ = std::signal(SIGXFSZ, SIG_IGN);
    }
    file_size_limit(const file_size_limit&) = delete;
    file_size_limit& operator=(const file_size_limit&) = delete;
    ~file_size_limit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

private:
    rlimit before_{};
    void (*handler_)(int) = nullptr;
};

TEST_P(spooled_body_test, a_full_disk_is_told_as_507_and_nothing_looks_complete) {
    run([&]() -> task<> {
        text_source source{numbers(400000), 65536};
        spooled_body body{path_};
        const file_size_limit limit{100000};

        const auto filled = co_await body.fill(source);

        EXPECT_EQ(error_of(filled), std::errc::file_too_large);
        EXPECT_EQ(body.disk_status(), 507U);
        EXPECT_EQ(body.size(), 0U);
        EXPECT_EQ(co_await text_of(body), "");
    });
}

/// Never gives anything.
struct silent_source {
    task<result<std::size_t>> read_some(mutable_buffer) {
        const auto slept = co_await async_sleep(1h);
        co_return fail(slept);
    }
};

TEST_P(spooled_body_test, a_stop_ends_the_filling) {
    run([&]() -> task<> {
        silent_source source;
        spooled_body body{path_};
        task<result<>> filling = body.fill(source);

        const auto filled = co_await with_timeout(std::move(filling), 1ms);

        EXPECT_EQ(error_of(filled), errc::deadline_exceeded);
        EXPECT_EQ(body.disk_status(), 0U);
    });
}

INSTANTIATE_TEST_SUITE_P(backends, spooled_body_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0::testing
