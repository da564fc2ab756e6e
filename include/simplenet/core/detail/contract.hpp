#pragma once
// Contract checks: a bug in the caller (or in the library) stops the program with a message that
// names it. Layer core. Used everywhere; outcomes of I/O are never reported this way.

#include <simplenet/core/abi.hpp>

#pragma GCC visibility push(default)

namespace simplenet::v0::detail {

/// Prints file, line, `message` and, unless it is null, the broken expression to standard error,
/// then aborts.
[[noreturn]] void contract_violation(const char* file, int line, const char* expression,
                                     const char* message) noexcept;

/// `tell` prints more about a violation on the calling thread: about coroutines, which belong to a
/// higher layer. Any thread.
void on_contract_violation(void (*tell)() noexcept) noexcept;

} // namespace simplenet::v0::detail

/// Checked in every build, unless a comment beside the check gives a measurement against it.
#define SIMPLENET_EXPECTS(condition, message)                                                      \
    (static_cast<bool>(condition)                                                                  \
         ? static_cast<void>(0)                                                                    \
         : ::simplenet::detail::contract_violation(__FILE__, __LINE__, #condition, message))

/// Checked in debug builds only: for checks on the hot path.
#ifdef NDEBUG
#define SIMPLENET_DEBUG_EXPECTS(condition, message) static_cast<void>(0)
#else
#define SIMPLENET_DEBUG_EXPECTS(condition, message) SIMPLENET_EXPECTS(condition, message)
#endif

#pragma GCC visibility pop
