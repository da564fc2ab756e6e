#include "server/handler_exceptions.hpp"

#include "server/server_site.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>

namespace simplenet::v0::detail {

namespace {

/// One line for all handlers of the process, at most once a second.
void print_handler_exception(const std::exception_ptr& exception) noexcept {
    using namespace std::chrono;
    static std::atomic<std::int64_t> next{0};
    static std::atomic<std::uint64_t> suppressed{0};
    const std::int64_t now = steady_clock::now().time_since_epoch().count();
    std::int64_t due = next.load(std::memory_order_relaxed);
    const std::int64_t later = now + nanoseconds{seconds{1}}.count();
    if (now < due || !next.compare_exchange_strong(due, later, std::memory_order_relaxed)) {
        suppressed.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const auto others =
        static_cast<unsigned long long>(suppressed.exchange(0, std::memory_order_relaxed));
    try {
        std::rethrow_exception(exception);
    } catch (const std::exception& thrown) {
        std::fprintf(stderr, "simplenet: a handler threw: %s (%llu more before)\n", thrown.what(),
                     others);
    } catch (...) {
        std::fprintf(stderr, "simplenet: a handler threw (%llu more before)\n", others);
    }
}

} // namespace

void report_handler_exception(std::exception_ptr exception) noexcept {
    if (const auto hook = run_queue::require_current().on_unhandled) {
        hook(std::move(exception));
    } else {
        print_handler_exception(exception);
    }
}

void report_handler_exception(const server_settings& settings,
                              std::exception_ptr exception) noexcept {
    if (settings.on_handler_exception != nullptr) {
        settings.on_handler_exception(std::move(exception), settings.context);
    } else {
        report_handler_exception(std::move(exception));
    }
}

} // namespace simplenet::v0::detail
