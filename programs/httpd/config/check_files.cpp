// check_files(): whether the files that a configuration names are there.

#include "httpd/config/certificates.hpp"
#include "httpd/config/check.hpp"
#include "httpd/config/routing.hpp"
#include "httpd/config/syntax.hpp"
#include "httpd/config/text.hpp"
#include "httpd/guard/password_file.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

namespace httpd {
namespace {

// O_NONBLOCK: a FIFO would wait for its writer.
int error_of_open(const std::string& file, int flags) {
    const simplenet::unique_fd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags)};
    return fd ? 0 : errno;
}

bool is_regular(const std::string& file) {
    struct ::stat found{};
    return ::stat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode);
}

// `what` is the name of the key. Returns whether the file can be read.
bool check_readable(std::string_view what, const std::string& file, position where,
                    problems& found) {
    const int error = error_of_open(file, 0);
    if (error != 0)
        found.add(where, code(what) + ": " + quote(file) +
                             " cannot be read: " + std::system_category().message(error));
    else if (!is_regular(file))
        found.add(where, code(what) + ": " + quote(file) + " is no file");
    else
        return true;
    return false;
}

// Returns whether the directory can be read.
bool check_directory(std::string_view what, const std::string& directory, position where,
                     problems& found) {
    const int error = error_of_open(directory, O_DIRECTORY);
    if (error != 0)
        found.add(where, code(what) + ": " + quote(directory) +
                             " cannot be opened: " + std::system_category().message(error));
    return error == 0;
}

// A backend over TCP is not asked: it may be busy, or start later.
void check_socket(const backend& of, problems& found) {
    constexpr std::string_view prefix = "unix:";
    if (!of.address.starts_with(prefix)) return;
    const std::string path = of.address.substr(prefix.size());
    struct ::stat there{};
    const bool is_there = ::stat(path.c_str(), &there) == 0;
    std::string why;
    if (!is_there)
        why = " is not there: " + std::system_category().message(errno);
    else if (!S_ISSOCK(there.st_mode))
        why = " is no socket";
    else if (::access(path.c_str(), W_OK) != 0)
        why = " cannot be connected to: " + std::system_category().message(errno);
    else
        return;
    found.add(of.where, "the socket " + quote(path) + why, severity::warning);
}

// What gateways cannot keep in memory goes there.
void check_temporary_directory(const configuration& whole, problems& found) {
    const char* const set = std::getenv("TMPDIR"); // NOLINT(concurrency-mt-unsafe)
    const std::string directory = set != nullptr && *set != '\0' ? set : "/tmp";
    const int error = error_of_open(directory, O_DIRECTORY);
    if (error == 0 && ::access(directory.c_str(), W_OK | X_OK) == 0) return;
    const std::string why = std::system_category().message(error != 0 ? error : errno);
    for (const site& each : whole.sites) {
        const auto gateway = std::ranges::find_if(each.routes, &route::has_backend);
        if (gateway == each.routes.end()) continue;
        found.add(gateway->where,
                  "no temporary files can be made in " + quote(directory) + " (TMPDIR): " + why +
                      ". Large bodies get 500, and slow clients make backends wait",
                  severity::warning);
        return;
    }
}

void check_log(std::string_view what, const std::string& target, position where, problems& found) {
    if (target == "-" || target == "off") return;
    const std::string directory = std::filesystem::path{target}.parent_path().string();
    struct ::stat there{};
    if (::stat(target.c_str(), &there) == 0) {
        if (S_ISDIR(there.st_mode))
            found.add(where, code(what) + ": " + quote(target) + " is a directory");
        return;
    }
    check_directory(what, directory, where, found);
}

std::string date_of(std::chrono::sys_seconds time) {
    const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(time)};
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02u-%02u", static_cast<int>(day.year()),
                  static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
    return text.data();
}

void check_dates(const certificate& each, const certificate_facts& facts, problems& found) {
    const auto now = std::chrono::system_clock::now();
    const std::string name = "`certificate`: " + quote(each.certificate);
    if (facts.valid_until < now)
        found.add(each.certificate_where, name + " expired on " + date_of(facts.valid_until),
                  severity::warning);
    else if (facts.valid_until < now + std::chrono::days{14})
        found.add(each.certificate_where, name + " expires on " + date_of(facts.valid_until),
                  severity::warning);
    if (facts.valid_from > now)
        found.add(each.certificate_where,
                  name + " is not valid before " + date_of(facts.valid_from), severity::warning);
}

