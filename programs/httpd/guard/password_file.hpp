#pragma once
// httpd::password_file: the users of an htpasswd file. Parsing and comparing; authenticator makes
// them fast.

#include <simplenet/core/error.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace httpd {

/// Immutable; any thread.
class password_file {
public:
    /// Reads lines of `user:hash`, as htpasswd(1) writes them. Empty lines and lines that begin
    /// with `#` are skipped. Hashes are those of crypt(5) that resist guessing: bcrypt (`$2`),
    /// SHA-256 and SHA-512 (`$5$`, `$6$`), yescrypt (`$y$`).
    ///
    /// @param problem  What is wrong, with its line, if the result is `invalid_argument`.
    /// @par Errors
    /// Those of open(2) and read(2); `std::errc::file_too_large`: more than 16 MiB;
    /// `std::errc::invalid_argument`: a line that is no user and no hash, a hash of another kind, a
    /// user twice.
    [[nodiscard]] static simplenet::result<password_file> read(const std::string& path,
                                                               std::string& problem);
    /// The same for a text.
    [[nodiscard]] static simplenet::result<password_file> parse(std::string_view text,
                                                                std::string& problem);

    /// Whether `password` is that of `user`. Blocks for as long as the hash was made to take:
    /// milliseconds to a second.
    ///
    /// The time does not tell which users exist, or whose hash is cheap: a wrong password is hashed
    /// with all of settings_for(), whoever the user is. Only a right one takes no more than the
    /// hash of its user.
    [[nodiscard]] bool matches(const std::string& user, const std::string& password) const;

    /// A hash of each kind that the file has, that of the user first. A kind is a method and a
    /// cost, for SHA-2 the length of the salt as well: what makes one take longer than another.
    [[nodiscard]] std::vector<std::string> settings_for(const std::string& user) const;
    /// How many kinds there are.
    [[nodiscard]] std::size_t kinds() const noexcept { return paced_.size(); }

    /// The same users with the same hashes.
    [[nodiscard]] bool operator==(const password_file& other) const {
        return users_ == other.users_;
    }
    [[nodiscard]] std::size_t size() const noexcept { return users_.size(); }

private:
    std::map<std::string, std::string, std::less<>> users_; // to their hashes
    std::vector<std::string> paced_;                        // the first hash of each kind
};

} // namespace httpd
