// Reading the body of an answer.

#include "http/client/client_exchange.hpp"
#include "http/fields_access.hpp"
#include "http/gathered_body.hpp"
#include "http/marked.hpp"

#include <simplenet/core/detail/contract.hpp>
#include <simplenet/http/errc.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace simplenet::v0::http::detail {

namespace {

/// Of the compressed body that is read at once.
constexpr std::size_t packed_piece = std::size_t{16} * 1024;
/// The most that one read decompresses, which takes some 100 us: other tasks run then.
constexpr std::size_t unpacked_piece = std::size_t{64} * 1024;
/// Beneath it no ratio is looked at: a megabyte of zeros harms nobody.
constexpr std::uint64_t never_a_bomb = std::uint64_t{1024} * 1024;

[[nodiscard]] bool is_too_much(const client_options& limits, std::uint64_t packed,
                               std::uint64_t unpacked) noexcept {
    if (limits.decompressed_bytes != 0 && unpacked > limits.decompressed_bytes) return true;
    return limits.decompressed_ratio != 0 && unpacked > never_a_bomb &&
           (unpacked - never_a_bomb) / limits.decompressed_ratio > packed;
}

} // namespace

std::optional<std::uint64_t> client_exchange::content_length() const noexcept {
    if (framing_.kind == framing::kind::none) return 0;
    if (framing_.kind == framing::kind::length && !inflater_) return framing_.length;
    return std::nullopt;
}

task<result<std::size_t>> client_exchange::read_some(mutable_buffer into) {
    SIMPLENET_EXPECTS(!into.empty(), "read_some() into an empty buffer");
    SIMPLENET_EXPECTS(!reading_, "two reads of an answer at the same time");
    const marked reading{reading_};
    if (inflater_) co_return co_await read_decompressed(into);
    co_return co_await read_body(into);
}

task<result<std::string>> client_exchange::read_all(std::size_t limit) {
    const bool has_length = framing_.kind == framing::kind::length && !inflater_;
    bool is_too_long = has_length && !failure_ && body_left_ > limit;
    gathered_body body{limit};
    while (!is_too_long) {
        const auto left = has_length ? std::optional{body_left_} : std::nullopt;
        const result<std::size_t> count = co_await read_some(body.room(left));
        body.took(count.value_or(0));
        if (!count && count.error() == simplenet::errc::end_of_stream) co_return body.take();
        if (!count) co_return fail(count);
        is_too_long = body.is_too_long();
    }
    co_return fail(end_with(make_error_code(simplenet::errc::limit_exceeded)));
}

task<result<std::size_t>> client_exchange::read_body(mutable_buffer into) {
    if (failure_) co_return fail(failure_);
    if (body_ended_) co_return fail(simplenet::errc::end_of_stream);
    if (framing_.kind == framing::kind::chunked) co_return co_await read_chunked(into);
    co_return co_await read_plain(into);
}

task<result<std::size_t>> client_exchange::read_plain(mutable_buffer into) {
    const bool has_length = framing_.kind == framing::kind::length;
    if (has_length) {
        into =
            into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), body_left_)));
    }
    std::size_t count = 0;
    if (!input_.empty()) {
        count = std::min(into.size(), input_.bytes().size());
        std::memcpy(into.data(), input_.bytes().data(), count);
        input_.consume(count);
    } else {
        input_.release();
        const result<std::size_t> read = co_await wait_into(into, part::body);
        if (!read) {
            // Only a body without a length may end so: see wait_into().
            if (read.error() == simplenet::errc::end_of_stream && !failure_) end_body();
            co_return read;
        }
        count = *read;
    }
    if (has_length) {
        body_left_ -= count;
        if (body_left_ == 0) end_body();
    }
    co_return count;
}

void client_exchange::make_chunks() {
    if (chunks_) return;
    constexpr std::size_t extensions = 1024; // of a chunk; nobody uses any
    chunks_.emplace(chunked_limits{extensions, options_.header_bytes, options_.header_count});
}

