#include <simplenet/stream/read_until.hpp>

#include <algorithm>
#include <limits>

namespace simplenet::v0::detail {

namespace {

search_verdict exceeded() noexcept {
    return {.over = true, .error = make_error_code(errc::limit_exceeded)};
}

// The least number of bytes to ask for if less is known to be left.
constexpr std::size_t least_read = 512;
constexpr std::size_t most_read = std::size_t{64} * 1024;

} // namespace

search_verdict delimiter_sought::look(std::string_view bytes) noexcept {
    const std::string_view allowed = bytes.substr(0, limit_);
    // The end of the bytes already seen may be the beginning of a delimiter.
    const std::size_t from = seen_ - std::min(seen_, delimiter_.size() - 1);
    const std::size_t at = allowed.find(delimiter_, from);
    if (at != std::string_view::npos) {
        const std::size_t length = at + delimiter_.size();
        return {.over = true, .error = {}, .length = length, .shown = length};
    }
    if (allowed.size() == limit_) return exceeded();
    seen_ = allowed.size();
    return {};
}

line_sought::line_sought(std::size_t limit) noexcept
    : limit_{std::min(limit, std::numeric_limits<std::size_t>::max() - 2)} {}

search_verdict line_sought::look(std::string_view bytes) noexcept {
    const std::string_view allowed = bytes.substr(0, limit_ + 2);
    const std::size_t at = allowed.find('\n', seen_);
    if (at == std::string_view::npos) {
        const bool fits =
            allowed.size() <= limit_ || (allowed.size() == limit_ + 1 && allowed.back() == '\r');
        if (!fits) return exceeded();
        seen_ = allowed.size();
        return {};
    }
    const std::size_t text = at != 0 && allowed[at - 1] == '\r' ? at - 1 : at;
    if (text > limit_) return exceeded();
    return {.over = true, .error = {}, .length = at + 1, .shown = text};
}

mutable_buffer string_store::prepare(std::size_t wanted) {
    valid_ = into_->size();
    const std::size_t spare = into_->capacity() - valid_;
    const std::size_t size = std::min({wanted, std::max(spare, least_read), most_read});
    into_->resize(valid_ + size);
    return mutable_buffer{*into_}.subspan(valid_);
}

} // namespace simplenet::v0::detail
