#include <simplenet/callbacks/buffer.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <new>

namespace simplenet::v0::callbacks {

namespace {

constexpr std::size_t first_capacity = 1024;
constexpr std::size_t no_offset = std::numeric_limits<std::size_t>::max();

/// Big-endian. Returns `size` bytes.
std::array<char, 8> bytes_of(std::uint64_t value, std::size_t size) noexcept {
    std::array<char, 8> bytes{};
    for (std::size_t at = size; at-- > 0; value >>= 8U)
        bytes[at] = static_cast<char>(value & 0xffU);
    return bytes;
}

/// Where `bytes` begin in `text`, if they are a part of it: they move with it.
std::size_t offset_in(std::string_view text, const_buffer bytes) noexcept {
    const auto* const at = reinterpret_cast<const char*>(bytes.data());
    const std::less<> before;
    if (text.empty() || before(at, text.data()) || !before(at, text.data() + text.size())) {
        return no_offset;
    }
    return static_cast<std::size_t>(at - text.data());
}

} // namespace

const char* buffer::find(std::string_view wanted, const char* from) const noexcept {
    const std::size_t at = text().find(wanted, offset_of(from));
    return at == std::string_view::npos ? nullptr : peek() + at;
}

std::string buffer::retrieve_as_string(std::size_t count) {
    SIMPLENET_EXPECTS(count <= readable(), "retrieve() of more bytes than are readable");
    std::string taken{text().substr(0, count)};
    retrieve(count);
    return taken;
}

std::uint64_t buffer::number(std::size_t size) const noexcept {
    std::uint64_t value = 0;
    for (const char each : text().substr(0, size))
        value = value << 8U | static_cast<unsigned char>(each);
    return value;
}

void buffer::append_number(std::uint64_t value, std::size_t size) {
    append(const_buffer{bytes_of(value, size).data(), size});
}

void buffer::prepend_number(std::uint64_t value, std::size_t size) {
    prepend(const_buffer{bytes_of(value, size).data(), size});
}

void buffer::append(const_buffer bytes) {
    if (bytes.empty()) return;
    const std::size_t own = offset_in(text(), bytes);
    make_room(0, bytes.size());
    const void* const from =
        own == no_offset ? static_cast<const void*>(bytes.data()) : peek() + own;
    std::memcpy(memory_.get() + end_, from, bytes.size());
    end_ += bytes.size();
}

void buffer::prepend(const_buffer bytes) {
    if (bytes.empty()) return;
    const std::size_t own = offset_in(text(), bytes);
    make_room(bytes.size(), 0);
    const void* const from =
        own == no_offset ? static_cast<const void*>(bytes.data()) : peek() + own;
    // Copied to the front of where they are: never overlapping.
    std::memcpy(memory_.get() + begin_ - bytes.size(), from, bytes.size());
    begin_ -= bytes.size();
}

mutable_buffer buffer::prepare(std::size_t count) {
    SIMPLENET_EXPECTS(count != 0, "prepare() of no space");
    make_room(0, count);
    return {memory_.get() + end_, capacity_ - end_};
}

/// Makes so much space in front of and behind the content.
void buffer::make_room(std::size_t in_front, std::size_t behind) {
    if (room_in_front() >= in_front && room_behind() >= behind) return;
    const std::size_t held = readable();
    // A side that is short gets as much in addition as the content has, so that it is not short
    // again before as many bytes were added as are moved now. The limit keeps sums from
    // overflowing.
    constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / 8;
    if (in_front > most || behind > most || held > most) throw std::bad_alloc{};
    const std::size_t least = first_capacity - std::min(first_capacity, reserve + held);
    if (room_in_front() < in_front)
        return reallocate(reserve + in_front + held, std::max({behind, held, least}));
    // As many bytes have been retrieved as are moved now.
    if (room_in_front() >= reserve + held && capacity_ - reserve - held >= behind) {
        std::memmove(memory_.get() + reserve, peek(), held);
        begin_ = reserve;
        end_ = reserve + held;
        return;
    }
    reallocate(reserve, std::max(behind + held, least));
}

void buffer::reallocate(std::size_t in_front, std::size_t behind) {
    const std::size_t held = readable();
    const std::size_t capacity = in_front + held + behind;
    auto memory = std::make_unique_for_overwrite<char[]>(capacity);
    if (held != 0) std::memcpy(memory.get() + in_front, peek(), held);
    memory_ = std::move(memory);
    lent_ = nullptr;
    capacity_ = capacity;
    begin_ = in_front;
    end_ = in_front + held;
}

void buffer::shrink() {
    if (readable() != 0) return reallocate(reserve, 0);
    release();
}

/// Leaves an empty buffer without memory.
void buffer::release() noexcept {
    memory_.reset();
    lent_ = nullptr;
    capacity_ = begin_ = end_ = 0;
}

} // namespace simplenet::v0::callbacks
