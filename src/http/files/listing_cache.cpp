#include "http/files/listing_cache.hpp"

#include "http/files/coarse_time.hpp"
#include "http/files/listing.hpp"
#include "http/server/left_client.hpp"

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/runtime/run_blocking.hpp>
#include <simplenet/sync/async_event.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <new>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

constexpr std::size_t most_pages = 32;
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

    [[nodiscard]] static task<result<page_ref>> page(std::shared_ptr<content> self, int client,
                                                     std::string path, std::string title) {
        std::shared_ptr<flight> joined;
        try {
            const std::string key = path + '\0' + title;
            if (page_ref known = self->find(key)) co_return known;
            joined = join(self, key, {self->root_, self->rules_, path, title});
        } catch (const std::bad_alloc&) {
            co_return fail(std::errc::not_enough_memory);
        }
        waiter own{client};
        joined->waiters.push_back(own);
        const result<> waited = co_await joined->over.wait();
        if (!waited) co_return fail(waited);
        co_return joined->page;
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

    struct waiter : simplenet::detail::list_hook<> {
        explicit waiter(int of) noexcept
            : client{of} {}
        const int client;
    };

    /// A listing that waits for its turn or is being made. Shared by the task that makes it and
    /// those that wait for it, so that the stop of one of them does not concern the others.
    struct flight {
        [[nodiscard]] bool is_awaited() {
            bool found = false;
            waiters.for_each([&](waiter& each) { found = found || !has_left(each.client); });
            return found;
        }

        async_event over;
        simplenet::detail::intrusive_list<waiter> waiters;
        result<page_ref> page = fail(std::errc::operation_canceled);
    };

    /// The end of a listing, also where its task is destroyed at the end of the loop.
    class landing {
    public:
        landing(content& cache, const std::string& key) noexcept
            : cache_{cache}
            , key_{key} {}
        landing(const landing&) = delete;
        landing& operator=(const landing&) = delete;
        ~landing() { cache_.flights_.erase(key_); }

    private:
        content& cache_;
        const std::string& key_;
    };

    struct kept_page {
        std::string key;
        page_ref page;
        coarse_time as_of;
    };

    [[nodiscard]] page_ref find(const std::string& key) noexcept {
        drop_old(coarse_now());
        const auto at = std::ranges::find(pages_, key, &kept_page::key);
        return at == pages_.end() ? nullptr : at->page;
    }
    void drop_old(coarse_time now) noexcept {
        while (!pages_.empty() && now - pages_.front().as_of >= usable_for_)
            drop_oldest();
    }
    void drop_oldest() noexcept {
        bytes_ -= pages_.front().page->size();
        pages_.pop_front();
    }

    /// The listing that is in progress; otherwise begins one.
    static std::shared_ptr<flight> join(const std::shared_ptr<content>& self,
                                        const std::string& key, question what) {
        if (const auto at = self->flights_.find(key); at != self->flights_.end()) {
            return at->second;
        }
        auto begun = std::make_shared<flight>();
        self->flights_.emplace(key, begun);
        try {
            spawn(fly(self, key, std::move(what), begun));
        } catch (...) {
            self->flights_.erase(key);
            throw;
        }
        return begun;
    }

    // Nobody would catch an exception: failures are answers too.
    static task<> fly(std::shared_ptr<content> self, std::string key, question what,
                      std::shared_ptr<flight> own) {
        const landing at_the_end{*self, key};
        const bool has_to_wait = self->turns_->available() == 0;
        const result<async_semaphore::permit> turn = co_await self->turns_->acquire_permit();
        if (!turn) {
            own->page = fail(turn);
        } else if (has_to_wait && !own->is_awaited()) {
            own->page = fail(std::errc::resource_unavailable_try_again);
        } else {
            try {
                auto listing = run_blocking(list, std::move(what));
                auto made = co_await std::move(listing);
                if (made) {
                    own->page = made->page;
                    self->remember(key, *made);
                } else {
                    own->page = fail(made);
                }
            } catch (const std::bad_alloc&) {
                own->page = fail(std::errc::not_enough_memory);
            } catch (const std::system_error& thrown) { // no thread
                own->page = fail(thrown.code());
            }
        }
        own->over.set();
    }

    void remember(const std::string& key, const dated& made) {
        const std::size_t size = made.page->size();
        // One that is too large by itself does not drive the others out.
        if (size > most_page_bytes) return;
        pages_.push_back({key, made.page, made.as_of});
        bytes_ += size;
        while (pages_.size() > most_pages || bytes_ > most_page_bytes)
            drop_oldest();
    }

    const file_cache::root_ref root_;
    const open_rules rules_;
    const std::chrono::nanoseconds usable_for_;
    const turns_ref turns_;

    std::deque<kept_page> pages_; // the oldest first; at most one for each key
    std::size_t bytes_ = 0;       // in pages_
    std::unordered_map<std::string, std::shared_ptr<flight>> flights_;
};

listing_cache::listing_cache(file_cache::root_ref root, const static_options& options,
                             turns_ref turns)
    : content_{std::make_shared<content>(std::move(root), options, std::move(turns))} {}

listing_cache::~listing_cache() = default;

task<result<page_ref>> listing_cache::page(int client, std::string_view path,
                                           std::string_view title) {
    return content::page(content_, client, std::string{path}, std::string{title});
}

} // namespace simplenet::v0::http::detail
