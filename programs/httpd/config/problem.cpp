#include "httpd/config/problem.hpp"

#include "httpd/config/text.hpp"

#include <algorithm>
#include <tuple>

namespace httpd {

std::string place_of(const problem& problem, std::string_view file) {
    std::string text{file};
    if (problem.where.line != 0) {
        text += ':';
        text += to_text(problem.where);
    }
    return text;
}

std::string to_text(const problem& problem, std::string_view file) {
    std::string text = place_of(problem, file);
    text += problem.severity == severity::warning ? ": warning: " : ": ";
    text += problem.text;
    return text;
}

std::string to_text(position where) {
    return std::to_string(where.line) + ':' + std::to_string(where.column);
}

std::string code(std::string_view name) {
    std::string safe = quote(name);
    if (safe.size() != name.size() + 2) return safe; // something had to be escaped
    safe.front() = safe.back() = '`';
    return safe;
}

std::vector<problem> problems::sorted() const {
    std::vector<problem> result = list_;
    std::ranges::sort(result, {}, [](const problem& each) {
        return std::tuple<std::uint32_t, std::uint32_t, std::string_view>{
            each.where.line, each.where.column, each.text};
    });
    return result;
}

bool problems::worst_is(severity least) const noexcept {
    return std::ranges::any_of(list_, [&](const problem& each) { return each.severity >= least; });
}

} // namespace httpd
