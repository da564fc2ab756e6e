#include "http/files/file_cache.hpp"

#include "http/files/coarse_time.hpp"
#include "sys/calls.hpp"
#include "sys/lack_of_descriptors.hpp"

#include <simplenet/core/detail/intrusive_list.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/runtime/run_blocking.hpp>
#include <simplenet/server/server_stop.hpp>
#include <simplenet/sync/async_event.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <new>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// Paths that are remembered as directories or as missing, and their length in bytes: any client
/// can ask for as many as it likes.
constexpr std::size_t most_others = 1000;
constexpr std::size_t longest_other = 1024;

bool is_worth_remembering(const result<served_ref>& answer) noexcept {
    return answer || is_missing(answer.error()) || answer.error() == std::errc::permission_denied;
}

/// Whether a file that is kept open has to take the place of others.
bool are_most_descriptors_in_use() noexcept {
    const int limit = simplenet::detail::sys::descriptor_limit();
    return simplenet::detail::sys::descriptors_in_use() >= limit - limit / 4;
}

bool found_no_descriptor(const result<served_ref>& answer) noexcept {
    return !answer && simplenet::detail::sys::lacks_descriptors(answer.error());
}

} // namespace

class file_cache::content final : simplenet::detail::spare_holder {
public:
    content(root_ref root, const static_options& options, std::chrono::nanoseconds unused_for)
        : asked_{.root = std::move(root),
                 .path = {},
                 .rules = {.follow = options.follow, .hidden = options.hidden},
                 .precompressed = options.precompressed,
                 .small_file = std::min(options.small_file, options.small_total),
                 .known = {}}
        , most_files_{options.max_open}
        , most_bytes_{options.small_total}
        , usable_for_{options.revalidate_after}
        , unused_for_{unused_for} {}
    content(const content&) = delete;
    content& operator=(const content&) = delete;

    [[nodiscard]] std::optional<result<served_ref>> find(std::string_view path) noexcept {
        const auto at = entries_.find(path);
        if (at == entries_.end()) {
            if (const auto refused = refusal_of(path, asked_.rules)) return fail(refused);
            return std::nullopt;
        }
        entry& found = at->second;
        const coarse_time now = coarse_now();
        if (now - found.what.as_of >= usable_for_) return std::nullopt;
        touch(found, now);
        return found.what.answer;
    }

    [[nodiscard]] static task<result<served_ref>> open(std::shared_ptr<content> self,
                                                       std::string path) {
        if (auto known = self->find(path)) co_return *std::move(known);
        std::shared_ptr<flight> joined;
        try {
            joined = join(self, path);
        } catch (const std::bad_alloc&) {
            co_return fail(std::errc::not_enough_memory);
        }
        const result<> waited = co_await joined->over.wait();
        if (!waited) co_return fail(waited);
        co_return joined->answer;
    }

    void clear() noexcept {
        static_cast<void>(give_up_descriptors());
        while (!in_memory_.empty())
            drop(in_memory_.front());
        while (!others_.empty())
            drop(others_.front());
    }

    std::size_t give_up_descriptors() noexcept override {
        std::size_t count = 0;
        for (; !open_.empty(); drop(open_.front())) {
            const entry& each = open_.front();
            if (each.what.answer->use_count() == 1) count += each.descriptors; // no answer has it
        }
        return count;
    }

