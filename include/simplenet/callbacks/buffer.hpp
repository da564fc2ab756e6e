#pragma once
// callbacks::buffer: the bytes that a connection has received and its program has not used yet.
// Layer callbacks. For programs that come from muduo; coroutines use a buffered_reader.

#include <simplenet/core/buffer.hpp>
#include <simplenet/core/detail/contract.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#pragma GCC visibility push(default)

namespace simplenet::v0::callbacks {

/// Bytes in one contiguous piece, which are appended at the end and retrieved from the front.
///
/// It grows as needed, and keeps at least `reserve` bytes free in front of the first content, so
/// that a length can be prepended to a message without moving it. Integers are in network order,
/// most significant byte first.
///
/// Pointers and views into it are valid until the next call that is not const. It holds no memory
/// before the first byte and after shrink() of an empty one; when it grows, its capacity doubles.
/// Any sequence of calls takes time linear in the number of bytes that are added: the content is
/// moved only after at least as many bytes were added or retrieved. Movable; a buffer that
/// was moved from is empty. Not synchronised. Functions that add bytes throw std::bad_alloc.
///
/// In `on_message` its content may still lie where the loop has received it. It is copied at the
/// first call that adds bytes, when it is moved to another buffer, and when the handler leaves it
/// there; until then, retrieving copies nothing. So moving such a buffer may throw
/// std::bad_alloc, and then changes neither buffer.
///
/// @par Example
/// @snippet callbacks.cpp buffer
class buffer {
public:
    /// Bytes kept free in front of new content.
    static constexpr std::size_t reserve = 16;

    buffer() noexcept = default;
    // NOLINTBEGIN(performance-noexcept-move-constructor): content that was lent is copied
    buffer(buffer&& other) { take(other); }
    buffer& operator=(buffer&& other) {
        if (this != &other) take(other);
        return *this;
    }
    // NOLINTEND(performance-noexcept-move-constructor)
    ~buffer() = default;

    // --- looking ---------------------------------------------------------------------------------

    /// The number of bytes that can be retrieved.
    [[nodiscard]] std::size_t readable() const noexcept { return end_ - begin_; }
    /// The first of them. Null if the buffer has no memory.
    [[nodiscard]] const char* peek() const noexcept {
        return (lent_ != nullptr ? lent_ : memory_.get()) + begin_;
    }
    /// All of them.
    [[nodiscard]] std::string_view text() const noexcept { return {peek(), readable()}; }
    // NOLINTNEXTLINE(google-explicit-constructor): so that a buffer can be sent like a string.
    operator const_buffer() const noexcept { return {peek(), readable()}; }

    /// The first `wanted`, or null.
    [[nodiscard]] const char* find(char wanted) const noexcept { return find(wanted, peek()); }
    /// The same, from `from` on: for programs that remember what they have searched.
    ///
    /// @pre `from` is within text(), or its end.
    [[nodiscard]] const char* find(char wanted, const char* from) const noexcept {
        return find(std::string_view{&wanted, 1}, from);
    }
    /// The first `\r\n`, or null.
    [[nodiscard]] const char* find_crlf() const noexcept { return find_crlf(peek()); }
    /// The same, from `from` on.
    ///
    /// @pre `from` is within text(), or its end.
    [[nodiscard]] const char* find_crlf(const char* from) const noexcept {
        return find("\r\n", from);
    }

    /// The integer at the front, which stays.
    ///
    /// @pre readable() is at least its size.
    [[nodiscard]] std::uint16_t peek_u16() const noexcept {
        SIMPLENET_EXPECTS(readable() >= 2, "peek_u16() or read_u16() with fewer than 2 bytes");
        return static_cast<std::uint16_t>(number(2));
    }
    [[nodiscard]] std::uint32_t peek_u32() const noexcept {
        SIMPLENET_EXPECTS(readable() >= 4, "peek_u32() or read_u32() with fewer than 4 bytes");
        return static_cast<std::uint32_t>(number(4));
    }
    [[nodiscard]] std::uint64_t peek_u64() const noexcept {
        SIMPLENET_EXPECTS(readable() >= 8, "peek_u64() or read_u64() with fewer than 8 bytes");
        return number(8);
    }

    // --- taking ----------------------------------------------------------------------------------

    /// Drops the first `count` bytes.
    ///
    /// @pre `count <= readable()`
    void retrieve(std::size_t count) noexcept {
        SIMPLENET_EXPECTS(count <= readable(), "retrieve() of more bytes than are readable");
        begin_ += count;
        if (begin_ == end_) begin_ = end_ = first_position();
    }
    /// Drops the bytes before `end`, such as the end of a line that find_crlf() found.
    ///
    /// @pre `end` is within text(), or its end.
    void retrieve_until(const char* end) noexcept { retrieve(offset_of(end)); }
    void retrieve_all() noexcept { retrieve(readable()); }
    /// The first `count` bytes, which are dropped.
    ///
    /// @pre `count <= readable()`
    [[nodiscard]] std::string retrieve_as_string(std::size_t count);
    [[nodiscard]] std::string retrieve_all_as_string() { return retrieve_as_string(readable()); }

