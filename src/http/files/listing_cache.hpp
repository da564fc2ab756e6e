#pragma once
// listing_cache: the pages of directories that were asked for recently. Layer http, private. One
// for each loop and root, beside its file_cache.

#include "http/files/file_cache.hpp"
#include "http/files/open_beneath.hpp"
#include "http/server/fair_places.hpp"

#include <simplenet/core/error.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/http/static_options.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace simplenet::v0::http::detail {

using page_ref = std::shared_ptr<const std::string>;

/// Who waits for a listing.
struct listing_client {
    int socket; // outlives the wait
    client_key key;
};

/// Keeps crowds that ask for large directories from occupying the threads of run_blocking(), where
/// the lookups of files wait too: listings take turns, by client, and whoever waits for a turn gets
/// the page that somebody else's listing has made meanwhile. A page is used again for
/// `revalidate_after`.
///
/// The 32 newest pages are kept, up to 4 MiB of them. One that is not kept is shared while a
/// client is still being sent it.
///
/// Loop thread only. Listings in progress survive the cache.
class listing_cache {
public:
    /// Has a place for each listing that may be made at a time. May be shared by several caches.
    using turns_ref = std::shared_ptr<fair_places>;

    /// A turn is waited for as long as a connection to a backend.
    static constexpr std::chrono::seconds longest_wait{10};

    /// `root` comes from open_root().
    listing_cache(file_cache::root_ref root, const static_options& options, turns_ref turns);
    listing_cache(const listing_cache&) = delete;
    listing_cache& operator=(const listing_cache&) = delete;
    ~listing_cache();

    /// The page of list_directory().
    ///
    /// @param path    Without a NUL. Copied, as `title` is.
    /// @par Errors
    /// - Those of list_directory(). They are not remembered.
    /// - `std::errc::resource_unavailable_try_again`: no turn came within the longest wait; the
    ///   client has left while it waited for one; or no thread could be started.
    /// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or deadline came first.
    /// @par Cancellation
    /// Ends at once, even if a file system hangs. A listing that has begun goes on, and keeps its
    /// turn.
    [[nodiscard]] task<result<page_ref>> page(const listing_client& client, std::string_view path,
                                              std::string_view title);

private:
    class content;

    const std::shared_ptr<content> content_; // shared with the listings in progress
};

} // namespace simplenet::v0::http::detail