result<std::size_t> client_exchange::try_read_chunked(mutable_buffer into) {
    SIMPLENET_EXPECTS(is_chunked(), "the body is not chunked");
    if (failure_) return fail(failure_);
    if (body_ended_) return fail(simplenet::errc::end_of_stream);
    if (input_.empty()) return 0;
    make_chunks();
    return take_chunked(into);
}

std::optional<const_buffer> client_exchange::take_whole() {
    if (body_ended_) return const_buffer{};
    const std::string_view here = input_.bytes();
    const bool has_length = framing_.kind == framing::kind::length && !inflater_;
    if (!has_length || failure_ || here.size() < body_left_) return std::nullopt;
    const auto size = static_cast<std::size_t>(std::exchange(body_left_, 0));
    end_body_before(here.size() != size);
    return const_buffer{here.substr(0, size)};
}

task<result<std::size_t>> client_exchange::read_chunked(mutable_buffer into) {
    make_chunks();
    for (;;) {
        const std::uint64_t rest = chunks_->rest_of_chunk();
        if (rest != 0 && input_.empty()) {
            // Straight into the caller's memory.
            const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(rest, into.size()));
            const result<std::size_t> read = co_await wait_into(into.first(most), part::body);
            if (read) chunks_->skip(*read);
            co_return read;
        }
        if (input_.empty()) {
            const result<std::size_t> more = co_await wait_into(input_.room(), part::body);
            if (!more) co_return more;
            input_.took(*more);
        }
        const result<std::size_t> taken = take_chunked(into);
        if (!taken || *taken != 0) co_return taken;
    }
}

result<std::size_t> client_exchange::take_chunked(mutable_buffer into) {
    using decoded = chunked_decoder::step;
    const decoded step = chunks_->next_into(input_.bytes(), into);
    input_.consume(step.consumed);
    switch (step.kind) {
    case decoded::kind::need_more:
        return 0;
    case decoded::kind::data:
        return step.data.size();
    case decoded::kind::end:
        fields_access::borrow(trailers_, chunks_->trailer_text(), chunks_->trailers());
        end_body();
        return fail(simplenet::errc::end_of_stream);
    case decoded::kind::refused:
        break;
    }
    return fail(end_with(chunks_->status() == 431 ? errc::header_too_large : errc::bad_response));
}

task<result<std::size_t>> client_exchange::read_decompressed(mutable_buffer into) {
    into = into.first(std::min(into.size(), unpacked_piece));
    for (;;) {
        if (failure_) co_return fail(failure_);
        const inflater::step step = inflater_->next(packed_, into);
        packed_ = packed_.subspan(step.consumed);
        packed_bytes_ += step.consumed;
        unpacked_bytes_ += step.produced;
        if (is_too_much(options_, packed_bytes_, unpacked_bytes_)) {
            co_return fail(end_with(make_error_code(simplenet::errc::limit_exceeded)));
        }
        if (step.malformed && step.produced == 0) co_return fail(end_with(errc::bad_response));
        if (step.produced != 0) co_return step.produced;
        if (packed_memory_.size() == 0) packed_memory_ = scratch::borrow(packed_piece);
        const result<std::size_t> more = co_await read_body(packed_memory_);
        if (more) {
            packed_ = {packed_memory_.data(), *more};
        } else if (more.error() != simplenet::errc::end_of_stream) {
            co_return more;
        } else if (!inflater_->is_complete()) {
            co_return fail(end_with(errc::incomplete_message));
        } else {
            packed_memory_.release();
            co_return more;
        }
    }
}

void client_exchange::end_body() {
    end_body_before(!input_.empty());
    input_.release();
}

void client_exchange::end_body_before(bool more_has_come) {
    body_ended_ = true;
    const bool is_reusable = framing_.keep_alive && !closes_ && upload_.is_complete() &&
                             !more_has_come && framing_.kind != framing::kind::until_close;
    upload_.give_up();
    if (keeper_ == nullptr) {
        if (is_reusable) connection_->give_back();
        connection_.reset();
        return;
    }
    if (is_reusable) keeper_->keep(*std::move(connection_));
    connection_.reset();
    if (!is_reusable) keeper_->closed();
}

} // namespace simplenet::v0::http::detail
