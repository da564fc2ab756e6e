#pragma once
// What is wrong with a configuration. Used by all that reads and checks one.

#include "httpd/config/configuration.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace httpd {

enum class severity : std::uint8_t {
    warning, ///< The program does what is written, which may not be what was meant.
    finding, ///< The same, but --check fails: such as a route that nothing can reach.
    error,   ///< The program does not start.
};

struct problem {
    httpd::severity severity = httpd::severity::error;
    position where; ///< Both 0: nothing in particular.
    std::string text;
};

/// `file:line:column`.
[[nodiscard]] std::string place_of(const problem& problem, std::string_view file);

/// `file:line:column: text`, with `warning:` before the text of a problem that is one.
[[nodiscard]] std::string to_text(const problem& problem, std::string_view file);

/// `line:column`, to mention a second place in a text.
[[nodiscard]] std::string to_text(position where);

/// The name between backticks, for texts; quoted if it has what cannot be shown.
[[nodiscard]] std::string code(std::string_view name);

/// Collects all that is wrong, so that one run tells everything.
class problems {
public:
    void add(position where, std::string text, severity severity = severity::error) {
        list_.push_back({severity, where, std::move(text)});
    }

    /// Whether the program can start.
    [[nodiscard]] bool can_start() const noexcept { return !worst_is(severity::error); }
    /// Whether --check is content.
    [[nodiscard]] bool can_pass() const noexcept { return !worst_is(severity::finding); }

    /// In the order of the file.
    [[nodiscard]] std::vector<problem> sorted() const;

private:
    [[nodiscard]] bool worst_is(severity least) const noexcept;

    std::vector<problem> list_;
};

} // namespace httpd
