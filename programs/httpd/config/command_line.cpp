#include "httpd/config/command_line.hpp"

#include "httpd/config/check.hpp"
#include "httpd/config/syntax.hpp"
#include "httpd/config/text.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace httpd {
namespace {

std::string absolute(const std::string& path) {
    std::error_code ignored;
    std::string whole = std::filesystem::absolute(path, ignored).lexically_normal().string();
    while (whole.size() > 1 && whole.ends_with('/'))
        whole.pop_back();
    return whole;
}

// One site with the files of the root.
reading_result without_file(const command_line& line) {
    reading_result made;
    configuration& whole = made.configuration;
    std::vector<std::string> addresses = line.listen;
    if (addresses.empty()) addresses.emplace_back("127.0.0.1:8080");
    for (const std::string& each : addresses) {
        const auto parsed = parse_endpoint(each);
        if (!parsed) {
            made.problems.add({}, "--listen " + quote(each) + ' ' + parsed.error());
            continue;
        }
        for (const listener& other : whole.listen)
            if (other.address == *parsed && parsed->port() != 0)
                made.problems.add({}, "--listen " + quote(each) + " is given twice");
        listener& added = whole.listen.emplace_back();
        added.address = *parsed;
        if (!line.tls.empty())
            added.tls = tls_options{.certificates = {{.certificate = absolute(line.tls[0]),
                                                      .key = absolute(line.tls[1])}}};
    }
    site& only = whole.sites.emplace_back();
    only.root = absolute(line.root);
    check_files(whole, made.problems);
    return made;
}

void override_from(const command_line& line, configuration& whole) {
    if (line.workers) whole.workers = *line.workers;
    if (line.pin) whole.pin = true;
    whole.backend = line.backend;
}

// What somebody may have meant who comes from another server; a line, or nothing.
std::string guess(std::span<const char* const> arguments) {
    const auto has = [arguments](std::string_view one) {
        return std::ranges::any_of(
            arguments, [one](const char* each) { return std::string_view{each} == one; });
    };
    std::string lines;
    if (has("-c")) lines += "The file of the configuration is given by --config.\n";
    if (has("-t")) lines += "The configuration is checked by --check.\n";
    if (has("-s")) lines += "Signals reload it (SIGHUP), open its logs again, and stop it.\n";
    if (has("-V") || has("-v")) lines += "The version is shown by --version.\n";
    if (!lines.empty()) return lines;
    if (arguments.size() != 1 || std::string_view{arguments[0]}.starts_with('-')) return {};
    const std::string only = arguments[0];
    std::error_code ignored;
    const bool is_directory = std::filesystem::is_directory(only, ignored);
    return "Is it the " +
           std::string{is_directory ? "directory: --root " : "configuration: --config "} + only +
           "?\n";
}

} // namespace

command_line parse_command_line(int count, const char* const* arguments) {
    command_line line;
    CLI::App app{"A web server: files, FastCGI, reverse proxy.", "simplenet-httpd"};
    app.footer("Without --config, the files of --root are served at --listen.\n"
               "SIGTERM and SIGINT stop it, SIGHUP reloads the configuration and certificates, "
               "SIGUSR1 opens logs again.");
    bool check = false;
    bool print = false;
    bool reference = false;

    auto* const config =
        app.add_option("--config", line.config, "The file of the configuration")->type_name("FILE");
    app.add_option("--root", line.root, "The directory that is served")
        ->type_name("DIR")
        ->default_str(".")
        ->excludes(config);
    app.add_option("--listen", line.listen,
                   "Where, such as 0.0.0.0:80 or [::]:80; may be repeated [127.0.0.1:8080]")
        ->type_name("ADDRESS:PORT")
        ->take_all()
        ->expected(1)
        ->allow_extra_args(false)
        ->excludes(config);
    app.add_option("--tls", line.tls, "A certificate and its key, in PEM")
        ->type_name("CERT KEY")
        ->expected(2)
        ->excludes(config);
    app.add_option("--workers", line.workers, "Threads that serve; 0: one for each CPU")
        ->type_name("N")
        ->check(CLI::Range(0U, 1024U));
    app.add_flag("--pin", line.pin, "Each worker stays on a CPU of its own");
    std::string backend = "automatic";
    app.add_option("--backend", backend, "How the program waits for events")
        ->check(CLI::IsMember({"automatic", "epoll", "io_uring"}));
    auto* const check_flag = app.add_flag(
        "--check", check, "Says what is wrong with the configuration; exit 2 if anything is");
    app.add_flag("--print-config", print, "Prints the configuration with all defaults")
        ->excludes(check_flag);
    app.add_flag("--reference", reference, "Prints the reference of the configuration");
    app.set_version_flag("--version", "simplenet-httpd " SIMPLENET_HTTPD_VERSION);

    try {
        app.parse(count, arguments);
    } catch (const CLI::Success& asked) { // --help, --version
        std::ostringstream out;
        app.exit(asked, out, out);
        line.command = command::done;
        line.message = out.str();
        return line;
    } catch (const CLI::ParseError& wrong) {
        line.command = command::wrong;
        line.message = std::string{"simplenet-httpd: "} + wrong.what() + '\n' +
                       guess(std::span{arguments, static_cast<std::size_t>(count)}.subspan(1)) +
                       "Try simplenet-httpd --help.\n";
        return line;
    }

    if (backend == "epoll") line.backend = simplenet::backend::epoll;
    if (backend == "io_uring") line.backend = simplenet::backend::io_uring;
    if (check) line.command = command::check;
    if (print) line.command = command::print;
    if (reference) line.command = command::reference;
    return line;
}

reading_result configure(const command_line& line) {
    reading_result made = line.config.empty() ? without_file(line) : read_file(line.config);
    override_from(line, made.configuration);
    check_workers(made.configuration, made.problems);
    return made;
}

} // namespace httpd
