#pragma once
// local_endpoint: the address of a Unix domain socket: a path, an abstract name, or none. Layer ip.

#include <simplenet/core/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace simplenet::v0 {

namespace detail {
struct local_endpoint_access;
} // namespace detail

/// The address of a Unix domain socket, unix(7).
///
/// There are three kinds: a path in the file system; an abstract name, which Linux keeps in a table
/// per network namespace and removes with the socket; and unnamed, for a socket that was never
/// bound, such as nearly every client.
///
/// A trivially copyable value of 109 bytes. Only `to_string()` allocates. Any thread.
class local_endpoint {
public:
    /// Bytes: of a path without its NUL, of an abstract name without its leading NUL.
    static constexpr std::size_t max_name_size = 107;

    /// Unnamed.
    constexpr local_endpoint() noexcept = default;

    /// A path, used unchanged: nothing is resolved, expanded or looked up, and a leading `@` is
    /// part of the file name.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: `path` is empty, or contains a NUL.
    /// - `std::errc::filename_too_long`: otherwise, `path` is longer than `max_name_size`. Use a
    ///   relative path, or one through /proc/self/fd.
    [[nodiscard]] static result<local_endpoint> parse(std::string_view path) noexcept;

    /// An abstract name: any bytes, including NUL. Pass it without the leading NUL or `@`.
    ///
    /// @par Errors
    /// - `std::errc::invalid_argument`: `name` is empty. The kernel would accept it as one name
    ///   shared by all programs that forgot theirs.
    /// - `std::errc::filename_too_long`: `name` is longer than `max_name_size`.
    [[nodiscard]] static result<local_endpoint> abstract(std::string_view name) noexcept;

    /// Readable text: the path; `@name` for an abstract name, in which each NUL becomes another `@`
    /// (as in /proc/net/unix); or `(unnamed)`. Not meant for `parse()`.
    ///
    /// @par Cost
    /// One allocation at most.
    [[nodiscard]] std::string to_string() const;

    [[nodiscard]] constexpr bool is_unnamed() const noexcept { return size_ == 0; }
    [[nodiscard]] constexpr bool is_abstract() const noexcept {
        return size_ != 0 && name_[0] == '\0';
    }
    /// The path, inside this object; empty if there is none. Never an abstract name, so that nobody
    /// unlinks a file with that name.
    [[nodiscard]] constexpr std::string_view path() const noexcept {
        return is_abstract() ? std::string_view{} : std::string_view{name_.data(), size_};
    }
    /// The abstract name without its leading NUL, inside this object; empty if there is none.
    [[nodiscard]] constexpr std::string_view abstract_name() const noexcept {
        return is_abstract() ? std::string_view{name_.data() + 1, size_ - std::size_t{1}}
                             : std::string_view{};
    }

    friend constexpr bool operator==(const local_endpoint&,
                                     const local_endpoint&) noexcept = default;

private:
    friend struct detail::local_endpoint_access;

    // As in sockaddr_un::sun_path: a path, or a NUL and an abstract name. Zeros after size_, so
    // that the default == is correct. The kernel can report paths of 108 bytes, which fill it.
    std::array<char, 108> name_{};
    std::uint8_t size_ = 0; // bytes used, without the final NUL of a path
};

} // namespace simplenet::v0

template <>
struct std::hash<simplenet::local_endpoint> {
    [[nodiscard]] std::size_t operator()(const simplenet::local_endpoint& endpoint) const noexcept;
};

#pragma GCC visibility pop
