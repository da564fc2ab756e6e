#include "http/server/field_block.hpp"

#include "http/codec/list.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// A line of a block, and what it says.
struct field_line {
    std::size_t size; // with its CRLF
    std::string_view name;
    std::string_view value;
};

field_line first_line(std::string_view lines) noexcept {
    const std::size_t end = lines.find('\r');
    const std::size_t colon = lines.find(':');
    return {end + 2, lines.substr(0, colon), lines.substr(colon + 2, end - colon - 2)};
}

} // namespace

char* field_block::room(std::size_t bytes, std::unique_ptr<char[]>& before) {
    if (bytes > capacity_ - size_) {
        const std::size_t larger = std::max(2 * capacity_, size_ + bytes);
        auto grown = std::make_unique_for_overwrite<char[]>(larger);
        std::memcpy(grown.get(), data(), size_);
        before = std::exchange(large_, std::move(grown));
        capacity_ = larger;
    }
    return data() + size_;
}

void field_block::add(std::string_view name, std::string_view value) {
    const std::size_t added = name.size() + value.size() + 4;
    std::unique_ptr<char[]> before; // `value` may be in it
    char* at = room(added, before);
    std::memcpy(at, name.data(), name.size());
    at += name.size();
    std::memcpy(at, ": ", 2);
    if (!value.empty()) std::memcpy(at + 2, value.data(), value.size());
    std::memcpy(at + 2 + value.size(), "\r\n", 2);
    size_ += added;
    names_ |= bit_of(name);
}

bool field_block::add_new_lines(std::string_view lines, std::uint64_t names) {
    if ((names_ & names) != 0) return false;
    std::unique_ptr<char[]> before;
    std::memcpy(room(lines.size(), before), lines.data(), lines.size());
    size_ += lines.size();
    names_ |= names;
    return true;
}

void field_block::set(std::string_view name, std::string_view value) {
    if ((names_ & bit_of(name)) == 0) return add(name, value);
    const bool is_ours =
        std::greater_equal<>{}(value.data(), data()) && std::less<>{}(value.data(), data() + size_);
    const std::string copy{is_ours ? value : std::string_view{}};
    remove(name);
    add(name, is_ours ? copy : value);
}

void field_block::remove(std::string_view name) noexcept {
    if ((names_ & bit_of(name)) == 0) return;
    std::size_t at = 0;
    while (at < size_) {
        const field_line line = first_line(lines().substr(at));
        if (iequals(line.name, name)) {
            std::memmove(data() + at, data() + at + line.size, size_ - at - line.size);
            size_ -= line.size;
        } else {
            at += line.size;
        }
    }
}

std::optional<std::string_view> field_block::find(std::string_view name) const noexcept {
    if ((names_ & bit_of(name)) == 0) return std::nullopt;
    for (std::string_view left = lines(); !left.empty();) {
        const field_line line = first_line(left);
        if (iequals(line.name, name)) return line.value;
        left.remove_prefix(line.size);
    }
    return std::nullopt;
}

bool field_block::lists(std::string_view name, std::string_view element) const noexcept {
    bool found = false;
    if ((names_ & bit_of(name)) == 0) return found;
    for (std::string_view left = lines(); !left.empty() && !found;) {
        const field_line line = first_line(left);
        left.remove_prefix(line.size);
        if (!iequals(line.name, name)) continue;
        static_cast<void>(for_each_element(line.value, [&](std::string_view each) {
            found |= iequals(each, element);
            return true;
        }));
    }
    return found;
}

} // namespace simplenet::v0::http::detail
