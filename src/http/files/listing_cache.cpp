#include "http/files/listing_cache.hpp"

#include "http/files/coarse_time.hpp"
#include "http/files/listing.hpp"
#include "http/server/left_client.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/runtime/run_blocking.hpp>
#include <simplenet/sync/async_event.hpp>
#include <simplenet/time/deadline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <new>
#include <system_error>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::ptrdiff_t most_pages = 32;
constexpr std::size_t most_page_bytes = std::size_t{4} << 20;

} // namespace

class listing_cache::content {
public:
    content(file_cache::root_ref root, const static_options& options, turns_ref turns)
        : root_{std::move(root)}
        , rules_{.follow = options.follow, .hidden = options.hidden}
        , usable_for_{options.revalidate_after}
        , turns_{std::move(turns)} {}
    content(const content&) = delete;
    content& operator=(const content&) = delete;

    [[nodiscard]] static task<result<page_ref>> page(std::shared_ptr<content> self,
                                                     listing_client client, std::string path,
                                                     std::string title) {
        const std::uint64_t begun = self->begun_; // any later listing shows what is there now
        std::shared_ptr<listing> made;
        try {
            const std::string key = path + '\0' + title;
            if (page_ref known = self->find(key, begun)) co_return known;
            fair_places::place turn;
            if (!self->turns_->take(client.key, turn)) {
                const simplenet::detail::scope& within = co_await simplenet::detail::own_scope{};
                fair_places::turn next{*self->turns_, client.key, turn};
                const result<> granted = co_await with_timeout(std::move(next), longest_wait);
                if (!granted && within.stopped()) co_return fail(granted);
                if (page_ref known = self->find(key, begun)) co_return known;
                if (!granted || has_left(client.socket)) {
                    co_return fail(std::errc::resource_unavailable_try_again);
                }
            }
            made = std::make_shared<listing>();
            spawn(make(self, std::move(turn), key, {self->root_, self->rules_, path, title}, made));
        } catch (const std::bad_alloc&) {
            co_return fail(std::errc::not_enough_memory);
        }
        const result<> waited = co_await made->over.wait();
        if (!waited) co_return fail(waited);
        co_return made->page;
    }

private:
    /// What a listing needs.
    struct question {
        file_cache::root_ref root;
        open_rules rules;
        std::string path;
        std::string title;
    };

    /// A page, and when its first system call was made.
    struct dated {
        page_ref page;
        coarse_time as_of;
    };

    static result<dated> list(const question& what) {
        const coarse_time now = coarse_now();
        auto page = list_directory(
            what.root->get(), what.path,
            {.rules = what.rules, .title = what.title, .parent = !what.path.empty()});
        if (!page) return fail(page);
        return dated{std::make_shared<const std::string>(*std::move(page)), now};
    }

    /// A listing in progress. Shared by the task that makes it and the one that waits for it, whose
    /// stop must not give the turn to others while a thread is occupied.
    struct listing {
        async_event over;
        result<page_ref> page = fail(std::errc::operation_canceled);
    };

    struct kept_page {
        std::string key;
        page_ref page;                         // null if it is not kept: too large, or an old one
        std::weak_ptr<const std::string> used; // the same, as long as anybody has it
        coarse_time as_of;
        std::uint64_t number; // of its listing
    };

    /// A page that is young enough, or whose listing began after the first `begun` of them.
    [[nodiscard]] page_ref find(const std::string& key, std::uint64_t begun) noexcept {
        const auto at = std::ranges::find(pages_, key, &kept_page::key);
        if (at == pages_.end()) return nullptr;
        if (at->number <= begun && coarse_now() - at->as_of >= usable_for_) return nullptr;
        return at->used.lock();
    }

    // Nobody would catch an exception: failures are answers too.
    static task<> make(std::shared_ptr<content> self, fair_places::place turn, std::string key,
                       question what, std::shared_ptr<listing> own) {
        const fair_places::place held = std::move(turn); // ends before `self`
        const std::uint64_t number = ++self->begun_;
        try {
            auto listed = run_blocking(list, std::move(what));
            auto made = co_await std::move(listed);
            if (made) {
                own->page = made->page;
                self->remember({std::move(key), made->page, made->page, made->as_of, number});
            } else {
                own->page = fail(made);
            }
        } catch (const std::bad_alloc&) {
            own->page = fail(std::errc::not_enough_memory);
        } catch (const std::system_error& thrown) { // no thread
            own->page = fail(thrown.code());
        }
        own->over.set();
    }

    void remember(kept_page made) {
        const auto at = std::ranges::find(pages_, made.key, &kept_page::key);
        if (at != pages_.end()) {
            bytes_ -= kept_bytes(*at);
            pages_.erase(at);
        }
        std::erase_if(pages_, [](const kept_page& each) { return each.used.expired(); });
        // One that is too large by itself does not drive the others out.
        if (made.page->size() > most_page_bytes) made.page.reset();
        pages_.push_back(std::move(made));
        bytes_ += kept_bytes(pages_.back());
        auto kept = std::ranges::count_if(
            pages_, [](const kept_page& each) { return each.page != nullptr; });
        for (kept_page& oldest : pages_) {
            if (kept <= most_pages && bytes_ <= most_page_bytes) break;
            if (!oldest.page) continue;
            bytes_ -= kept_bytes(oldest);
            oldest.page.reset();
            --kept;
        }
    }
    [[nodiscard]] static std::size_t kept_bytes(const kept_page& of) noexcept {
        return of.page ? of.page->size() : 0;
    }

    const file_cache::root_ref root_;
    const open_rules rules_;
    const std::chrono::nanoseconds usable_for_;
    const turns_ref turns_;

    std::deque<kept_page> pages_; // the oldest first; at most one for each key
    std::size_t bytes_ = 0;       // that these keep
    std::uint64_t begun_ = 0;     // listings
};

listing_cache::listing_cache(file_cache::root_ref root, const static_options& options,
                             turns_ref turns)
    : content_{std::make_shared<content>(std::move(root), options, std::move(turns))} {}

listing_cache::~listing_cache() = default;

task<result<page_ref>> listing_cache::page(const listing_client& client, std::string_view path,
                                           std::string_view title) {
    return content::page(content_, client, std::string{path}, std::string{title});
}

} // namespace simplenet::v0::http::detail
