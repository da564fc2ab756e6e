#include "httpd/guard/password_file.hpp"

#include <simplenet/core/unique_fd.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include <cerrno>
#include <crypt.h>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace httpd {

namespace {

using simplenet::fail;
using simplenet::result;

constexpr std::size_t largest = std::size_t{16} << 20;

result<std::string> read_whole(const std::string& path) {
    const simplenet::unique_fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (!file) return fail(std::error_code{errno, std::system_category()});
    std::string text;
    for (;;) {
        const std::size_t before = text.size();
        text.resize(before + 65536);
        const ssize_t count = ::read(file.get(), text.data() + before, text.size() - before);
        if (count < 0 && errno != EINTR) {
            return fail(std::error_code{errno, std::system_category()});
        }
        text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
        if (count == 0) return text;
        if (text.size() > largest) return fail(std::errc::file_too_large);
    }
}

bool is_supported(std::string_view hash) noexcept {
    constexpr std::array<std::string_view, 6> kinds{"$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$"};
    return std::ranges::any_of(kinds,
                               [&](std::string_view kind) { return hash.starts_with(kind); });
}

/// Whether it is whole. Nothing is hashed for that: a file of many users must not take as long to
/// read as it takes to guess.
bool is_well_formed(const std::string& hash) {
    // crypt(5): the characters behind the last `$`, for bcrypt with the salt.
    const std::size_t size = hash.starts_with("$2") ? 53 : hash.starts_with("$6$") ? 86 : 43;
    const std::string_view sum = std::string_view{hash}.substr(hash.rfind('$') + 1);
    const bool is_whole = sum.size() == size && std::ranges::all_of(sum, [](char each) {
                              return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
                                     (each >= '.' && each <= '9');
                          });
    return is_whole && ::crypt_checksalt(hash.c_str()) != CRYPT_SALT_INVALID;
}

/// The hash of `password` by the rules and the salt of `setting`; empty if those are malformed.
std::string hash_of(const std::string& password, const std::string& setting) {
    // crypt_data has 32 KiB, and holds what was hashed.
    const auto work = std::make_unique<crypt_data>();
    const char* const made = ::crypt_r(password.c_str(), setting.c_str(), work.get());
    std::string hash = made != nullptr && *made != '*' ? made : "";
    ::explicit_bzero(work.get(), sizeof *work);
    return hash;
}

/// Equal for hashes that take equally long for a password: the method and the cost, such as
/// `$6$rounds=5000$` (crypt(5)), and for SHA-2, which works on blocks, the length of the salt. Of a
/// hash that is well-formed.
std::string pace_of(std::string_view hash) {
    const std::size_t method_end = hash.find('$', 1) + 1;
    const std::string_view method = hash.substr(0, method_end);
    const std::string_view parameter =
        hash.substr(method_end, hash.find('$', method_end) + 1 - method_end);
    // The kinds of bcrypt take equally long.
    if (method.starts_with("$2")) return "$2$" + std::string{parameter};
    if (method == "$y$") return std::string{method} + std::string{parameter};
    const bool has_rounds = parameter.starts_with("rounds=");
    const std::size_t salt_end = hash.rfind('$');
    const std::size_t salt_size = salt_end - hash.rfind('$', salt_end - 1);
    return std::string{method} + (has_rounds ? std::string{parameter} : "rounds=5000$") +
           std::to_string(salt_size);
}

bool equal_in_constant_time(std::string_view left, std::string_view right) noexcept {
    if (left.size() != right.size()) return false;
    unsigned different = 0;
    for (std::size_t each = 0; each < left.size(); ++each)
        different |= static_cast<unsigned char>(left[each] ^ right[each]);
    return different == 0;
}

} // namespace

result<password_file> password_file::read(const std::string& path, std::string& problem) {
    const result<std::string> text = read_whole(path);
    if (!text) return fail(text);
    return parse(*text, problem);
}

result<password_file> password_file::parse(std::string_view text, std::string& problem) {
    password_file made;
    std::set<std::string> paces;
    const auto refuse = [&](std::size_t line, std::string_view why) {
        problem = "line " + std::to_string(line) + ": " + std::string{why};
        return fail(std::errc::invalid_argument);
    };
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty() || line.starts_with('#')) continue;
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos || colon == 0) return refuse(number, "no `user:hash`");
        const std::string hash{line.substr(colon + 1)};
        if (!is_supported(hash)) {
            return refuse(number, "the hash is neither bcrypt, SHA-256, SHA-512 nor yescrypt; "
                                  "`htpasswd -B` makes a good one");
        }
        if (!is_well_formed(hash)) return refuse(number, "the hash is malformed");
        if (!made.users_.emplace(line.substr(0, colon), hash).second) {
            return refuse(number, "the user has a line already");
        }
        if (paces.insert(pace_of(hash)).second) made.paced_.push_back(hash);
    }
    return made;
}

std::vector<std::string> password_file::settings_for(const std::string& user) const {
    std::vector<std::string> all;
    std::string own_pace;
    if (const auto found = users_.find(user); found != users_.end()) {
        all.push_back(found->second);
        own_pace = pace_of(found->second);
    }
    for (const std::string& each : paced_)
        if (pace_of(each) != own_pace) all.push_back(each);
    return all;
}

bool password_file::matches(const std::string& user, const std::string& password) const {
    bool is_own = users_.contains(user); // the first of the settings
    for (const std::string& each : settings_for(user)) {
        const bool is_equal = equal_in_constant_time(hash_of(password, each), each);
        if (std::exchange(is_own, false) && is_equal) return true;
    }
    return false;
}

} // namespace httpd
