#pragma once
// The records of FastCGI 1.0: written for a backend, and read from one. No I/O. Layer http,
// private.

#include <simplenet/core/abi.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace simplenet::v0::http::detail::fastcgi {

/// Of a record.
inline constexpr std::size_t header_size = 8;
/// Bytes that one record can carry.
inline constexpr std::size_t most_content = 65535;

// The numbers of the specification, section 8.
enum class record_type : std::uint8_t {
    begin_request = 1,
    abort_request = 2,
    end_request = 3,
    params = 4,
    in = 5,  // FCGI_STDIN
    out = 6, // FCGI_STDOUT
    err = 7, // FCGI_STDERR
};

enum class protocol_status : std::uint8_t {
    request_complete = 0,
    cannot_multiplex = 1,
    overloaded = 2,
    unknown_role = 3,
};

/// Writes the header of a record of request 1, without padding, at `to`. Returns its end.
///
/// @pre `content <= most_content`.
char* write_header(char* to, record_type type, std::size_t content) noexcept;

/// The record that begins request 1 with the role of a responder.
///
/// @param keep  Whether the backend leaves the connection open behind the answer.
[[nodiscard]] std::array<char, 2 * header_size> begin_request(bool keep) noexcept;

/// Bytes that write_param() needs.
[[nodiscard]] constexpr std::size_t param_size(std::size_t name, std::size_t value) noexcept {
    return (name < 128 ? 1U : 4U) + (value < 128 ? 1U : 4U) + name + value;
}
/// Writes the lengths of a name and of its value at `to`, which both follow. Returns their end.
///
/// @pre Both are below 2^31.
char* write_param_lengths(char* to, std::size_t name, std::size_t value) noexcept;

/// Reads the records of an answer to request 1.
///
/// The result depends on the bytes alone, not on how they arrive. Nothing is allocated or copied.
/// Other requests, other versions and records that nobody asked for are refused: they would mean
/// that the two sides disagree about where records begin.
class answer_reader {
public:
    struct step {
        // need_more  all bytes are consumed
        // out        `data` is a part of the answer, not empty
        // err        `data` is a part of what is meant for people, not empty
        // end        the answer is complete, with its last padding
        // refused    this is no answer, whatever follows
        enum class kind : std::uint8_t { need_more, out, err, end, refused };

        kind is = kind::need_more;
        std::size_t consumed = 0; // of the bytes, with those of `data`
        std::string_view data{};  // in the bytes
    };

    /// Reads `bytes`, which continue what earlier calls have consumed, up to the next thing to
    /// tell.
    ///
    /// @param most  Bytes of `data`, at least 1.
    [[nodiscard]] step next(std::string_view bytes, std::size_t most = most_content) noexcept;

    /// @pre There was an end.
    [[nodiscard]] detail::fastcgi::protocol_status status() const noexcept { return status_; }

private:
    // header   of the next record, `held_` bytes of it have come
    // content  of an out or err record
    // verdict  the content of an end_request
    // padding
    // ended, refused
    enum class phase : std::uint8_t { header, content, verdict, padding, ended, refused };

    static constexpr std::size_t verdict_size = 8;

    [[nodiscard]] bool take_header() noexcept;

    phase phase_ = phase::header;
    record_type type_ = record_type::out;
    bool out_ended_ = false; // by an empty record
    bool err_ended_ = false;
    std::uint8_t held_ = 0;
    std::uint8_t padding_ = 0;    // left
    std::uint32_t content_ = 0;   // left
    std::array<char, 8> piece_{}; // of a header or verdict
    detail::fastcgi::protocol_status status_{};
};

} // namespace simplenet::v0::http::detail::fastcgi
