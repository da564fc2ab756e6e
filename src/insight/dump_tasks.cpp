#include <simplenet/insight/dump_tasks.hpp>

#include "insight/standard_error.hpp"
#include "loop/loop.hpp"

#include <ostream>
#include <string>

#include <unistd.h>

namespace simplenet::v0 {
inline namespace runtime {

void dump_tasks(std::ostream& to) {
    std::string text;
    detail::current_loop().describe(text);
    to << text;
}

} // namespace runtime

void detail::print_to_standard_error(std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
        if (count <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(count));
    }
}

} // namespace simplenet::v0

void simplenet_dump_tasks() noexcept {
    std::string text;
    if (simplenet::detail::run_queue::current() == nullptr) {
        text = "no event loop runs on this thread\n";
    } else {
        simplenet::detail::current_loop().describe(text);
    }
    simplenet::detail::print_to_standard_error(text);
}
