#pragma once
// `--name value` and `--name=value` for the programs of this folder.

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace bench {

/// Reads options one by one; ends the program with a message if it meets an unknown one.
class arguments {
public:
    arguments(int argc, char** argv) {
        for (int at = 1; at < argc; ++at) {
            const std::string_view word{argv[at]};
            if (!word.starts_with("--")) usage("options begin with --", word);
            const auto equals = word.find('=');
            if (equals != std::string_view::npos) {
                given_.push_back({word.substr(2, equals - 2), word.substr(equals + 1)});
            } else if (at + 1 < argc && std::string_view{argv[at + 1]}.substr(0, 2) != "--") {
                given_.push_back({word.substr(2), argv[++at]});
            } else {
                given_.push_back({word.substr(2), "1"});
            }
        }
    }

    [[nodiscard]] std::string_view text(std::string_view name, std::string_view otherwise) {
        std::string_view value = otherwise;
        for (option& each : given_) {
            if (each.name != name) continue;
            each.known = true;
            value = each.value;
        }
        return value;
    }
    [[nodiscard]] unsigned long number(std::string_view name, unsigned long otherwise) {
        const std::string_view value = text(name, {});
        if (value.empty()) return otherwise;
        unsigned long parsed = 0;
        const auto [end, error] = std::from_chars(value.begin(), value.end(), parsed);
        if (error != std::errc{} || end != value.end()) usage("not a number", value);
        return parsed;
    }
    [[nodiscard]] bool flag(std::string_view name) { return number(name, 0) != 0; }

    /// @pre every option was asked for.
    void done() const {
        for (const option& each : given_) {
            if (!each.known) usage("unknown option", each.name);
        }
    }

private:
    struct option {
        std::string_view name;
        std::string_view value;
        bool known = false;
    };

    [[noreturn]] static void usage(const char* what, std::string_view which) {
        std::fprintf(stderr, "%s: %.*s\n", what, static_cast<int>(which.size()), which.data());
        std::exit(2);
    }

    std::vector<option> given_;
};

} // namespace bench
