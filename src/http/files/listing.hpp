#pragma once
// listing: the page that shows the entries of a directory. Layer http, private.

#include "http/files/open_beneath.hpp"

#include <simplenet/core/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {

/// The number of entries in a page. A page says if there are more.
inline constexpr std::size_t most_listed = 10'000;

struct listing_options {
    open_rules rules;
    /// Shown as the heading: the decoded path of the request.
    std::string_view title;
    /// Whether the page has a link to the directory above.
    bool parent = false;
    std::size_t most = most_listed;
};

/// A page in HTML, UTF-8, with the entries of the directory at `path` beneath `root`: directories
/// first, each group in the order of the bytes of its names, with sizes and times (UTC). Its links
/// are relative to the directory, so the path of the request must end in a slash.
///
/// Shows what a request could open: no hidden names, no FIFOs, sockets and devices, no symbolic
/// links that lead out of the root. Names are escaped for HTML and for URLs, so that no name can
/// become markup or a link to another place. Nothing in the page is a script or comes from
/// elsewhere: the policy `default-src 'none'` suits it.
///
/// Any thread; blocks: call it with run_blocking().
///
/// @par Errors
/// Those of open_beneath(); `std::errc::not_a_directory`; `std::errc::not_enough_memory`; what
/// getdents64(2) reports. An entry that disappears meanwhile is left out.
/// @par Cost
/// A system call for each entry, two or more for a symbolic link.
[[nodiscard]] result<std::string> list_directory(int root, std::string_view path,
                                                 const listing_options& options) noexcept;

} // namespace simplenet::v0::http::detail
