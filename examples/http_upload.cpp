// Takes uploads of any size into a directory: PUT /NAME. GET / tells how far they are.
// Lesson: a body is read as it comes, and the disk is written where a thread may block; a file
// appears under its name only when it is complete.

#include "http_serving.hpp"

#include <simplenet/http.hpp>
#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <list>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace simplenet;

namespace {

constexpr std::size_t block_size = std::size_t{256} * 1024; // of one write(2)

std::error_code last_error() {
    return {errno, std::system_category()};
}

// --- files ---------------------------------------------------------------------------------------

/// Letters, digits, `.`, `-` and `_`, and no dot at the beginning: no path, no hidden file, and not
/// the name of an incomplete one.
bool is_good_name(std::string_view name) {
    constexpr std::string_view good =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_";
    return !name.empty() && name.size() <= 100 && name.front() != '.' &&
           name.find_first_not_of(good) == std::string_view::npos;
}

//! [file]
/// A file with a temporary name, which is removed unless it is published. Its functions block.
class new_file {
public:
    static result<new_file> create(int directory) {
        static std::atomic<unsigned> number = 0;
        for (;;) {
            std::string name =
                ".upload-" + std::to_string(::getpid()) + '-' + std::to_string(number.fetch_add(1));
            unique_fd file{
                ::openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
            if (file) return new_file{directory, std::move(name), std::move(file)};
            if (errno != EEXIST) return fail(last_error()); // else: left behind by a crash
        }
    }
    new_file(new_file&& other) noexcept = default;
    new_file& operator=(new_file&&) = delete;
    ~new_file() {
        if (file_) ::unlinkat(directory_, name_.c_str(), 0);
    }

    result<> write(std::span<const std::byte> bytes) {
        while (!bytes.empty()) {
            const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return fail(last_error());
            bytes = bytes.subspan(static_cast<std::size_t>(count));
        }
        return {};
    }
    /// Gives the file its name, in place of an older one. True: there was none.
    result<bool> publish(const std::string& name) {
        struct stat unused{};
        const bool is_first =
            ::fstatat(directory_, name.c_str(), &unused, AT_SYMLINK_NOFOLLOW) != 0;
        // The contents reach the disk before the name does: after a power failure the name leads
        // to the old file or to the whole new one.
        if (::fsync(file_.get()) != 0 ||
            ::renameat(directory_, name_.c_str(), directory_, name.c_str()) != 0 ||
            ::fsync(directory_) != 0) {
            return fail(last_error());
        }
        file_.reset();
        return is_first;
    }

private:
    new_file(int directory, std::string name, unique_fd file) noexcept
        : directory_{directory}
        , name_{std::move(name)}
        , file_{std::move(file)} {}

    int directory_; // borrowed
    std::string name_;
    unique_fd file_; // none: published, or moved from
};
//! [file]

// --- progress ------------------------------------------------------------------------------------

/// The uploads of all loops that are under way. Any thread.
class uploads {
public:
    struct upload {
        std::string name;
        std::optional<std::uint64_t> size; // unless the client has not told it
        std::atomic<std::uint64_t> received = 0;
    };
    /// Is in the list as long as it exists.
    class entry {
    public:
        entry(uploads& of, std::string name, std::optional<std::uint64_t> size)
            : of_{of} {
            const std::lock_guard locked{of_.mutex_};
            at_ = of_.all_.emplace(of_.all_.end());
            at_->name = std::move(name);
            at_->size = size;
        }
        entry(const entry&) = delete;
        entry& operator=(const entry&) = delete;
        ~entry() {
            const std::lock_guard locked{of_.mutex_};
            of_.all_.erase(at_);
        }
        void received(std::size_t count) { at_->received += count; }

    private:
        uploads& of_;
        std::list<upload>::iterator at_;
    };

