// simplenet-httpd: a web server. See docs/usage/httpd-reference.md.

#include "httpd/config/command_line.hpp"
#include "httpd/config/print.hpp"
#include "httpd/process/program.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace {

constexpr int wrong_usage = 2;

// To standard error: all that is wrong.
void show(const httpd::reading_result& read, const httpd::command_line& line) {
    const std::string name = line.config.empty() ? "simplenet-httpd" : line.config;
    for (const httpd::problem& each : read.problems.sorted())
        std::fprintf(stderr, "%s\n", to_text(each, name).c_str());
}

// A descriptor that is missing would be the next file or socket, and get what is printed.
void open_standard_descriptors() {
    while (true) {
        const int opened = ::open("/dev/null", O_RDWR);
        if (opened > STDERR_FILENO) ::close(opened);
        if (opened < 0 || opened > STDERR_FILENO) return;
    }
}

int check(const httpd::reading_result& read, const httpd::command_line& line) {
    if (!read.problems.can_pass()) return wrong_usage;
    if (line.config.empty()) {
        std::puts("simplenet-httpd: the options are correct; --config was not given");
    } else {
        std::printf("%s: the configuration is correct\n", line.config.c_str());
    }
    return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char** argv) {
    open_standard_descriptors();
    const httpd::command_line line = httpd::parse_command_line(argc, argv);
    using httpd::command;
    if (line.command == command::done || line.command == command::wrong) {
        std::fputs(line.message.c_str(), line.command == command::done ? stdout : stderr);
        return line.command == command::done ? EXIT_SUCCESS : wrong_usage;
    }
    if (line.command == command::reference) {
        std::fputs(httpd::reference_page().c_str(), stdout);
        return EXIT_SUCCESS;
    }

    const httpd::reading_result read = configure(line);
    show(read, line);
    if (line.command == command::check) return check(read, line);
    if (!read.problems.can_start()) return wrong_usage;
    if (line.command == command::print) {
        std::fputs(print_configuration(read.configuration).c_str(), stdout);
        return EXIT_SUCCESS;
    }
    return httpd::run_program(line, read);
}
