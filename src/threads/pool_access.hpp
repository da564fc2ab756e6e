#pragma once
// pool_access: the insides of pools and strands. Layer threads, private.

#include <simplenet/threads/strand.hpp>
#include <simplenet/threads/thread_pool.hpp>

#include <memory>

namespace simplenet::v0::detail {

struct pool_access {
    [[nodiscard]] static const std::shared_ptr<pool_core>& core(const thread_pool& pool) noexcept {
        return pool.core_;
    }
};

} // namespace simplenet::v0::detail
