#include <simplenet/runtime/cross_channel.hpp>

#include "runtime/loop.hpp"

namespace simplenet::inline v0::detail {

void post_to(run_queue& queue, posted& item) noexcept {
    static_cast<loop&>(queue).post(item);
}

} // namespace simplenet::inline v0::detail
