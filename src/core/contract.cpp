#include <simplenet/core/detail/contract.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace simplenet::v0::detail {

namespace {
constinit std::atomic<void (*)() noexcept> tell_more = nullptr;
}

void contract_violation(const char* file, int line, const char* expression,
                        const char* message) noexcept {
    std::fprintf(stderr, "%s:%d: simplenet contract violation: %s", file, line, message);
    if (expression != nullptr) std::fprintf(stderr, " (%s)", expression);
    std::fputs("\n", stderr);
    if (auto* const tell = tell_more.exchange(nullptr)) tell(); // once, in case it fails too
    std::fflush(stderr);
    std::abort();
}

void on_contract_violation(void (*tell)() noexcept) noexcept {
    tell_more.store(tell, std::memory_order_relaxed);
}

} // namespace simplenet::v0::detail
