#include <simplenet/core/contract.hpp>

#include <cstdio>
#include <cstdlib>

namespace simplenet::inline v0::detail {

void contract_violation(const char* file, int line, const char* expression,
                        const char* message) noexcept {
    std::fprintf(stderr, "%s:%d: simplenet contract violation: %s (%s)\n", file, line, message,
                 expression);
    std::fflush(stderr);
    std::abort();
}

} // namespace simplenet::inline v0::detail
