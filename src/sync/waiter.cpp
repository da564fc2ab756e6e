#include <simplenet/sync/detail/waiter.hpp>

namespace simplenet::v0::detail {

void waiter::refuse(std::coroutine_handle<> caller, scope& within) noexcept {
    suspend(caller, within);
    end_ = end_by(within.reason);
    within.queue->refuse(*this, within);
}

} // namespace simplenet::v0::detail