    [[nodiscard]] std::size_t file_count() const noexcept { return file_count_; }
    [[nodiscard]] std::size_t byte_count() const noexcept { return byte_count_; }
    [[nodiscard]] std::size_t other_count() const noexcept { return other_count_; }

private:
    struct path_hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view path) const noexcept {
            return std::hash<std::string_view>{}(path);
        }
    };
    template <class T>
    using map_by_path = std::unordered_map<std::string, T, path_hash, std::equal_to<>>;

    /// The answer of a lookup, and when its first system call was made.
    struct dated {
        result<served_ref> answer;
        coarse_time as_of;
    };

    struct entry : simplenet::detail::list_hook<> {
        explicit entry(dated answer) noexcept
            : what{std::move(answer)} {
            if (!what.answer || (*what.answer)->is_directory) return;
            const served_file& file = **what.answer;
            const auto count = [this](const open_file& each) {
                ++files;
                bytes += each.contents.size();
                if (each.fd) ++descriptors;
            };
            count(file.plain);
            if (file.gzip) count(*file.gzip);
            if (file.br) count(*file.br);
        }

        const std::string* path = nullptr; // the key
        dated what;
        std::size_t files = 0;       // 0: a directory or an error
        std::size_t bytes = 0;       // in memory
        std::size_t descriptors = 0; // not in memory
        std::uint64_t used = 0;      // when it was last asked for, as a count of such moments
        coarse_time used_at{};       // the same
    };
    using entry_list = simplenet::detail::intrusive_list<entry>;

    /// A lookup in progress. Shared by the task that makes it and those that wait for it, so that
    /// the stop of one of them does not concern the others.
    struct flight {
        async_event over;
        result<served_ref> answer = fail(std::errc::operation_canceled);
    };

    /// The end of a lookup, also where its task is destroyed at the end of the loop: then the path
    /// may be looked up again, on another loop.
    class landing {
    public:
        landing(content& cache, std::string_view path) noexcept
            : cache_{cache}
            , path_{path} {}
        landing(const landing&) = delete;
        landing& operator=(const landing&) = delete;
        ~landing() {
            if (const auto at = cache_.flights_.find(path_); at != cache_.flights_.end()) {
                cache_.flights_.erase(at);
            }
        }

    private:
        content& cache_;
        std::string_view path_;
    };

    void touch(entry& used, coarse_time now) noexcept {
        used.used = ++uses_;
        used.used_at = now;
        used.unlink();
        entry_list& list = used.descriptors != 0 ? open_ : used.files != 0 ? in_memory_ : others_;
        list.push_back(used);
    }
    /// The least recently used one. @pre There is one.
    entry& oldest_file() noexcept {
        if (open_.empty()) return in_memory_.front();
        if (in_memory_.empty()) return open_.front();
        return open_.front().used < in_memory_.front().used ? open_.front() : in_memory_.front();
    }
    /// What is known of a file whose contents are here, however old that is.
    [[nodiscard]] served_ref known_in_memory(const std::string& path) const noexcept {
        const auto at = entries_.find(path);
        if (at == entries_.end() || at->second.files == 0 || at->second.descriptors != 0) return {};
        return *at->second.what.answer;
    }

    /// The lookup of `path` that is in progress; otherwise begins one.
    static std::shared_ptr<flight> join(const std::shared_ptr<content>& self,
                                        const std::string& path) {
        if (const auto at = self->flights_.find(path); at != self->flights_.end()) {
            return at->second;
        }
        auto begun = std::make_shared<flight>();
        self->flights_.emplace(path, begun);
        try {
            spawn(fly(self, path, begun));
        } catch (...) {
            self->flights_.erase(path);
            throw;
        }
        return begun;
    }

    // Nobody would catch an exception: failures are answers too.
    static task<> fly(std::shared_ptr<content> self, std::string path,
                      std::shared_ptr<flight> own) {
        const landing at_the_end{*self, path};
        dated found = nothing_yet();
        for (int attempt = 0; attempt < 2; ++attempt) {
            try {
                auto call = [](const lookup& what) -> result<dated> {
                    const coarse_time now = coarse_now();
                    return dated{look_up(what), now};
                };
                auto looking = run_blocking(call, self->question_about(path));
                auto looked = co_await std::move(looking);
                found = looked ? *std::move(looked) : dated{fail(looked), {}};
            } catch (const std::bad_alloc&) {
                found = nothing_yet();
            } catch (const std::system_error& thrown) { // no thread
                found = {fail(thrown.code()), {}};
            }
            if (!found_no_descriptor(found.answer)) break;
            if (attempt == 0 && self->give_up_descriptors() != 0) continue;
            simplenet::detail::note_lack_of_descriptors();
            break;
        }
        if (found_no_descriptor(found.answer)) {
            // As it was is better than none. It is looked up again for the next request.
            if (served_ref known = self->known_in_memory(path)) {
                own->answer = std::move(known);
                own->over.set();
                co_return;
            }
        }
        own->answer = found.answer;
        self->remember(path, std::move(found));
        own->over.set();
    }
    static dated nothing_yet() noexcept { return {fail(std::errc::not_enough_memory), {}}; }

    [[nodiscard]] lookup question_about(const std::string& path) const {
        lookup what = asked_;
        what.path = path;
        const auto at = entries_.find(path);
        if (at != entries_.end() && at->second.files != 0) what.known = *at->second.what.answer;
        return what;
    }

    void close_unused(coarse_time now) noexcept {
        while (!open_.empty() && now - open_.front().used_at > unused_for_)
            drop(open_.front());
    }

    /// Replaces what is known about `path`.
    void remember(const std::string& path, dated found) noexcept {
        const coarse_time now = coarse_now();
        close_unused(now);
        if (const auto at = entries_.find(path); at != entries_.end()) drop(at->second);
        if (!is_worth_remembering(found.answer)) return;
        entry* made = nullptr;
        try {
            const auto at = entries_.try_emplace(path, std::move(found)).first;
            made = &at->second;
            made->path = &at->first;
        } catch (const std::bad_alloc&) {
            return; // then it is looked up again
        }
        touch(*made, now);
        file_count_ += made->files;
        byte_count_ += made->bytes;
        if (made->files == 0) ++other_count_;

        // One that is too large by itself does not drive the others out.
        if (made->files > most_files_ || made->bytes > most_bytes_ ||
            (made->files == 0 && path.size() > longest_other)) {
            return drop(*made);
        }
        while (file_count_ > most_files_ || byte_count_ > most_bytes_)
            drop(oldest_file());
        if (made->descriptors != 0) {
            // The server that it was told to may have gone.
            if (!linked()) simplenet::detail::ask_for_spare_descriptors(*this);
            if (are_most_descriptors_in_use()) take_place_of_others(*made);
        }
        while (other_count_ > most_others)
            drop(others_.front());
    }

    void take_place_of_others(const entry& made) noexcept {
        std::size_t closed = 0;
        while (closed < made.descriptors && &open_.front() != &made) {
            closed += open_.front().descriptors;
            drop(open_.front());
        }
    }

    void drop(entry& old) noexcept {
        file_count_ -= old.files;
        byte_count_ -= old.bytes;
        if (old.files == 0) --other_count_;
        entries_.erase(entries_.find(*old.path));
    }

    const lookup asked_; // without the path
    const std::size_t most_files_;
    const std::size_t most_bytes_;
    const std::chrono::nanoseconds usable_for_;
    const std::chrono::nanoseconds unused_for_;

    map_by_path<entry> entries_;
    // Of entries_; the least recently used one of each is the first.
    entry_list open_;      // files with descriptors
    entry_list in_memory_; // files without
    entry_list others_;    // directories and errors
    std::uint64_t uses_ = 0;
    std::size_t file_count_ = 0;
    std::size_t byte_count_ = 0;
    std::size_t other_count_ = 0;
    map_by_path<std::shared_ptr<flight>> flights_;
};

file_cache::file_cache(root_ref root, const static_options& options,
                       std::chrono::nanoseconds unused_for)
    : content_{std::make_shared<content>(std::move(root), options, unused_for)} {}

file_cache::~file_cache() = default;

std::optional<result<served_ref>> file_cache::find(std::string_view path) noexcept {
    return content_->find(path);
}

task<result<served_ref>> file_cache::open(std::string_view path) {
    return content::open(content_, std::string{path});
}

void file_cache::clear() noexcept {
    content_->clear();
}
std::size_t file_cache::file_count() const noexcept {
    return content_->file_count();
}
std::size_t file_cache::byte_count() const noexcept {
    return content_->byte_count();
}
std::size_t file_cache::other_count() const noexcept {
    return content_->other_count();
}

} // namespace simplenet::v0::http::detail
