#include "http/codec/negotiate.hpp"

#include "http/codec/ascii.hpp"
#include "http/codec/list.hpp"

#include <algorithm>
#include <cstddef>

namespace simplenet::v0::http::detail {

namespace {

using qvalue = std::optional<std::uint16_t>;

struct listed_codings {
    qvalue identity;
    qvalue gzip;
    qvalue br;
    qvalue any; // "*"
};

/// `( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] )`, section 12.4.2.
qvalue read_qvalue(std::string_view text) noexcept {
    if (text.empty() || text.size() > 5 || (text.size() > 1 && text[1] != '.')) return std::nullopt;
    unsigned thousandths = 0;
    unsigned weight = 1000;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (at == 1) continue;
        if (!ascii::is_digit(text[at])) return std::nullopt;
        thousandths += static_cast<unsigned>(text[at] - '0') * weight;
        weight /= 10;
    }
    if (thousandths > 1000) return std::nullopt;
    return static_cast<std::uint16_t>(thousandths);
}

/// What stands behind the ";" of an element: `"q=" qvalue`, and nothing else.
qvalue read_weight(std::optional<std::string_view> text) noexcept {
    if (!text) return std::uint16_t{1000};
    const std::string_view weight = trim_blanks(*text);
    if (!iequals(weight.substr(0, 2), "q=")) return std::nullopt;
    return read_qvalue(weight.substr(2));
}

/// @return False if the element is malformed.
bool read_coding(std::string_view element, listed_codings& into) noexcept {
    const qvalue weight = read_weight(ascii::cut_behind(element, ';'));
    const std::string_view name = trim_blanks(element);
    if (!weight || !is_token(name)) return false;

    qvalue* listed = nullptr;
    if (name == "*")
        listed = &into.any;
    else if (iequals(name, "gzip") || iequals(name, "x-gzip"))
        listed = &into.gzip;
    else if (iequals(name, "br"))
        listed = &into.br;
    else if (iequals(name, "identity"))
        listed = &into.identity;
    if (listed != nullptr) *listed = std::min(listed->value_or(1000), *weight);
    return true;
}

bool read_codings(std::string_view list, listed_codings& into) noexcept {
    return for_each_element(list, [&into](std::string_view element) {
        return element.empty() || read_coding(element, into);
    });
}

} // namespace

std::string_view name_of(content_coding coding) noexcept {
    switch (coding) {
    case content_coding::identity:
        break;
    case content_coding::gzip:
        return "gzip";
    case content_coding::br:
        return "br";
    }
    return {};
}

accepted_codings read_accept_encoding(std::span<const field_entry> fields,
                                      const char* text) noexcept {
    listed_codings listed;
    bool present = false;
    for (const field_entry& field : fields) {
        if (!iequals(field.name(text), "Accept-Encoding")) continue;
        present = true;
        if (!read_codings(field.value(text), listed)) return {};
    }
    if (!present) return {};
    const std::uint16_t others = listed.any.value_or(0);
    return {.identity = listed.identity.value_or(listed.any.value_or(1)),
            .gzip = listed.gzip.value_or(others),
            .br = listed.br.value_or(others)};
}

std::optional<content_coding> choose_coding(const accepted_codings& accepted, bool gzip,
                                            bool br) noexcept {
    auto best = content_coding::identity;
    std::uint16_t most = accepted.identity;
    const auto offer = [&](bool available, content_coding coding, std::uint16_t wish) {
        if (!available || wish == 0 || wish < most) return;
        best = coding;
        most = wish;
    };
    offer(gzip, content_coding::gzip, accepted.gzip);
    offer(br, content_coding::br, accepted.br);
    if (most == 0) return std::nullopt;
    return best;
}

} // namespace simplenet::v0::http::detail
