#pragma once
// The chunked transfer coding (RFC 9112 section 7.1): an incremental, strict decoder, and what an
// encoder writes. Layer http/codec, private: for the bodies of requests and responses.

#include "http/codec/head.hpp"

#include <simplenet/core/abi.hpp>
#include <simplenet/core/buffer.hpp>
#include <simplenet/http/codec/field_entry.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace simplenet::v0::http::detail {

struct chunked_limits {
    /// Bytes of the extensions of one chunk, behind their first semicolon. All of a body may have
    /// 16 KiB and its size.
    std::size_t extensions = 1024;
    /// Bytes of the trailers, with the empty line that ends the body.
    std::size_t trailers = std::size_t{32} * 1024;
    /// The most trailers.
    std::size_t trailer_count = 100;
};

/// Decodes one chunked body. The verdict depends on the bytes alone, not on how they arrive.
///
/// Strict where recipients differ: a size has 1 to 16 hexadecimal digits and nothing else, lines
/// end in CRLF, nothing but CRLF is behind the data of a chunk, and quoted strings in extensions
/// end on their line. Extensions are ignored. Allocates only where there are trailers.
class chunked_decoder {
public:
    struct step {
        // need_more  all of the input is consumed
        // data       `data` is the next part of the body, not empty; there may be more input
        // end        the body has ended behind `consumed`
        // refused    status() tells why
        enum class kind : std::uint8_t { need_more, data, end, refused } kind = kind::need_more;
        /// Bytes of the input, `data` included. What is behind belongs to the next call.
        std::size_t consumed = 0;
        /// A part of the input.
        std::string_view data = {};
    };

    explicit chunked_decoder(const chunked_limits& limits = {}) noexcept;
    chunked_decoder(chunked_decoder&&) noexcept;
    chunked_decoder& operator=(chunked_decoder&&) noexcept;
    ~chunked_decoder();

    /// Prepares for another body.
    void reset() noexcept;
    /// Decodes until there is data, or an end. `input` continues what earlier calls consumed.
    /// Behind the end, and once refused, the same again without consuming anything.
    step next(std::string_view input);
    /// The same, but never takes more data than fit into `into`, and copies them there.
    step next_into(std::string_view input, mutable_buffer into);

    /// The most data that can come before the next line of a chunk: 0 outside of a chunk. Such a
    /// part of a body may be read past the decoder, straight to where it belongs.
    [[nodiscard]] std::uint64_t rest_of_chunk() const noexcept;
    /// Data was read past the decoder. @pre `size` is at most rest_of_chunk().
    void skip(std::uint64_t size) noexcept;

    /// 400, or 431: the trailers are too large or too many. @pre refused.
    [[nodiscard]] unsigned status() const noexcept { return status_; }
    /// Data decoded so far, in bytes.
    [[nodiscard]] std::uint64_t decoded() const noexcept { return decoded_; }

    /// The trailers, as offsets into trailer_text(). @pre The end was reached. Until reset().
    [[nodiscard]] std::span<const field_entry> trailers() const noexcept;
    [[nodiscard]] const char* trailer_text() const noexcept;

private:
    // size      digits of a size, at least one of which has come if digits_ is not 0
    // extension, quoted, escaped   behind a semicolon; in a quoted string; behind its backslash
    // size_lf   the LF of the line
    // data      left_ bytes of data
    // data_cr, data_lf   the CRLF behind the data
    // trailers  behind the last chunk
    // last_lf   the LF of the empty line of a body without trailers
    // ended, refused
    enum class phase : std::uint8_t {
        size,
        extension,
        quoted,
        escaped,
        size_lf,
        data,
        data_cr,
        data_lf,
        trailers,
        last_lf,
        ended,
        refused,
    };

    struct trailer_section;

    void take_byte(char byte) noexcept;
    void take_size(char byte) noexcept;
    void take_extension(char byte) noexcept;
    void end_line() noexcept;
    std::size_t take_trailers(std::string_view input);
    void refuse(unsigned status) noexcept;

    chunked_limits limits_;
    std::uint64_t left_ = 0; // of the chunk; while its line is read, the size
    std::uint64_t decoded_ = 0;
    std::uint64_t extensions_ = 0;        // bytes, of all chunks
    std::size_t extensions_of_chunk_ = 0; // bytes
    unsigned status_ = 0;
    std::uint8_t digits_ = 0;
    phase phase_ = phase::size;
    std::unique_ptr<trailer_section> trailers_; // none unless the body has some
};

/// The longest that write_chunk_head() writes.
inline constexpr std::size_t longest_chunk_head = 18;
/// Ends the data of a chunk.
inline constexpr std::string_view chunk_end = "\r\n";
/// Ends a body without trailers.
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

/// Writes the line that precedes `size` bytes of data, which chunk_end follows.
/// @pre `size` is not 0, which would end the body; `into` has room for longest_chunk_head bytes.
/// @return The bytes written.
std::size_t write_chunk_head(char* into, std::uint64_t size) noexcept;

} // namespace simplenet::v0::http::detail
