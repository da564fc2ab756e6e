#include "insight/metrics_source.hpp"

#include "insight/metrics_page.hpp"
#include "threads/one_for_process.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace simplenet::v0::detail {

/// The sources of this process.
class metrics_sources : private one_for_process<metrics_sources> {
    friend one_for_process<metrics_sources>;

public:
    [[nodiscard]] static metrics_sources& of_process() {
        return get(current, [] { return std::make_unique<metrics_sources>(); });
    }

    [[nodiscard]] std::size_t add(metrics_source& added) {
        const std::lock_guard lock{guard_};
        const auto free = std::ranges::find(all_, nullptr);
        if (free != all_.end()) {
            *free = &added;
            return static_cast<std::size_t>(free - all_.begin());
        }
        all_.push_back(&added);
        return all_.size() - 1;
    }
    void remove(std::size_t number) noexcept {
        const std::lock_guard lock{guard_};
        all_[number] = nullptr;
    }
    void write_to(metrics_page& page) {
        const std::lock_guard lock{guard_};
        for (const metrics_source* const each : all_) {
            if (each != nullptr) each->write_to(page);
        }
    }

private:
    static constinit std::atomic<metrics_sources*> current;

    std::mutex guard_;
    std::vector<metrics_source*> all_; // at their numbers; null: free
};

constinit std::atomic<metrics_sources*> metrics_sources::current = nullptr;

void metrics_source::publish() {
    SIMPLENET_EXPECTS(published_in_ == nullptr, "a source of metrics is published once");
    metrics_sources& all = metrics_sources::of_process();
    number_ = all.add(*this);
    published_in_ = &all;
}

void metrics_source::withdraw() noexcept {
    // In a child of fork(2) its process's sources do not have it, and those of the parent are not
    // ours to change.
    if (published_in_ != nullptr && published_in_ == &metrics_sources::of_process()) {
        published_in_->remove(number_);
    }
    published_in_ = nullptr;
}

void write_sources(metrics_page& page) {
    metrics_sources::of_process().write_to(page);
}

} // namespace simplenet::v0::detail