    /// A line for each: name, bytes received, size.
    [[nodiscard]] std::string to_string() const {
        const std::lock_guard locked{mutex_};
        std::string text;
        for (const upload& each : all_) {
            text += each.name + ' ' + std::to_string(each.received) + ' ' +
                    (each.size ? std::to_string(*each.size) : "?") + '\n';
        }
        return text;
    }
    [[nodiscard]] std::size_t count() const {
        const std::lock_guard locked{mutex_};
        return all_.size();
    }

private:
    mutable std::mutex mutex_;
    std::list<upload> all_;
};

// --- handlers ------------------------------------------------------------------------------------

struct depot {
    unique_fd directory;
    std::size_t at_once;
    uploads under_way = {};
};

task<result<>> refuse(http::response& answer, unsigned status, std::string_view why) {
    co_return co_await answer.status(status).send("text/plain; charset=utf-8", why);
}
/// The disk is no fault of the client, but it may want to know.
task<result<>> disk_failed(http::response& answer, std::error_code why) {
    const bool full = why == std::errc::no_space_on_device || why == std::errc::file_too_large ||
                      why.value() == EDQUOT;
    std::fprintf(stderr, "cannot write: %s\n", why.message().c_str());
    return full ? refuse(answer, 507, "the disk is full\n") : refuse(answer, 500, "cannot write\n");
}

//! [fill]
/// Reads until `into` is full or the body has ended; returns the number of bytes.
task<result<std::size_t>> fill(http::request& from, std::span<std::byte> into) {
    std::size_t size = 0;
    while (size < into.size()) {
        const auto count = co_await from.read_some(into.subspan(size));
        if (!count && count.error() == errc::end_of_stream) break;
        if (!count) co_return fail(count);
        size += *count;
    }
    co_return size;
}
//! [fill]

//! [receive]
task<result<>> receive(depot& all, http::request& asked, http::response& answer) {
    std::string name{asked.parameter("name")};
    // Nothing was read yet: a client that asked for `100 Continue` does not send the body.
    if (!is_good_name(name)) co_return co_await refuse(answer, 400, "a bad name\n");
    if (all.under_way.count() >= all.at_once) {
        answer.set("Retry-After", "10");
        co_return co_await refuse(answer, 503, "too many uploads\n");
    }
    uploads::entry progress{all.under_way, name, asked.content_length()};

    auto file = co_await run_blocking(new_file::create, all.directory.get());
    if (!file) co_return co_await disk_failed(answer, file.error());
    std::vector<std::byte> block(block_size);
    for (;;) {
        const auto size = co_await fill(asked, block);
        if (!size) co_return fail(size); // 400, 408, 413, or the client is gone
        if (*size == 0) break;
        const auto write = [&] { return file->write(std::span{block}.first(*size)); };
        const auto written = co_await run_blocking(write);
        if (!written) co_return co_await disk_failed(answer, written.error());
        progress.received(*size);
    }
    const auto publish = [&] { return file->publish(name); };
    const auto is_first = co_await run_blocking(publish);
    if (!is_first) co_return co_await disk_failed(answer, is_first.error());
    answer.status(*is_first ? 201 : 204);
    co_return result<>{};
}
//! [receive]

} // namespace

int main(int argc, char** argv) {
    const std::string usage =
        std::string{"http_upload DIRECTORY [--limit BYTES] [--at-once N]"}.append(
            example::server_usage);
    example::arguments given{argc, argv, usage};
    const auto server = example::take_server_options(given);
    // 0: no limit.
    const auto limit = given.number<std::uint64_t>("limit", given.option("--limit").value_or("0"),
                                                   0, std::uint64_t{1} << 62U);
    const auto at_once = given.number<std::size_t>(
        "number of uploads", given.option("--at-once").value_or("100"), 1, 100'000);
    const std::string path{given.next("DIRECTORY")};
    given.finish();

    depot all{unique_fd{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)}, at_once};
    if (!all.directory) return example::failed("cannot open " + path, last_error());
    http::router routes;
    routes.put("/{name}",
               [&all](http::request& asked, http::response& answer) {
                   return receive(all, asked, answer);
               },
               {.body = limit});
    routes.get("/", [&all](http::request&, http::response& answer) -> task<result<>> {
        const std::string text = all.under_way.to_string();
        co_return co_await answer.send("text/plain; charset=utf-8", text);
    });
    return example::serve_http(server, std::move(routes));
}
