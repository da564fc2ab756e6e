#pragma once
// loop_survey: the figures of all loops of the process, from any thread. Layer insight, private.
//
// A loop keeps its figures where other threads can read them (loop::published_metrics()), so nobody
// waits for a loop. A loop of a group is observed from the beginning, any other from the first
// question on.

#include <simplenet/io/loop_options.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::detail {

class loop;
class surveyed_loop;

/// One loop of the process, until it ends. A member of the loop's owner.
class survey_place {
public:
    survey_place() noexcept = default;
    survey_place(const survey_place&) = delete;
    survey_place& operator=(const survey_place&) = delete;
    ~survey_place() { leave(); }

    /// The loop gets a number: the lowest that is free among the loops of no group.
    void take(loop& surveyed);
    /// Before the loop's end; its figures are taken for the last time. Later calls do nothing.
    void leave() noexcept;

    [[nodiscard]] const std::shared_ptr<surveyed_loop>& entry() const noexcept { return entry_; }

private:
    std::shared_ptr<surveyed_loop> entry_; // null: has no place
};

/// Makes loops a group: they are numbered in their order. If there is a group of this name, the new
/// one is called `name-2` or so.
void name_group(std::span<const std::shared_ptr<surveyed_loop>> loops, std::string_view name);

struct loop_figures {
    std::string group; // empty: none
    std::size_t number = 0;
    loop_metrics metrics;
};

/// All loops, in the order of groups and numbers.
[[nodiscard]] std::vector<loop_figures> survey_loops();
/// These. Those that have left have the figures of their end, with nothing alive.
[[nodiscard]] std::vector<loop_metrics>
survey_loops(std::span<const std::shared_ptr<surveyed_loop>> asked);

} // namespace simplenet::v0::detail
