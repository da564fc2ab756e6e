#pragma once
// thread_names: names of the threads of a group or a pool. Layer threads, private.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <pthread.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::detail {

/// "name-number" in the 15 characters that the kernel keeps (pthread_setname_np(3)): the name is
/// cut, the number is not.
[[nodiscard]] inline std::string thread_name(std::string_view name, std::size_t number) {
    constexpr std::size_t room = 15;
    const std::string ending = '-' + std::to_string(number);
    return std::string{name.substr(0, room - std::min(ending.size(), room))} + ending;
}

/// Only for people, so a failure does not matter.
inline void name_thread(pthread_t thread, std::string_view name, std::size_t number) {
    static_cast<void>(::pthread_setname_np(thread, thread_name(name, number).c_str()));
}

} // namespace simplenet::v0::detail