// A certificate is never chosen if those before it have all of its names, and a key of its kind.
void check_choice(const tls_options& tls, const std::vector<certificate_facts>& facts,
                  problems& found) {
    for (std::size_t i = 1; i < facts.size(); ++i) {
        const auto taken = [&](const std::string& name) {
            return std::any_of(facts.begin(), facts.begin() + static_cast<std::ptrdiff_t>(i),
                               [&](const certificate_facts& other) {
                                   return other.key_kind == facts[i].key_kind &&
                                          std::ranges::find(other.names, name) != other.names.end();
                               });
        };
        if (facts[i].names.empty())
            found.add(tls.certificates[i].certificate_where,
                      "`certificate`: nothing chooses " + quote(tls.certificates[i].certificate) +
                          ": it has no DNS name (subjectAltName)",
                      severity::finding);
        else if (std::ranges::all_of(facts[i].names, taken))
            found.add(tls.certificates[i].certificate_where,
                      "`certificate`: nothing chooses " + quote(tls.certificates[i].certificate) +
                          ": those before it have all of its names",
                      severity::finding);
    }
}

void check_tls(const tls_options& tls, problems& found) {
    bool readable = !tls.certificates.empty(); // else all were something else, which was told
    std::vector<certificate_facts> all;
    for (const certificate& each : tls.certificates) {
        // Missing ones have been told.
        if (each.certificate.empty() || each.key.empty()) {
            readable = false;
            continue;
        }
        const bool both = check_readable("key", each.key, each.key_where, found);
        if (!check_readable("certificate", each.certificate, each.certificate_where, found) ||
            !both) {
            readable = false;
            continue;
        }
        const auto facts = facts_of(each.certificate);
        if (!facts) {
            found.add(each.certificate_where,
                      "`certificate`: " + quote(each.certificate) + ' ' + facts.error());
            readable = false;
            continue;
        }
        check_dates(each, *facts, found);
        // Each by itself, so that the message names the one that is wrong.
        tls_options alone{.certificates = {each}, .minimum = tls.minimum};
        if (const std::string wrong = wrong_tls(alone); !wrong.empty()) {
            found.add(each.certificate_where, "`certificate` and `key`: " + wrong);
            readable = false;
        }
        all.push_back(*facts);
    }
    if (!tls.client_ca.empty())
        readable =
            check_readable("client_ca", tls.client_ca, tls.client_ca_where, found) && readable;
    if (!readable) return;
    check_choice(tls, all, found);
    const std::string wrong = wrong_tls(tls);
    const bool issuers = !tls.client_ca.empty();
    if (!wrong.empty())
        found.add(issuers ? tls.client_ca_where : tls.certificates.front().certificate_where,
                  (issuers ? "`client_ca`: " : "`tls`: ") + wrong);
}

void check_password_file(const authentication& auth, problems& found) {
    if (auth.file.empty() || !check_readable("file", auth.file, auth.where, found)) return;
    std::string problem;
    const auto users = password_file::read(auth.file, problem);
    if (users) {
        if (users->kinds() > 1)
            found.add(auth.where,
                      "`file`: " + quote(auth.file) + " has hashes of " +
                          std::to_string(users->kinds()) +
                          " kinds (method, cost, for SHA-2 the length of the salt): a wrong "
                          "password is hashed once with each",
                      severity::warning);
        return;
    }
    if (problem.empty()) problem = users.error().message();
    found.add(auth.where, "`file`: " + quote(auth.file) + ": " + problem);
}

void check_site(const site& site, problems& found) {
    check_password_file(site.auth, found);
    for (const route& each : site.routes) {
        if (each.auth) check_password_file(*each.auth, found);
        for (const backend& one : each.backends)
            check_socket(one, found);
    }
    if (site.root.empty()) return;

    // Otherwise nothing beneath it is there.
    if (!check_directory("root", site.root, site.root_where, found)) return;
    for (const error_page& each : site.error_pages)
        if (!is_regular(site.root + each.path))
            found.add(each.where, "`error_pages`: there is no file " + quote(site.root + each.path),
                      severity::warning);
    for (const route& each : site.routes) {
        if (each.action != route_action::fallback || each.fallback.empty() ||
            each.match.where == position{})
            continue;
        const route* const next = route_of(site, each.fallback);
        const bool again = next != nullptr && next->action == route_action::fallback;
        if (again && !is_regular(site.root + each.fallback))
            found.add(each.match.where,
                      "the fallback " + quote(each.fallback) + " leads to " +
                          quote(to_text(next->match)) + " again, and there is no file " +
                          quote(site.root + each.fallback),
                      severity::finding);
    }
}

} // namespace

void check_workers(const configuration& whole, problems& found) {
    if (!whole.pin) return;
    ::cpu_set_t usable;
    CPU_ZERO(&usable);
    if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return; // more than the set can hold
    const auto count = static_cast<unsigned>(CPU_COUNT(&usable));
    if (whole.workers > count)
        found.add({}, "`pin` needs a CPU for each of " + std::to_string(whole.workers) +
                          " workers, and there are " + std::to_string(count));
}

void check_files(const configuration& whole, problems& found) {
    for (const listener& each : whole.listen)
        if (each.tls) check_tls(*each.tls, found);
    for (const site& each : whole.sites)
        check_site(each, found);
    check_temporary_directory(whole, found);
    check_log("access", whole.log.access, whole.log.access_where, found);
    check_log("error", whole.log.error, whole.log.error_where, found);
}

} // namespace httpd
