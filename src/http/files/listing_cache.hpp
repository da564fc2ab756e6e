#pragma once
// listing_cache: the pages of directories that were asked for recently. Layer http, private. One
// for each loop and root, beside its file_cache.

#include "http/files/file_cache.hpp"
#include "http/files/open_beneath.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/static_options.hpp>
#include <simplenet/sync/async_semaphore.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {

using page_ref = std::shared_ptr<const std::string>;

/// Keeps crowds that ask for large directories from occupying the threads of run_blocking(), where
/// the lookups of files wait too: requests for the same page share one listing, a page is used
/// again for `revalidate_after`, and listings take turns.
///
/// The 32 newest pages are kept, up to 4 MiB of them.
///
/// Loop thread only. Listings in progress survive the cache.
class listing_cache {
public:
    /// Has a permit for each listing that may be made at a time. May be shared by several caches.
    using turns_ref = std::shared_ptr<async_semaphore>;

    /// `root` comes from open_root().
    listing_cache(file_cache::root_ref root, const static_options& options, turns_ref turns);
    listing_cache(const listing_cache&) = delete;
    listing_cache& operator=(const listing_cache&) = delete;
    ~listing_cache();

    /// The page of list_directory().
    ///
    /// A listing whose clients have all left before its turn comes is not made.
    ///
    /// @param client  The socket of who waits for the page. Outlives the await.
    /// @param path    Without a NUL. Copied, as `title` is.
    /// @par Errors
    /// - Those of list_directory(). They are not remembered.
    /// - `std::errc::resource_unavailable_try_again`: no thread could be started, or the client has
    ///   left while it waited for the turn.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or deadline came first.
    /// @par Cancellation
    /// Ends at once, even if a file system hangs. A listing that has begun goes on; one that nobody
    /// waits for does not begin.
    [[nodiscard]] task<result<page_ref>> page(int client, std::string_view path,
                                              std::string_view title);

private:
    class content;

    const std::shared_ptr<content> content_; // shared with the listings in progress
};

} // namespace simplenet::v0::http::detail
