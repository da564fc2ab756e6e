#pragma once
// Incremental parsers of the heads of requests and responses (RFC 9112 sections 2 to 5), strict.
// Layer http/codec, private: for servers, clients, gateways, and for trailers.

#include <simplenet/core/abi.hpp>
#include <simplenet/http/codec/field_entry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Bytes. Each is at most 1 GiB, more counts as that: the offsets in a head have 32 bits.
struct head_limits {
    /// The start line without its CRLF.
    std::size_t line = std::size_t{8} * 1024;
    /// The field lines and the empty line that ends them, with their CRLFs.
    std::size_t fields = std::size_t{32} * 1024;
};

enum class head_state : std::uint8_t {
    incomplete, // every byte fits so far
    complete,   // the accessors are valid
    refused,    // no head begins like this, whatever follows
};

/// What the two parsers, and the one of trailers, have in common: lines and fields.
///
/// The verdict depends on the bytes alone, not on how they arrive: every rule is applied at the
/// first byte that decides it. Each byte is searched once, so a head that arrives byte by byte
/// costs linear time. Nothing is allocated. A parser is neither copied nor shared; it may be moved
/// to another thread between two calls.
class head_parser {
public:
    head_parser(const head_parser&) = delete;
    head_parser& operator=(const head_parser&) = delete;

    /// Bytes of the head, with the empty lines before it and the one that ends it.
    /// @pre complete.
    [[nodiscard]] std::size_t size() const noexcept { return line_at_; }
    /// The fields in their order, as offsets from the first byte; names are tokens, values have no
    /// blanks at their ends. @pre complete. Valid until reset().
    [[nodiscard]] std::span<const field_entry> fields() const noexcept {
        return entries_.first(count_);
    }
    /// Why it was refused, as the status of an answer: 400, 414 (the line of a request is too
    /// long), 431 (the fields, or the line of a response), 505. @pre refused.
    [[nodiscard]] unsigned status() const noexcept { return status_; }

protected:
    head_parser(const head_limits& limits, std::span<field_entry> entries) noexcept
        : line_limit_{static_cast<std::uint32_t>(std::min(limits.line, most))}
        , fields_limit_{static_cast<std::uint32_t>(std::min(limits.fields, most))}
        , entries_{entries} {}
    ~head_parser() = default;

    // start     looks for the start line, and for empty lines before it
    // fields    looks for field lines
    // complete, refused   as in head_state
    enum class phase : std::uint8_t { start, fields, complete, refused };

    void reset(phase begin_with) noexcept;
    /// Finds the start line: [line_begin(), line_end()) then. Otherwise the phase tells why not.
    bool find_start_line(std::string_view bytes, bool (*can_begin)(char),
                         unsigned too_long) noexcept;
    /// Continues behind the start line, whose syntax was good.
    void take_start_line() noexcept;
    head_state parse_fields(std::string_view bytes) noexcept;
    head_state refuse(unsigned status) noexcept;

    [[nodiscard]] phase current() const noexcept { return phase_; }
    [[nodiscard]] head_state state() const noexcept;
    [[nodiscard]] std::uint32_t line_begin() const noexcept { return line_at_; }
    /// Where the CR of the line is that was found.
    [[nodiscard]] std::uint32_t line_end() const noexcept { return searched_; }

private:
    static constexpr std::size_t most = std::size_t{1} << 30U;
    static constexpr std::uint32_t most_empty_lines = 4;

    enum class search : std::uint8_t { found, more, refused };
    search find_line_end(std::string_view bytes, std::uint32_t longest, unsigned too_long) noexcept;
    bool take_field(const char* text) noexcept;

    std::uint32_t line_limit_;
    std::uint32_t fields_limit_;
    std::span<field_entry> entries_;
    // Offsets from the first byte. Invariant: line_at_ <= searched_, and everything between them is
    // valid in a line.
    std::uint32_t line_at_ = 0;   // where the current line begins
    std::uint32_t searched_ = 0;  // up to here there is no end of the line
    std::uint32_t fields_at_ = 0; // where the first field line begins
    std::uint32_t count_ = 0;     // of entries
    std::uint16_t status_ = 0;
    std::uint8_t empty_lines_ = 0;
    phase phase_ = phase::start;
};

/// Parses the head of a request.
///
/// @par Example
/// Give parse() everything that has arrived, until it is no longer incomplete. Then method() and
/// the others read from the same bytes, and a body begins behind size() of them.
class request_parser : public head_parser {
public:
    /// The longest method. Longer ones are refused with 400.
    static constexpr std::size_t longest_method = 32;

    /// @param entries  Borrowed, for as long as the parser. Its size is the most fields there may
    /// be.
    request_parser(const head_limits& limits, std::span<field_entry> entries) noexcept
        : head_parser{limits, entries} {}

    /// Prepares for another head.
    void reset() noexcept { head_parser::reset(phase::start); }
    /// Judges `bytes`. They begin with the first byte of the head, perhaps at another address than
    /// before, and continue what earlier calls got. Bytes behind the head are not looked at.
    head_state parse(std::string_view bytes) noexcept;

    /// @param text  The first byte of the head, here and below. @pre complete.
    [[nodiscard]] std::string_view method(const char* text) const noexcept {
        return {text + method_at_, method_size_};
    }
    /// Not empty; bytes from 0x21 to 0x7e.
    [[nodiscard]] std::string_view target(const char* text) const noexcept {
        return {text + method_at_ + method_size_ + 1, target_size_};
    }
    /// 10 or 11. Minor versions above 1 are 11 (RFC 9110 section 2.5). @pre complete.
    [[nodiscard]] unsigned version() const noexcept { return version_; }

private:
    bool parse_line(const char* text) noexcept;

    std::uint32_t method_at_ = 0;
    std::uint32_t method_size_ = 0;
    std::uint32_t target_size_ = 0;
    std::uint8_t version_ = 0;
};

/// Parses the head of a response, like request_parser.
class response_parser : public head_parser {
public:
    response_parser(const head_limits& limits, std::span<field_entry> entries) noexcept
        : head_parser{limits, entries} {}

    void reset() noexcept { head_parser::reset(phase::start); }
    head_state parse(std::string_view bytes) noexcept;

    /// 100 to 999. Codes above 599 are invalid; RFC 9110 section 15 has clients treat them as 5xx.
    /// @pre complete.
    [[nodiscard]] unsigned code() const noexcept { return code_; }
    /// May be empty. @pre complete.
    [[nodiscard]] std::string_view reason(const char* text) const noexcept {
        return {text + reason_at_, reason_size_};
    }
    [[nodiscard]] unsigned version() const noexcept { return version_; }

private:
    bool parse_line(const char* text) noexcept;

    std::uint32_t reason_at_ = 0;
    std::uint32_t reason_size_ = 0;
    std::uint16_t code_ = 0;
    std::uint8_t version_ = 0;
};

/// Parses field lines and the empty line that ends them: trailers. Otherwise like request_parser.
class trailer_parser : public head_parser {
public:
    trailer_parser(const head_limits& limits, std::span<field_entry> entries) noexcept
        : head_parser{limits, entries} {
        reset();
    }

    void reset() noexcept { head_parser::reset(phase::fields); }
    head_state parse(std::string_view bytes) noexcept { return parse_fields(bytes); }
};

} // namespace simplenet::v0::http::detail