    /// The integer at the front, which is dropped.
    ///
    /// @pre readable() is at least its size.
    [[nodiscard]] std::uint16_t read_u16() noexcept {
        const std::uint16_t value = peek_u16();
        retrieve(2);
        return value;
    }
    [[nodiscard]] std::uint32_t read_u32() noexcept {
        const std::uint32_t value = peek_u32();
        retrieve(4);
        return value;
    }
    [[nodiscard]] std::uint64_t read_u64() noexcept {
        const std::uint64_t value = peek_u64();
        retrieve(8);
        return value;
    }

    // --- adding ----------------------------------------------------------------------------------

    /// Adds a copy of `bytes` at the end. They may be a part of this buffer's text().
    void append(const_buffer bytes);
    /// Adds the integer at the end.
    void append_u16(std::uint16_t value) { append_number(value, 2); }
    /// The same for 4 bytes.
    void append_u32(std::uint32_t value) { append_number(value, 4); }
    /// The same for 8 bytes.
    void append_u64(std::uint64_t value) { append_number(value, 8); }

    /// Adds a copy of `bytes` in front. They may be a part of this buffer's text(). Costs only the
    /// copy if they fit the reserve.
    void prepend(const_buffer bytes);
    /// Adds the integer in front.
    void prepend_u16(std::uint16_t value) { prepend_number(value, 2); }
    /// The same for 4 bytes.
    void prepend_u32(std::uint32_t value) { prepend_number(value, 4); }
    /// The same for 8 bytes.
    void prepend_u64(std::uint64_t value) { prepend_number(value, 8); }

    /// Space for at least `count` bytes at the end, for calls that write into memory, such as
    /// read_some(). It is not readable before commit().
    ///
    /// @pre `count` is at least 1.
    [[nodiscard]] mutable_buffer prepare(std::size_t count);
    /// Adds the first `count` bytes of that space.
    ///
    /// @pre `count` is at most the size of the space, and nothing was added since prepare().
    void commit(std::size_t count) noexcept {
        SIMPLENET_EXPECTS(count <= room_behind(), "commit() of more bytes than were prepared");
        end_ += count;
    }

    /// Frees the memory that the content does not need; all of it if there is no content.
    void shrink();

    // The next two are inline because every message passes them: with their bodies in the source an
    // echo of 64 bytes took 45 of its 636 instructions in user space for them.

    /// @private For the library: shows `bytes`, which are not copied, as its content. They stay
    /// where they are until own(), the next call that adds bytes, or the end of the buffer.
    ///
    /// @pre There is no content.
    void lend(const_buffer bytes) noexcept {
        SIMPLENET_EXPECTS(readable() == 0, "bytes were lent to a buffer with content");
        if (capacity_ != 0) release();
        lent_ = reinterpret_cast<const char*>(bytes.data());
        begin_ = 0;
        end_ = bytes.size();
    }
    /// @private For the library: copies content that was lent. Frees the memory of a buffer without
    /// content. If it throws std::bad_alloc, nothing has changed.
    void own() {
        if (readable() != 0) {
            if (lent_ != nullptr) shrink();
        } else if (capacity_ != 0) {
            release();
        } else {
            lent_ = nullptr;
            begin_ = end_ = 0;
        }
    }

private:
    [[nodiscard]] std::size_t room_in_front() const noexcept {
        return lent_ != nullptr ? 0 : begin_;
    }
    [[nodiscard]] std::size_t room_behind() const noexcept {
        return lent_ != nullptr ? 0 : capacity_ - end_;
    }
    [[nodiscard]] std::size_t first_position() const noexcept {
        return capacity_ == 0 ? 0 : reserve;
    }
    [[nodiscard]] std::size_t offset_of(const char* at) const noexcept {
        SIMPLENET_EXPECTS(at >= peek() && at <= peek() + readable(),
                          "a position that is not in the buffer");
        return static_cast<std::size_t>(at - peek());
    }
    [[nodiscard]] const char* find(std::string_view wanted, const char* from) const noexcept;
    [[nodiscard]] std::uint64_t number(std::size_t size) const noexcept;
    void append_number(std::uint64_t value, std::size_t size);
    void prepend_number(std::uint64_t value, std::size_t size);
    void make_room(std::size_t in_front, std::size_t behind);
    void reallocate(std::size_t in_front, std::size_t behind);
    void release() noexcept;

    void take(buffer& other) {
        if (other.lent_ != nullptr) other.shrink();
        memory_ = std::move(other.memory_);
        lent_ = nullptr;
        capacity_ = std::exchange(other.capacity_, 0);
        begin_ = std::exchange(other.begin_, 0);
        end_ = std::exchange(other.end_, 0);
    }

    std::unique_ptr<char[]> memory_;
    const char* lent_ = nullptr; // the content lies here, in memory of others; memory_ is null
    std::size_t capacity_ = 0;   // of memory_
    // Invariant: begin_ <= end_, and end_ <= capacity_ unless lent. Without content both are
    // first_position().
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

} // namespace simplenet::v0::callbacks

#pragma GCC visibility pop
