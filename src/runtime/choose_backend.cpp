#include "runtime/choose_backend.hpp"

#include "epoll/make_backend.hpp"
#include "io/backend.hpp"
#if SIMPLENET_HAS_IO_URING
#include "io_uring/make_backend.hpp"
#endif
#include "sys/lack_of_descriptors.hpp"

#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

namespace simplenet::v0 {
namespace detail {

namespace {

/// The category of the reasons why a requested backend is unavailable: errnos, and these values.
class backend_errors final : public std::error_category {
public:
    static constexpr int not_in_this_build = -1;
    static constexpr int no_such_name = -2;

    const char* name() const noexcept override { return "simplenet backend"; }
    std::string message(int value) const override {
        switch (value) {
        case no_such_name:
            return "SIMPLENET_BACKEND names no backend: epoll, io_uring or automatic";
        case not_in_this_build:
            return "io_uring is unavailable: the library was built without it";
        default:
            return "io_uring is unavailable: " + std::system_category().message(value);
        }
    }
    std::error_condition default_error_condition(int value) const noexcept override {
        if (value == no_such_name) return std::errc::invalid_argument;
        return {static_cast<int>(errc::backend_unavailable), simplenet::error_category()};
    }
};

std::error_code backend_error(int value) noexcept {
    static const backend_errors category;
    return {value, category};
}

/// The value of SIMPLENET_BACKEND, read once per process.
result<backend> chosen_by_environment() noexcept {
    static const result<backend> choice = []() -> result<backend> {
        const char* const text = std::getenv("SIMPLENET_BACKEND");
        if (text == nullptr || *text == '\0') return backend::automatic;
        for (const backend each : {backend::automatic, backend::epoll, backend::io_uring}) {
            if (std::string_view{text} == to_string(each)) return each;
        }
        return fail(backend_error(backend_errors::no_such_name));
    }();
    return choice;
}

/// The backend to use, and whether epoll may replace it.
struct decision {
    backend which;
    bool may_fall_back;
};

result<decision> decide(backend wanted) noexcept {
    if (wanted != backend::automatic) return decision{wanted, false};
    const auto environment = chosen_by_environment();
    if (!environment) return fail(environment);
    if (*environment != backend::automatic) return decision{*environment, false};
#if SIMPLENET_HAS_IO_URING
    const auto works = probe_uring();
    if (works) return decision{backend::io_uring, true};
    // epoll would suffer from it too, so it is no reason to avoid io_uring for ever.
    if (sys::lacks_descriptors(works.error())) return fail(works);
#endif
    return decision{backend::epoll, false};
}

} // namespace

result<std::unique_ptr<backend_driver>> make_backend(io_queue& owner, const loop_options& options) {
    const auto decided = decide(options.backend);
    if (!decided) return fail(decided);
#if SIMPLENET_SEAMS
    if (decided->which == simulated_backend) return make_epoll_backend(owner, options);
#endif
    if (decided->which == backend::epoll) return make_epoll_backend(owner, options);
#if SIMPLENET_HAS_IO_URING
    if (auto works = probe_uring(); !works) {
        if (sys::lacks_descriptors(works.error())) return fail(works);
        return fail(backend_error(works.error().value()));
    }
    auto made = make_uring_backend(owner, options);
    if (made || sys::lacks_descriptors(made.error())) return made;
    // It works in general, but not once more: most likely the limit of locked memory
    // (RLIMIT_MEMLOCK).
    if (decided->may_fall_back) return make_epoll_backend(owner, options);
    return fail(backend_error(made.error().value()));
#else
    return fail(backend_error(backend_errors::not_in_this_build));
#endif
}

} // namespace detail

inline namespace runtime {

const char* to_string(backend which) noexcept {
#if SIMPLENET_SEAMS
    if (which == detail::simulated_backend) return "simulated";
#endif
    switch (which) {
    case backend::automatic:
        return "automatic";
    case backend::epoll:
        return "epoll";
    case backend::io_uring:
        return "io_uring";
    }
    return "unknown";
}

result<> probe_backend(backend which) noexcept {
    if (which != backend::io_uring) return {};
#if SIMPLENET_HAS_IO_URING
    return detail::probe_uring();
#else
    return fail(errc::backend_unavailable);
#endif
}

} // namespace runtime
} // namespace simplenet::v0
