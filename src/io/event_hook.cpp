#include "io/event_hook.hpp"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <exception>
#include <string>

namespace simplenet::v0 {

inline namespace runtime {

const char* to_string(loop_event_kind which) noexcept {
    switch (which) {
    case loop_event_kind::accept_paused:
        return "accept_paused";
    case loop_event_kind::stalled:
        return "stalled";
    case loop_event_kind::handed_over:
        return "handed_over";
    case loop_event_kind::connection_refused:
        return "connection_refused";
    }
    return "unknown";
}

} // namespace runtime

namespace detail {

void event_hook::tell(loop_event event, const char* format, ...) const noexcept {
    if (function_ == nullptr) return;
    // On the stack: an event about a lack of memory must not need any.
    std::array<char, 256> text{};
    std::va_list values;
    va_start(values, format);
    const int length = std::vsnprintf(text.data(), text.size(), format, values);
    va_end(values);
    const auto most = static_cast<int>(text.size()) - 1;
    event.text = {text.data(), static_cast<std::size_t>(length < most ? length : most)};
    function_(event, context_);
}

const char* describe_errno(int error, char (&to)[96]) noexcept {
    try {
        const std::string message = std::system_category().message(error);
        std::snprintf(to, sizeof to, "%s", message.c_str());
    } catch (const std::exception&) {
        std::snprintf(to, sizeof to, "error %d", error);
    }
    return to;
}

} // namespace detail

} // namespace simplenet::v0
