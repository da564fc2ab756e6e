#pragma once
// remote_tasks: tasks for another loop, and the exceptions of their handles.

#include "support/error_of.hpp"

#include <simplenet/coro/task.hpp>
#include <simplenet/coro/this_task.hpp>
#include <simplenet/threads/remote_handle.hpp>
#include <simplenet/time/sleep.hpp>

#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>

namespace simplenet::v0::testing {

inline task<int> answer(int value) {
    co_await yield();
    co_return value;
}
inline task<int> throws(const char* what) {
    co_await yield();
    throw std::runtime_error{what};
}
inline task<std::error_code> sleep_for_ever() {
    co_return error_of(co_await async_sleep(std::chrono::hours{24}));
}

/// The text of the exception that `function()` throws.
template <class Function>
std::string thrown_by(Function function) {
    try {
        static_cast<void>(function());
    } catch (const std::exception& thrown) {
        return thrown.what();
    }
    return "nothing";
}
template <class T>
std::error_code error_thrown_by_get(remote_handle<T>& handle) {
    try {
        static_cast<void>(handle.get());
    } catch (const std::system_error& thrown) {
        return thrown.code();
    }
    return {};
}

} // namespace simplenet::v0::testing
