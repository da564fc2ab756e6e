#include <simplenet/stream/frame_format.hpp>

#include <simplenet/stream/frame_reader.hpp>

#include <algorithm>

namespace simplenet::v0::detail {

namespace {

constexpr std::size_t longest_varint = 10; // 64 bits, 7 in each byte

[[nodiscard]] std::uint8_t fixed_size(frame_prefix prefix) noexcept {
    switch (prefix) {
    case frame_prefix::u8:
        return 1;
    case frame_prefix::u16:
        return 2;
    case frame_prefix::u32:
        return 4;
    default:
        return 8;
    }
}

[[nodiscard]] found_prefix find_varint(std::span<const std::byte> bytes) noexcept {
    using state = found_prefix::state;
    std::uint64_t length = 0;
    const std::size_t most = std::min(bytes.size(), longest_varint);
    for (std::size_t at = 0; at < most; ++at) {
        const auto each = std::to_integer<std::uint64_t>(bytes[at]);
        // The tenth byte has room for the highest bit only.
        if (at + 1 == longest_varint && each > 1) return {.is = state::malformed};
        length |= (each & 0x7fU) << (7 * at);
        if (each < 0x80) {
            return {state::complete, static_cast<std::uint8_t>(at + 1), length};
        }
    }
    return {.is = state::incomplete, .bytes = static_cast<std::uint8_t>(most + 1)};
}

} // namespace

found_prefix find_prefix(std::span<const std::byte> bytes, frame_format format) noexcept {
    using state = found_prefix::state;
    if (format.prefix == frame_prefix::varint) return find_varint(bytes);
    const std::uint8_t size = fixed_size(format.prefix);
    if (bytes.size() < size) return {.is = state::incomplete, .bytes = size};
    std::uint64_t length = 0;
    for (std::size_t at = 0; at < size; ++at) {
        const std::size_t from = format.order == std::endian::big ? at : size - 1 - at;
        length = length << 8U | std::to_integer<std::uint64_t>(bytes[from]);
    }
    return {state::complete, size, length};
}

frame_head encode_prefix(std::uint64_t length, frame_format format) noexcept {
    frame_head head{};
    if (format.prefix == frame_prefix::varint) {
        for (; length >= 0x80; length >>= 7U)
            head.bytes[head.size++] = static_cast<std::byte>(length | 0x80U);
        head.bytes[head.size++] = static_cast<std::byte>(length);
        return head;
    }
    head.size = fixed_size(format.prefix);
    for (std::size_t at = 0; at < head.size; ++at, length >>= 8U) {
        const std::size_t to = format.order == std::endian::big ? head.size - 1 - at : at;
        head.bytes[to] = static_cast<std::byte>(length);
    }
    return head;
}

search_verdict frame_sought::look(std::span<const std::byte> bytes) noexcept {
    if (whole_ == 0) {
        const found_prefix prefix = find_prefix(bytes, format_);
        if (prefix.is == found_prefix::state::malformed) {
            return {.over = true, .error = std::make_error_code(std::errc::bad_message)};
        }
        if (prefix.is == found_prefix::state::incomplete) {
            missing_ = prefix.bytes - bytes.size();
            return {};
        }
        if (prefix.length > limit_ ||
            prefix.length > std::numeric_limits<std::size_t>::max() - prefix.bytes) {
            return {.over = true, .error = make_error_code(errc::limit_exceeded)};
        }
        body_ = static_cast<std::size_t>(prefix.length);
        whole_ = prefix.bytes + body_;
    }
    if (bytes.size() < whole_) {
        missing_ = whole_ - bytes.size();
        return {};
    }
    return {.over = true, .error = {}, .length = whole_, .shown = body_};
}

} // namespace simplenet::v0::detail
