#pragma once
// loop_access: what the library does with an event_loop and users cannot. Layer runtime, private.

#include "threads/posting_queue.hpp"

#include <simplenet/runtime/event_loop.hpp>

#include <memory>
#include <span>
#include <vector>

namespace simplenet::v0::detail {

class surveyed_loop;

struct loop_access {
    /// From here on run() returns only after stop(). Loop thread.
    static void run_without_work(event_loop& loop) noexcept;
    /// From its return on, the loop's post() destroys its callable and spawn_remote() its task. The
    /// library's own posts still arrive. Any thread.
    static void refuse_posts(event_loop& loop) noexcept;
    /// post() without an allocation. Any thread.
    static void post(event_loop& loop, posted& item) noexcept { loop.post_item(item); }
    /// In the survey of all loops.
    [[nodiscard]] static std::vector<std::shared_ptr<surveyed_loop>>
    places_of(std::span<const event_loop> loops);
    /// What the destructor does, except that the object stays: then every thread may still call
    /// post(), spawn_remote(), stop() and selected_backend(), and any thread may destroy it. Loop
    /// thread.
    static void end(event_loop& loop) noexcept;
    /// For the library's own posts. Any thread.
    [[nodiscard]] static posting_queue& queue_of(event_loop& loop) noexcept;
};

} // namespace simplenet::v0::detail
