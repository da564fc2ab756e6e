#include <simplenet/stream/detail/write_queue.hpp>

#include <simplenet/coro/detail/frame_allocator.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace simplenet::v0::detail {

struct write_queue::piece {
    enum class kind : std::uint8_t { chunk, string, vector };

    explicit piece(kind which) noexcept
        : is{which} {}

    piece* next = nullptr;
    const std::byte* data = nullptr; // the first byte that is not consumed
    std::size_t size = 0;            // bytes from there
    kind is;
};

/// Followed in memory by its bytes.
struct write_queue::chunk : piece {
    explicit chunk(std::size_t total) noexcept
        : piece{kind::chunk}
        , total_bytes{total}
        , room{total - sizeof(chunk)} {
        data = begin();
    }

    static chunk& make(std::size_t total) { return *::new (allocate_frame(total)) chunk{total}; }
    void free() noexcept { deallocate_frame(this, total_bytes); }

    [[nodiscard]] std::byte* begin() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
    void append(const_buffer from) noexcept {
        std::byte* const end = begin() + (total_bytes - sizeof(chunk) - room);
        std::memcpy(end, from.data(), from.size());
        size += from.size();
        room -= from.size();
    }

    std::size_t total_bytes; // including this header
    std::size_t room;        // bytes at its end
};

template <class Container>
struct write_queue::adopted : piece, recycled {
    adopted(kind which, Container& from) noexcept
        : piece{which}
        , bytes{std::move(from)} {
        data = reinterpret_cast<const std::byte*>(bytes.data());
        size = bytes.size();
    }

    Container bytes;
};

namespace {

constexpr std::size_t smallest_chunk = 128;
constexpr std::size_t largest_shared_chunk =
    4096; // the largest size that the frame allocator recycles
/// A chunk is freed when its last byte is gone; this limits the memory that waits for that.
constexpr std::size_t largest_chunk = std::size_t{32} * 1024;

/// Below this size a node, an allocation and an entry of the gather list cost more than the copy.
constexpr std::size_t smallest_adopted = 512;

} // namespace

void write_queue::append(const_buffer from) {
    if (from.empty()) return;
    chunk* const open = open_chunk();
    const std::size_t fits = open == nullptr ? 0 : std::min(open->room, from.size());
    write_queue added; // frees its contents if there is no memory for the rest
    for (const_buffer rest = from.subspan(fits); !rest.empty();) {
        const std::size_t size = std::min(rest.size(), largest_chunk - sizeof(chunk));
        chunk& next = chunk::make(next_chunk_bytes(size));
        next.append(rest.first(size));
        added.push_back(next);
        rest = rest.subspan(size);
    }
    if (fits != 0) open->append(from.first(fits));
    if (added.first_ != nullptr) {
        push_back(*std::exchange(added.first_, nullptr));
        last_ = added.last_;
    }
    size_ += from.size();
}

void write_queue::adopt(std::string& bytes) {
    adopt_any(bytes);
}

void write_queue::adopt(std::vector<std::byte>& bytes) {
    adopt_any(bytes);
}

template <class Container>
void write_queue::adopt_any(Container& bytes) {
    const std::size_t count = bytes.size();
    // No limit counts its capacity beyond the bytes, so that may be at most an eighth of them.
    if (count < smallest_adopted || bytes.capacity() - count > count / 8) {
        append(bytes);
        bytes = Container{};
        return;
    }
    constexpr auto kind =
        std::is_same_v<Container, std::string> ? piece::kind::string : piece::kind::vector;
    push_back(*new adopted<Container>{kind, bytes});
    size_ += count;
}

/// The chunk at the end, if any.
write_queue::chunk* write_queue::open_chunk() const noexcept {
    if (first_ == nullptr || last_->is != piece::kind::chunk) return nullptr;
    return static_cast<chunk*>(last_);
}

/// Twice the size of the previous chunk, or the size for `needed` bytes if that is more.
std::size_t write_queue::next_chunk_bytes(std::size_t needed) const noexcept {
    const chunk* const before = open_chunk();
    const std::size_t grown = before == nullptr
                                  ? smallest_chunk
                                  : std::min(before->total_bytes * 2, largest_shared_chunk);
    const std::size_t exact = needed + sizeof(chunk);
    if (exact > largest_shared_chunk) return exact;
    return std::max(grown, std::bit_ceil(exact));
}

std::size_t write_queue::gather(std::span<const_buffer> into) const noexcept {
    std::size_t count = 0;
    for (const piece* at = first_; at != nullptr && count < into.size(); at = at->next)
        into[count++] = {at->data, at->size};
    return count;
}

void write_queue::consume(std::size_t count) noexcept {
    SIMPLENET_EXPECTS(count <= size_, "more bytes were written than were queued");
    size_ -= count;
    while (count != 0) {
        if (count < first_->size) {
            first_->data += count;
            first_->size -= count;
            return;
        }
        count -= first_->size;
        pop_front();
    }
}

void write_queue::clear() noexcept {
    while (first_ != nullptr)
        pop_front();
    size_ = 0;
}

void write_queue::push_back(piece& added) noexcept {
    if (first_ == nullptr) {
        first_ = &added;
    } else {
        last_->next = &added;
    }
    last_ = &added;
}

void write_queue::pop_front() noexcept {
    piece* const gone = std::exchange(first_, first_->next);
    switch (gone->is) {
    case piece::kind::chunk:
        return static_cast<chunk*>(gone)->free();
    case piece::kind::string:
        delete static_cast<adopted<std::string>*>(gone);
        return;
    case piece::kind::vector:
        delete static_cast<adopted<std::vector<std::byte>>*>(gone);
        return;
    }
}

} // namespace simplenet::v0::detail
