#include <simplenet/http/fields.hpp>

#include "http/codec/list.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace simplenet::v0::http {

fields::fields(const fields& other) {
    // Not by copying the members: a received message's text ends with it.
    std::size_t bytes = 0;
    for (const field each : other)
        bytes += each.name.size() + each.value.size();
    text_.reserve(bytes);
    index_.reserve(other.count());
    for (const field each : other)
        index_.push_back(store(each.name, each.value));
}

fields::fields(fields&& other) noexcept
    : borrowed_{std::exchange(other.borrowed_, nullptr)}
    , borrowed_index_{std::exchange(other.borrowed_index_, {})}
    , text_{std::move(other.text_)}
    , index_{std::move(other.index_)} {
    other.clear();
}

fields& fields::operator=(const fields& other) {
    if (this != &other) *this = fields{other};
    return *this;
}

fields& fields::operator=(fields&& other) noexcept {
    if (this != &other) {
        borrowed_ = std::exchange(other.borrowed_, nullptr);
        borrowed_index_ = std::exchange(other.borrowed_index_, {});
        text_ = std::move(other.text_);
        index_ = std::move(other.index_);
        other.clear();
    }
    return *this;
}

std::optional<std::string_view> fields::find(std::string_view name) const noexcept {
    for (const detail::field_entry& each : index()) {
        if (detail::iequals(each.name(text()), name)) return each.value(text());
    }
    return std::nullopt;
}

std::vector<std::string_view> fields::all(std::string_view name) const {
    std::vector<std::string_view> values;
    for (const field each : *this) {
        if (detail::iequals(each.name, name)) values.push_back(each.value);
    }
    return values;
}

std::size_t fields::count(std::string_view name) const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        index(), [&](const auto& each) { return detail::iequals(each.name(text()), name); }));
}

fields& fields::set(std::string_view name, std::string_view value) {
    own();
    const auto has_name = [&](const auto& each) {
        return detail::iequals(each.name(text()), name);
    };
    const auto first = std::ranges::find_if(index_, has_name);
    if (first == index_.end()) return add(name, value);
    // `name` and `value` may be views of this text, which store() moves.
    const std::size_t place = static_cast<std::size_t>(first - index_.begin());
    for (std::size_t each = index_.size() - 1; each > place; --each) {
        if (has_name(index_[each]))
            index_.erase(index_.begin() + static_cast<std::ptrdiff_t>(each));
    }
    index_[place] = store(name, value);
    return *this;
}

fields& fields::add(std::string_view name, std::string_view value) {
    own();
    index_.push_back(store(name, value));
    return *this;
}

std::size_t fields::remove(std::string_view name) {
    own();
    return std::erase_if(
        index_, [&](const auto& each) { return detail::iequals(each.name(text()), name); });
}

void fields::clear() noexcept {
    borrowed_ = nullptr;
    borrowed_index_ = {};
    text_.clear();
    index_.clear();
}

void fields::own() {
    if (borrowed_ != nullptr) *this = fields{*this};
}

detail::field_entry fields::store(std::string_view name, std::string_view value) {
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
    if (name.size() > most - text_.size() || value.size() > most - text_.size() - name.size()) {
        throw std::length_error{"the fields of a message have more than 4 GiB"};
    }
    const auto at = static_cast<std::uint32_t>(text_.size());
    std::string grown;
    if (text_.capacity() - text_.size() < name.size() + value.size()) {
        // The arguments may be views of `text_`: it lives until they are copied.
        grown.reserve(std::max(2 * text_.capacity(), text_.size() + name.size() + value.size()));
        grown = text_;
        grown.append(name).append(value);
        text_ = std::move(grown);
    } else {
        text_.append(name).append(value);
    }
    return {at, static_cast<std::uint32_t>(name.size()),
            at + static_cast<std::uint32_t>(name.size()), static_cast<std::uint32_t>(value.size())};
}

} // namespace simplenet::v0::http
