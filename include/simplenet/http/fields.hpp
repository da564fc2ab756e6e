#pragma once
// http::fields: the fields of a message. Layer http.

#include <simplenet/http/codec/field_entry.hpp>

#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0::http {

namespace detail {
struct fields_access;
} // namespace detail

/// A name and a value.
struct field {
    std::string_view name;
    std::string_view value;
};

/// The fields of a message, in order. Names are compared without case; a name may occur more than
/// once.
///
/// Those of a received message refer to its text. A copy owns its text; so does an object that the
/// program changes. Views of names and values live until the fields are changed, moved or
/// destroyed, those of a received message as long as the message.
///
/// Values are kept as they are: bad characters are found when the message is sent. Distinct objects
/// may be used on distinct threads.
///
/// @par Cost
/// Linear in the number of fields. The functions that change fields allocate, and throw
/// std::bad_alloc.
class fields {
public:
    class iterator;

    fields() noexcept = default;
    fields(const fields& other);
    fields(fields&& other) noexcept;
    fields& operator=(const fields& other);
    fields& operator=(fields&& other) noexcept;
    ~fields() = default;

    /// The value of the first field with this name.
    [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;
    /// The values of all fields with this name, in order. Allocates.
    [[nodiscard]] std::vector<std::string_view> all(std::string_view name) const;
    /// The number of fields.
    [[nodiscard]] std::size_t count() const noexcept { return index().size(); }
    /// The number of fields with this name.
    [[nodiscard]] std::size_t count(std::string_view name) const noexcept;
    [[nodiscard]] bool empty() const noexcept { return index().empty(); }

    /// The first field.
    [[nodiscard]] iterator begin() const noexcept;
    /// Behind the last field.
    [[nodiscard]] iterator end() const noexcept;

    /// Replaces all fields with this name by one, at the place of the first; else appends it.
    fields& set(std::string_view name, std::string_view value);
    /// Appends a field.
    fields& add(std::string_view name, std::string_view value);
    /// Removes all fields with this name, and returns their number.
    std::size_t remove(std::string_view name);
    void clear() noexcept;

private:
    friend detail::fields_access;

    [[nodiscard]] std::span<const detail::field_entry> index() const noexcept {
        return borrowed_ != nullptr ? borrowed_index_
                                    : std::span<const detail::field_entry>{index_};
    }
    [[nodiscard]] const char* text() const noexcept {
        return borrowed_ != nullptr ? borrowed_ : text_.data();
    }
    [[nodiscard]] detail::field_entry store(std::string_view name, std::string_view value);
    void own();

    // Of a received message; null: `text_` and `index_` have the fields.
    const char* borrowed_ = nullptr;
    std::span<const detail::field_entry> borrowed_index_;
    std::string text_; // grows only: replaced values stay until clear()
    std::vector<detail::field_entry> index_;
};

/// Iterates over fields, in order; gives a `field` by value.
class fields::iterator {
public:
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = field;
    using difference_type = std::ptrdiff_t;
    using reference = field;
    using pointer = void;

    iterator() noexcept = default;
    [[nodiscard]] field operator*() const noexcept { return {at_->name(text_), at_->value(text_)}; }
    iterator& operator++() noexcept {
        ++at_;
        return *this;
    }
    iterator operator++(int) noexcept {
        const iterator before = *this;
        ++at_;
        return before;
    }
    [[nodiscard]] bool operator==(const iterator& other) const noexcept { return at_ == other.at_; }

private:
    friend fields;
    iterator(const detail::field_entry* at, const char* text) noexcept
        : at_{at}
        , text_{text} {}

    const detail::field_entry* at_ = nullptr;
    const char* text_ = nullptr;
};

inline fields::iterator fields::begin() const noexcept {
    return {index().data(), text()};
}
inline fields::iterator fields::end() const noexcept {
    return {index().data() + index().size(), text()};
}

} // namespace simplenet::v0::http

#pragma GCC visibility pop
