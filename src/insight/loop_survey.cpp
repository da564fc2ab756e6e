#include "insight/loop_survey.hpp"

#include "loop/loop.hpp"
#include "threads/one_for_process.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <tuple>
#include <utility>

namespace simplenet::v0::detail {

class loop_survey;

/// What the threads outside know of a loop. Shared by the loop's place and the survey.
class surveyed_loop final {
public:
    surveyed_loop(loop_survey& in, loop& surveyed) noexcept
        : in_{&in}
        , which_{&surveyed} {}

private:
    friend loop_survey;
    friend survey_place;

    /// @pre the survey is locked.
    [[nodiscard]] loop_metrics metrics() const noexcept {
        if (which_ == nullptr) return last_;
        if (run_queue::current() == which_) which_->publish();
        which_->observe();
        return which_->published_metrics();
    }

    loop_survey* const in_;
    // Under the lock of the survey:
    loop* which_; // null: it has left
    std::string group_;
    std::size_t number_ = 0;
    loop_metrics last_; // once it has left
};

/// The loops of this process.
class loop_survey : private one_for_process<loop_survey> {
    friend one_for_process<loop_survey>;
    using entry = std::shared_ptr<surveyed_loop>;

public:
    [[nodiscard]] static loop_survey& of_process() {
        return get(current_survey, [] { return std::make_unique<loop_survey>(); });
    }

    [[nodiscard]] entry add(loop& added) {
        auto made = std::make_shared<surveyed_loop>(*this, added);
        const std::lock_guard lock{guard_};
        while (std::ranges::any_of(all_, [&](const entry& each) {
            return each->group_.empty() && each->number_ == made->number_;
        })) {
            ++made->number_;
        }
        all_.push_back(made);
        return made;
    }
    void remove(surveyed_loop& gone) noexcept {
        const std::lock_guard lock{guard_};
        loop_metrics& last = gone.last_;
        last = gone.metrics();
        last.live_tasks = last.live_operations = last.timers = 0;
        last.open_descriptors = last.receive_pool_leased = 0;
        last.live_frames = 0;
        gone.which_ = nullptr;
        std::erase_if(all_, [&](const entry& each) { return each.get() == &gone; });
    }
    void name(std::span<const entry> loops, std::string_view name) {
        const std::lock_guard lock{guard_};
        const std::string_view wanted = name.empty() ? "group" : name;
        std::string unused{wanted};
        for (int copy = 2; has_group(unused); ++copy)
            unused = std::string{wanted} + '-' + std::to_string(copy);
        for (std::size_t number = 0; number < loops.size(); ++number) {
            loops[number]->which_->observe();
            loops[number]->group_ = unused;
            loops[number]->number_ = number;
        }
    }

    [[nodiscard]] std::vector<loop_figures> all() {
        std::vector<loop_figures> figures;
        const std::lock_guard lock{guard_};
        for (const entry& each : all_) {
            figures.push_back(
                {.group = each->group_, .number = each->number_, .metrics = each->metrics()});
        }
        std::ranges::sort(figures, {}, [](const loop_figures& each) {
            return std::tie(each.group, each.number);
        });
        return figures;
    }
    [[nodiscard]] std::vector<loop_metrics> some(std::span<const entry> which) {
        std::vector<loop_metrics> figures;
        const std::lock_guard lock{guard_};
        for (const entry& each : which)
            figures.push_back(each->metrics());
        return figures;
    }

private:
    /// @pre locked.
    [[nodiscard]] bool has_group(std::string_view name) const noexcept {
        return std::ranges::any_of(all_,
                                   [name](const entry& each) { return each->group_ == name; });
    }

    static constinit std::atomic<loop_survey*> current_survey;

    std::mutex guard_;
    std::vector<entry> all_;
};

constinit std::atomic<loop_survey*> loop_survey::current_survey = nullptr;

void survey_place::take(loop& surveyed) {
    entry_ = loop_survey::of_process().add(surveyed);
}
void survey_place::leave() noexcept {
    if (entry_ == nullptr) return;
    entry_->in_->remove(*entry_);
    entry_.reset();
}

void name_group(std::span<const std::shared_ptr<surveyed_loop>> loops, std::string_view name) {
    loop_survey::of_process().name(loops, name);
}

std::vector<loop_figures> survey_loops() {
    return loop_survey::of_process().all();
}
std::vector<loop_metrics> survey_loops(std::span<const std::shared_ptr<surveyed_loop>> asked) {
    return loop_survey::of_process().some(asked);
}

} // namespace simplenet::v0::detail
