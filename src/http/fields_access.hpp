#pragma once
// fields_access: fields that refer to the text of a received message. Layer http, private.

#include <simplenet/http/fields.hpp>

#include <span>

namespace simplenet::v0::http::detail {

struct fields_access {
    /// Lets `of` refer to a head; both arrays outlive it, or the next call.
    static void borrow(fields& of, const char* text, std::span<const field_entry> index) noexcept {
        of.borrowed_ = text;
        of.borrowed_index_ = index;
    }
    [[nodiscard]] static std::span<const field_entry> index(const fields& of) noexcept {
        return of.index();
    }
    [[nodiscard]] static const char* text(const fields& of) noexcept { return of.text(); }
};

} // namespace simplenet::v0::http::detail
