#pragma once
// Configurations for tests: the shortest ones that are correct, and with one key added.

#include "httpd/config/expected.hpp"
#include "httpd/config/keys.hpp"
#include "httpd/config/reader.hpp"

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace httpd_tests {

using namespace httpd;

/// What has to stand beside a key, in lines.
inline std::string needed_lines(const section& section, const key& key) {
    if (key.name == "proxy_from") return "proxy_protocol = \"required\"\n";
    if (key.needs.empty()) return "";
    const httpd::key& need = *section.find(key.needs.front());
    return std::string{need.name} + " = " + example_of(need) + '\n';
}

/// `name = example` for each key that the section must have, but for `except`.
inline std::string required_lines(const section& section, std::string_view except = {}) {
    std::string lines;
    for (const key& each : section.keys)
        if (each.required && each.type != value_type::tables && each.name != except)
            lines += std::string{each.name} + " = " + example_of(each) + '\n';
    return lines;
}

/// A correct configuration with a table of the section that has these lines, which must contain
/// what is required.
inline std::string document_with(const section& section, const std::string& lines) {
    const std::string listen = "[[listen]]\naddress = \"127.0.0.1:0\"\n";
    const std::string site = "[[site]]\nroot = \"/\"\n";
    const std::string route = "[[site.route]]\nmatch = \"/x/*\"\n";
    const std::map<std::string_view, std::pair<std::string, std::string>> around{
        {"", {"", listen + site}},
        {"[[listen]]", {"[[listen]]\n", site}},
        {"tls", {listen + "[listen.tls]\n", site}},
        {"[[site]]", {listen + "[[site]]\n", ""}},
        {"compress", {listen + site + "[site.compress]\n", ""}},
        {"auth", {listen + site + "[site.auth]\n", ""}},
        {"rate", {listen + site + "[site.rate]\n", ""}},
        {"[[site.route]]", {listen + site + "[[site.route]]\n", ""}},
        {"backend", {listen + site + route + "[[site.route.proxy]]\n", ""}},
        {"redirect", {listen + site + route + "[site.route.redirect]\n", ""}},
        {"answer", {listen + site + route + "[site.route.answer]\n", ""}},
        {"[limits]", {listen + site + "[limits]\n", ""}},
        {"[log]", {listen + site + "[log]\n", ""}},
        {"[status]", {listen + site + "[status]\n", ""}},
    };
    const auto& [before, behind] = around.at(section.name);
    // Without it, or a route, a site answers nothing.
    const bool rootless = section.name == "[[site]]" && lines.find("root =") == std::string::npos;
    return before + (rootless ? "root = \"/\"\n" : "") + lines + behind;
}

/// Without a look at files.
inline reading_result read(std::string_view text) {
    return read_text(text, "/etc/site.toml", false);
}

/// All problems, each in a line.
inline std::string problems_of(const reading_result& read, std::string_view file = "site.toml") {
    std::string text;
    for (const problem& each : read.problems.sorted())
        text += to_text(each, file) + '\n';
    return text;
}

} // namespace httpd_tests
