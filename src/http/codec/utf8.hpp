#pragma once
// utf8_validator: whether bytes that arrive in pieces are UTF-8. Layer http/codec.

#include <simplenet/core/buffer.hpp>

#include <cstddef>
#include <cstdint>

namespace simplenet::v0::http::detail {

/// Checks text that arrives in pieces of any size, and fails at the first byte with which no text
/// can continue: it does not wait for the end of the character.
///
/// UTF-8 is what RFC 3629 says: no overlong forms, no surrogates, nothing above U+10FFFF. Linear
/// time; a piece of ASCII is checked by 16 bytes.
class utf8_validator {
public:
    /// Continues with `piece`. False: it is not UTF-8; no more pieces may follow.
    [[nodiscard]] bool feed(const_buffer piece) noexcept;
    /// Whether the text may end here: no character is incomplete.
    [[nodiscard]] bool is_complete() const noexcept { return missing_ == 0; }

private:
    // The next byte of the character. Only its second byte is ever limited to a part of 0x80 to
    // 0xbf.
    std::uint8_t lowest_ = 0x80;
    std::uint8_t highest_ = 0xbf;
    std::uint8_t missing_ = 0; // bytes of the character that have not come
};

/// Whether `text` is UTF-8 as a whole.
[[nodiscard]] inline bool is_utf8(const_buffer text) noexcept {
    utf8_validator check;
    return check.feed(text) && check.is_complete();
}

} // namespace simplenet::v0::http::detail
