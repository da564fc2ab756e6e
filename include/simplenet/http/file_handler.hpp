#pragma once
// http::file_handler: answers with the files of a directory. Layer http.

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/now_or_task.hpp>
#include <simplenet/http/request.hpp>
#include <simplenet/http/response.hpp>
#include <simplenet/http/static_options.hpp>

#include <cstdint>
#include <memory>
#include <string_view>

namespace simplenet::v0::http::detail {
// The library's own: not exported, since it is first named here.
class file_server;
} // namespace simplenet::v0::http::detail

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

/// What a path leads to beneath a directory.
enum class file_kind : std::uint8_t { missing, file, directory };

/// What router::files() answers with, for handlers that decide by themselves when to do so. A cheap
/// handle, shared by the loops; each loop has a cache of its own.
///
/// request::path() is the path beneath the directory.
///
/// @par Example
/// @snippet http.cpp file handler
class file_handler {
public:
    /// As router::files().
    explicit file_handler(std::string_view directory, const static_options& options = {});

    /// Answers, whatever the path: what attempt() leaves to its caller is answered with its status
    /// and a short text.
    ///
    /// @par Errors
    /// Those of response::send_file().
    now_or_task<result<>> operator()(request& asked, response& answer) const;

    /// Answers if the path leads to something: with a file, a listing, or the redirect of a
    /// directory without its slash. A file that is known is answered by the call itself, before the
    /// await. This object outlives the await.
    ///
    /// @return 0: answered. Otherwise nothing was answered, and this is the status that fits: 404;
    ///         403: the file cannot be read; 405 with Allow, which has been set, unless a status
    ///         other than 200 was set before; 412: a condition of the request does not hold; 416
    ///         with Content-Range, which has been set; 500 or 503: the file system or its errors.
    ///
    /// @par Errors
    /// Those of response::send_file().
    [[nodiscard]] now_or_task<result<unsigned>> attempt(request& asked, response& answer) const;

    /// What `path` leads to. Errors other than that of a missing file count as `file`: attempt()
    /// tells them.
    ///
    /// @param asked  In progress; its loop's cache is used.
    /// @param path   As request::path(); borrowed until the await returns.
    [[nodiscard]] task<file_kind> look(request& asked, std::string_view path) const;

private:
    std::shared_ptr<detail::file_server> server_;
};

} // namespace simplenet::v0::http

#pragma GCC visibility pop
