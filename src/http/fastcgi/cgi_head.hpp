#pragma once
// cgi_head: the head of a CGI answer (RFC 3875, section 6). No I/O. Layer http, private.

#include <simplenet/http/codec/field_entry.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace simplenet::v0::http::detail {

/// What a head of a CGI answer may cost.
struct cgi_limits {
    /// Bytes, with the empty line.
    std::size_t bytes = std::size_t{64} * 1024;
    std::size_t fields = 200;
};

/// Parses the head of a CGI answer, strictly but for its line ends: RFC 3875 has "newline", and
/// scripts write LF or CRLF.
///
/// The verdict depends on the bytes alone, not on how they arrive. Each byte is searched once.
class cgi_head {
public:
    enum class state : std::uint8_t { incomplete, complete, refused };

    explicit cgi_head(const cgi_limits& limits = {}) noexcept
        : limits_{limits} {}

    /// Judges `bytes`, which begin with the first byte of the head, perhaps at another address than
    /// before. Allocates when it is complete.
    ///
    /// Refused are heads beyond the limits; without a field; with a line that is no field, a name
    /// that is no token, or a control character; a continued line; a Status that is not a number
    /// from 200 to 599 with a text behind it, an empty Location, a malformed Content-Length; more
    /// than one of these or of Content-Type.
    [[nodiscard]] state parse(std::string_view bytes);

    /// Bytes, with the empty line. @pre complete, as for the following ones.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// That of the field, else 302 with a Location, else 200.
    [[nodiscard]] unsigned status() const noexcept { return status_; }
    [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept { return length_; }
    /// In their order, as offsets from the first byte.
    [[nodiscard]] const std::vector<field_entry>& fields() const noexcept { return entries_; }

private:
    [[nodiscard]] bool take_lines(std::string_view head);
    [[nodiscard]] bool take_line(std::string_view head, std::size_t begin, std::size_t end);
    [[nodiscard]] bool take_value(std::string_view name, std::string_view value);

    cgi_limits limits_;
    std::size_t searched_ = 0;   // up to here
    std::size_t line_begin_ = 0; // of the line that is searched
    bool refused_ = false;
    std::size_t size_ = 0;
    unsigned status_ = 0;
    bool has_location_ = false;
    bool has_type_ = false;
    std::optional<std::uint64_t> length_;
    std::vector<field_entry> entries_;
};

/// Whether a field of a backend's answer concerns the gateway only: those of CGI, of the
/// connection, and the instructions of other servers.
[[nodiscard]] bool is_for_gateway(std::string_view name) noexcept;

} // namespace simplenet::v0::http::detail
