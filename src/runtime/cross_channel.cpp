#include <simplenet/runtime/cross_channel.hpp>

#include "runtime/loop.hpp"

namespace simplenet::inline v0::detail {

bool cross_lock::push(run_queue& queue, posted& item) noexcept {
    return static_cast<loop&>(queue).post_asleep(item);
}

void cross_lock::wake(run_queue& queue) noexcept {
    static_cast<loop&>(queue).wake_for_post();
}

} // namespace simplenet::inline v0::detail
