#pragma once
// loop_group_access: what the library does with an event_loop_group and users cannot. Layer
// runtime, private.

#include <simplenet/runtime/event_loop_group.hpp>

#include <memory>

namespace simplenet::v0::detail {

/// A friend of event_loop_group.
struct loop_group_access {
    /// Expired once the group is destroyed: then its loops are gone, too.
    [[nodiscard]] static std::weak_ptr<const void> life_of(const event_loop_group& group) noexcept;
};

} // namespace simplenet::v0::detail
