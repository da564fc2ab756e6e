#pragma once
// php_fpm: PHP's own FastCGI server, with scripts that a test writes.

#include "support/closed_port.hpp"
#include "support/raw_peer.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <glob.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace simplenet::v0::testing {

/// The program, under one of the names that distributions give it.
inline std::optional<std::string> find_php_fpm() {
    std::optional<std::string> found;
    for (const char* const pattern : {"/usr/sbin/php-fpm*", "/usr/local/sbin/php-fpm*"}) {
        glob_t names{};
        if (::glob(pattern, 0, nullptr, &names) == 0) found = names.gl_pathv[names.gl_pathc - 1];
        ::globfree(&names);
        if (found) break;
    }
    return found;
}

/// A master and its workers, in a directory of their own, without privileges. One pool listens at a
/// Unix socket, one at a TCP port; both have two workers.
class php_fpm {
public:
    explicit php_fpm(const std::string& program) {
        std::filesystem::create_directory(root());
        std::ofstream{folder_ / "fpm.conf"} << configuration();
        if (::geteuid() == 0) give_away();
        process_ = checked(::fork());
        if (process_ == 0) run(program);
        wait_until_it_listens();
    }
    php_fpm(const php_fpm&) = delete;
    php_fpm& operator=(const php_fpm&) = delete;
    ~php_fpm() {
        ::kill(process_, SIGTERM);
        ::waitpid(process_, nullptr, 0);
    }

    [[nodiscard]] std::string root() const { return folder_ / "root"; }
    [[nodiscard]] std::string local_address() const { return "unix:" + socket(); }
    [[nodiscard]] std::string tcp_address() const {
        return "127.0.0.1:" + std::to_string(port_.number());
    }
    void write(std::string_view name, std::string_view text) const {
        const std::filesystem::path where = std::filesystem::path{root()} / name;
        std::filesystem::create_directories(where.parent_path());
        std::ofstream{where} << text;
        std::filesystem::permissions(where, std::filesystem::perms{0644});
        std::filesystem::permissions(where.parent_path(), std::filesystem::perms{0755});
    }
    /// Ends all workers; the master makes others.
    void restart_workers() const {
        ::kill(process_, SIGUSR2);
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        wait_until_it_listens();
    }

private:
    static constexpr uid_t nobody = 65534;

    [[nodiscard]] std::string socket() const { return folder_ / "fpm.sock"; }
    [[nodiscard]] std::string configuration() const {
        const std::string workers =
            "\npm = static\npm.max_children = 2\ncatch_workers_output = no\n"
            "clear_env = yes\n";
        return "[global]\nerror_log = " + (folder_ / "fpm.log") + "\ndaemonize = no\n" +
               "[local]\nlisten = " + socket() + workers +
               "[tcp]\nlisten = 127.0.0.1:" + std::to_string(port_.number()) + workers;
    }
    void give_away() const {
        const std::filesystem::path top{folder_ / ""};
        checked(::chown(top.c_str(), nobody, nobody));
        for (const auto& each : std::filesystem::recursive_directory_iterator{top})
            checked(::chown(each.path().c_str(), nobody, nobody));
    }
    [[noreturn]] void run(const std::string& program) const {
        const int nowhere = ::open("/dev/null", O_RDWR);
        for (const int each : {0, 1, 2})
            ::dup2(nowhere, each);
        if (::geteuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) ::_exit(1);
        const std::string file = folder_ / "fpm.conf";
        ::execl(program.c_str(), program.c_str(), "-n", "-F", "-y", file.c_str(), nullptr);
        ::_exit(1);
    }
    void wait_until_it_listens() const {
        sockaddr_un to{};
        to.sun_family = AF_UNIX;
        socket().copy(to.sun_path, sizeof to.sun_path - 1);
        for (int tries = 0; tries < 1000; ++tries) {
            const unique_fd client{checked(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))};
            const auto* const any = reinterpret_cast<const sockaddr*>(&to);
            if (::connect(client.get(), any, sizeof to) == 0) return;
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
        throw std::runtime_error{"php-fpm does not listen"};
    }

    temporary_directory folder_;
    closed_port port_;
    pid_t process_ = 0;
};

} // namespace simplenet::v0::testing
