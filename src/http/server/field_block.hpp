#pragma once
// field_block: the fields of an answer, as they will leave. Layer http, private.

#include <simplenet/core/abi.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>

namespace simplenet::v0::http::detail {

/// Field lines, each with its CRLF. Small blocks allocate nothing.
class field_block {
public:
    field_block() noexcept = default;
    field_block(const field_block&) = delete;
    field_block& operator=(const field_block&) = delete;
    ~field_block() = default;

    /// @pre `name` is a token and `value` a valid value, which may be one of this block.
    void add(std::string_view name, std::string_view value);
    /// Adds field lines that are ready; `names` is the names_of() their fields. False: nothing was
    /// added, because there may be a field of one of these names; set() finds out.
    [[nodiscard]] bool add_new_lines(std::string_view lines, std::uint64_t names);
    [[nodiscard]] static constexpr std::uint64_t
    names_of(std::initializer_list<std::string_view> names) noexcept {
        std::uint64_t bits = 0;
        for (const std::string_view each : names)
            bits |= bit_of(each);
        return bits;
    }
    /// Removes all fields of this name.
    void remove(std::string_view name) noexcept;
    /// The value of the first one. Valid until a field is added or removed.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;
    /// Whether the list that all fields of this name are together has `element`, without case.
    [[nodiscard]] bool lists(std::string_view name, std::string_view element) const noexcept;
    /// Removes all fields of this name, and adds one. @pre As add().
    void set(std::string_view name, std::string_view value);
    void clear() noexcept {
        size_ = 0;
        names_ = 0;
    }

    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::string_view lines() const noexcept { return {data(), size_}; }

private:
    static constexpr std::size_t inside = 448; // bytes

    /// A bit for `name`, which names of another size or with another first letter seldom share.
    [[nodiscard]] static constexpr std::uint64_t bit_of(std::string_view name) noexcept {
        const auto first = static_cast<unsigned char>(name.empty() ? '\0' : name.front());
        return std::uint64_t{1} << ((name.size() * 5 + (first | 0x20U)) % 64);
    }
    /// Memory for `bytes` more. If the block moves, `before` receives the old memory, so that views
    /// into it stay valid.
    [[nodiscard]] char* room(std::size_t bytes, std::unique_ptr<char[]>& before);
    [[nodiscard]] const char* data() const noexcept { return large_ ? large_.get() : small_; }
    [[nodiscard]] char* data() noexcept { return large_ ? large_.get() : small_; }

    std::uint64_t names_ = 0; // the bits of all that were added: most searches end here
    std::size_t size_ = 0;
    std::size_t capacity_ = inside;
    std::unique_ptr<char[]> large_; // in place of small_, once that was too small
    char small_[inside];            // not initialised
};

} // namespace simplenet::v0::http::detail
