#pragma once
// The command line of simplenet-httpd. Used by main().

#include "httpd/config/configuration.hpp"
#include "httpd/config/reader.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace httpd {

/// What is asked for.
enum class command : std::uint8_t {
    serve,
    check,     ///< --check
    print,     ///< --print-config
    reference, ///< --reference
    done,      ///< --help, --version: `message` is the answer.
    wrong,     ///< `message` says why; the exit status is 2.
};

/// What the command line says. Reading it again after the file has changed gives another
/// configuration: see configure().
struct command_line {
    httpd::command command = command::serve;
    std::string message;

    std::string config; ///< Empty: the program is configured by the three that follow.
    std::string root = ".";
    std::vector<std::string> listen; ///< Empty: 127.0.0.1:8080
    std::vector<std::string> tls;    ///< Empty, or a certificate and a key.

    std::optional<unsigned> workers;
    bool pin = false;
    simplenet::backend backend = simplenet::backend::automatic;
};

/// Never ends the program. Throws std::bad_alloc.
[[nodiscard]] command_line parse_command_line(int count, const char* const* arguments);

/// Reads the file, or makes a configuration without one; then what the command line overrides.
/// Any number of times. Blocks.
[[nodiscard]] reading_result configure(const command_line& line);

} // namespace httpd
