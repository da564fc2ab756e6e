#pragma once
// script_finder: which part of a path is a script. Layer http, private. One for each loop.

#include "http/fastcgi/request_params.hpp"
#include "http/fastcgi/settings.hpp"
#include "http/text_hash.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/now_or_task.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace simplenet::v0::http::detail {

/// The end of the next part of `path` behind `from` that has the form of a script: a segment that
/// ends in `.php`. npos: there is none.
[[nodiscard]] std::size_t next_script_end(std::string_view path, std::size_t from) noexcept;

/// All system calls of script_finder::find(). Any thread; may block.
///
/// @return The size of the shortest prefix of `path` that is a script: it has the form of one, and
///         is a regular file beneath `root`. 0: there is none. npos: `root` does not exist here.
/// @par Errors
/// Those of open_beneath() but is_missing(); those of open_root().
[[nodiscard]] result<std::size_t> look_for_script(const std::string& root, std::string_view path,
                                                  symlinks follow) noexcept;

/// Finds scripts beneath the root, and remembers for a second which it has found.
///
/// The root is opened by its name each time, as the backend does, so that a deployment may switch a
/// symbolic link. Missing scripts are not remembered: there are as many as clients can think of.
class script_finder {
public:
    /// @param with  Outlives this object.
    explicit script_finder(const fastcgi_settings& with) noexcept
        : settings_{with} {}
    script_finder(const script_finder&) = delete;
    script_finder& operator=(const script_finder&) = delete;
    ~script_finder() = default;

    /// @param path  Decoded, begins with a slash. Borrowed until the await returns, and by the
    ///              result.
    /// @return The script and what is behind it. An empty script: there is none.
    /// @par Errors
    /// Those of look_for_script(), see status_of().
    [[nodiscard]] now_or_task<result<script_path>> find(std::string_view path);

private:
    using clock = std::chrono::steady_clock;

    [[nodiscard]] task<result<script_path>> look(std::string_view path);

    const fastcgi_settings& settings_;
    // Scripts, and until when they are used.
    std::unordered_map<std::string, clock::time_point, text_hash, std::equal_to<>> known_;
};

} // namespace simplenet::v0::http::detail
