#pragma once
// file_server: the files of one directory, for all loops. Layer http, private: behind file_handler
// and router::files().

#include "http/files/file_cache.hpp"
#include "http/files/open_beneath.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/detail/route_handler.hpp>
#include <simplenet/http/file_handler.hpp>
#include <simplenet/http/now_or_task.hpp>
#include <simplenet/http/static_options.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::http::detail {

class exchange;
class listing_cache;

/// Shared by the loops; each has caches of its own.
class file_server {
public:
    /// Opens the directory; throws std::system_error if that fails.
    file_server(std::string_view directory, const static_options& options);

    /// As file_handler::attempt().
    ///
    /// @param path  Beneath the directory: the normalised path of a request without its first
    ///              slash. Borrowed until the await returns.
    [[nodiscard]] now_or_task<result<unsigned>> attempt(request& asked, response& answer,
                                                        std::string_view path);
    /// As file_handler::look(), with such a path.
    [[nodiscard]] task<file_kind> look(request& asked, std::string_view path);

private:
    [[nodiscard]] task<result<unsigned>> serve_decoded(request& asked, response& answer,
                                                       std::string_view path);
    [[nodiscard]] task<result<unsigned>> serve_path(request& asked, response& answer,
                                                    std::string_view path);
    [[nodiscard]] now_or_task<result<unsigned>> send_known(request& asked, response& answer,
                                                           served_ref file);
    [[nodiscard]] now_or_task<result<>> send(request& asked, response& answer,
                                             const served_file& file);
    [[nodiscard]] task<result<unsigned>> send_listing(request& asked, response& answer,
                                                      std::string_view path);
    [[nodiscard]] std::shared_ptr<file_cache> cache_of(exchange& with) const;
    [[nodiscard]] std::shared_ptr<listing_cache> listings_of(exchange& with) const;

    const file_cache::root_ref root_;
    const std::vector<std::string> index_;
    const std::string cache_control_;
    static_options options_; // without its views
};

/// Answers what attempt() has left to its caller.
[[nodiscard]] now_or_task<result<>> answer_left(request& asked,
                                                now_or_task<result<unsigned>> attempt);

/// The handler of router::files() for `prefix/{path...}`.
///
/// Throws std::system_error if the directory cannot be opened.
[[nodiscard]] std::shared_ptr<route_handler> make_static_handler(std::string_view directory,
                                                                 const static_options& options);

/// The handler for the prefix itself: redirects to the path with a slash behind it.
[[nodiscard]] std::shared_ptr<route_handler> make_slash_redirect();

} // namespace simplenet::v0::http::detail
