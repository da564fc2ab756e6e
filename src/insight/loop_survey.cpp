#include "insight/loop_survey.hpp"

#include "loop/loop.hpp"
#include "threads/one_for_process.hpp"

#include <simplenet/threads/detail/posted.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <tuple>
#include <utility>

namespace simplenet::v0::detail {

namespace {

using namespace std::chrono_literals;

} // namespace

class loop_survey;

/// What the threads outside know of a loop. Its posts are itself: one at a time is on the way.
///
/// Shared by the loop's place, by the surveys in progress, and by itself while on the way.
class surveyed_loop final : public posted, public std::enable_shared_from_this<surveyed_loop> {
public:
    explicit surveyed_loop(loop_survey& in, loop& surveyed) noexcept
        : in_{&in}
        , which_{&surveyed} {}

    void run() noexcept override;
    void drop() noexcept override;

private:
    friend loop_survey;
    friend survey_place;

    [[nodiscard]] bool is_current() const noexcept {
        return on_its_way_ == nullptr || which_ == nullptr || present_ != 0 || !is_asked_;
    }

    loop_survey* const in_;
    // Under the lock of the survey:
    loop* which_; // null: it has left
    std::string group_;
    std::size_t number_ = 0;
    std::shared_ptr<surveyed_loop> on_its_way_; // itself
    bool is_asked_ = false;                     // and runs, so an answer can be expected
    unsigned present_ = 0; // surveys in progress on its thread: `latest_` stays true until the end
    loop_metrics latest_;
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
        loop_metrics last = gone.which_->last_metrics();
        last.live_tasks = last.live_operations = last.timers = 0;
        last.open_descriptors = last.receive_pool_leased = 0;
        last.live_frames = 0;
        const std::lock_guard lock{guard_};
        gone.latest_ = last;
        gone.which_ = nullptr;
        std::erase_if(all_, [&](const entry& each) { return each.get() == &gone; });
        answered_.notify_all();
    }
    void name(std::span<const entry> loops, std::string_view name) {
        const std::lock_guard lock{guard_};
        const std::string_view wanted = name.empty() ? "group" : name;
        std::string unused{wanted};
        for (int copy = 2; has_group(unused); ++copy)
            unused = std::string{wanted} + '-' + std::to_string(copy);
        for (std::size_t number = 0; number < loops.size(); ++number) {
            loops[number]->group_ = unused;
            loops[number]->number_ = number;
        }
    }

    /// Calls `use` for each of the loops that `choose` returns, under the lock, with their figures.
    template <class Choose, class Use>
    void ask(Choose choose, Use use) {
        loop* const here = static_cast<loop*>(run_queue::current());
        // A thread without a loop may be patient. On a loop, others wait for the end of this turn.
        const auto deadline = std::chrono::steady_clock::now() + (here == nullptr ? 100ms : 10ms);
        loop_metrics own;
        if (here != nullptr) own = here->metrics();

        std::unique_lock lock{guard_};
        const std::vector<entry> asked = choose();
        const presence announced{*this, here, own};
        for (const entry& each : asked)
            ask(*each);
        answered_.wait_until(lock, deadline, [&] {
            return std::ranges::all_of(asked, [](const entry& each) { return each->is_current(); });
        });
        for (const entry& each : asked)
            use(*each);
    }
    [[nodiscard]] std::vector<loop_figures> ask_all() {
        std::vector<loop_figures> figures;
        ask([this] { return all_; },
            [&](const surveyed_loop& each) {
                figures.push_back(
                    {.group = each.group_, .number = each.number_, .metrics = each.latest_});
            });
        std::ranges::sort(figures, {}, [](const loop_figures& each) {
            return std::tie(each.group, each.number);
        });
        return figures;
    }
    [[nodiscard]] std::vector<loop_metrics> ask_some(std::span<const entry> which) {
        std::vector<loop_metrics> figures;
        ask([which] { return std::vector<entry>(which.begin(), which.end()); },
            [&](const surveyed_loop& each) { figures.push_back(each.latest_); });
        return figures;
    }

    void answer(surveyed_loop& by, const loop_metrics* figures) noexcept {
        entry arrived; // destroyed after the unlock
        const std::lock_guard lock{guard_};
        if (figures != nullptr) by.latest_ = *figures;
        arrived = std::move(by.on_its_way_);
        answered_.notify_all();
    }

private:
    /// Leaves the figures of the loop that waits here for others, which cannot answer meanwhile.
    class presence {
    public:
        /// @pre locked, until its end too.
        presence(loop_survey& in, const loop* here, const loop_metrics& own) noexcept {
            if (here == nullptr) return;
            for (const entry& each : in.all_) {
                if (each->which_ == here) here_ = each;
            }
            if (here_ == nullptr) return;
            here_->latest_ = own;
            ++here_->present_;
            in.answered_.notify_all();
        }
        presence(const presence&) = delete;
        presence& operator=(const presence&) = delete;
        ~presence() {
            if (here_ != nullptr) --here_->present_;
        }

    private:
        entry here_;
    };

    /// @pre locked.
    [[nodiscard]] bool has_group(std::string_view name) const noexcept {
        return std::ranges::any_of(all_,
                                   [name](const entry& each) { return each->group_ == name; });
    }
    /// @pre locked.
    static void ask(surveyed_loop& asked) noexcept {
        if (asked.which_ == nullptr || asked.present_ != 0) return;
        // The threads of a group run their loops from its creation on.
        asked.is_asked_ =
            !asked.group_.empty() || asked.which_->pulse.running.load(std::memory_order_relaxed);
        if (asked.on_its_way_ != nullptr) return;
        asked.on_its_way_ = asked.shared_from_this();
        asked.which_->post(asked);
    }

    static constinit std::atomic<loop_survey*> current_survey;

    std::mutex guard_;
    std::condition_variable answered_;
    std::vector<entry> all_;
};

constinit std::atomic<loop_survey*> loop_survey::current_survey = nullptr;

void surveyed_loop::run() noexcept {
    // Only this thread changes `which_`. The last turns of a loop, after it has left, may run us.
    if (which_ == nullptr) return in_->answer(*this, nullptr);
    const loop_metrics figures = which_->metrics();
    in_->answer(*this, &figures);
}
void surveyed_loop::drop() noexcept {
    in_->answer(*this, nullptr);
}

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
    return loop_survey::of_process().ask_all();
}
std::vector<loop_metrics> survey_loops(std::span<const std::shared_ptr<surveyed_loop>> asked) {
    return loop_survey::of_process().ask_some(asked);
}

} // namespace simplenet::v0::detail
