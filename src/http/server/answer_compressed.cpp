// Compressing answers while they are sent.

#include "http/codec/negotiate.hpp"
#include "http/server/exchange.hpp"
#include "http/server/service.hpp"

#include <simplenet/coro/this_task.hpp>
#include <simplenet/stream/send_file.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace simplenet::v0::http::detail {

namespace {

/// Bytes that are compressed in one turn of the loop: about a millisecond.
constexpr std::size_t step_size = std::size_t{32} * 1024;

/// Fields that hold for the bytes of the plain body only. A representation includes its coding, so
/// Repr-Digest is one of them (RFC 9530, section 3).
constexpr std::array<std::string_view, 5> of_plain_bytes{"Accept-Ranges", "Content-MD5", "Digest",
                                                         "Content-Digest", "Repr-Digest"};

} // namespace

bool exchange::takes_gzip(std::string_view type, std::optional<std::uint64_t> size) {
    const compression_options& with = compression_;
    if (with.types.empty() || forbids_body() || status_ == 206) return false;
    const std::string_view own_type = has_type_ ? *fields_.find("Content-Type") : type;
    const auto is_own_type = [&](std::string_view each) { return matches_type(own_type, each); };
    if (std::ranges::none_of(with.types, is_own_type)) return false;
    if (fields_.find("Content-Encoding")) return false;
    if (fields_.lists("Cache-Control", "no-transform")) return false; // RFC 9111, section 5.2.2.6
    if (size.value_or(with.minimum) < with.minimum) return false;
    // Also where this client gets it as it is: caches must ask again for others. A handler, and
    // file_server where a file has coded forms, may have said so.
    varies_ = !fields_.lists("Vary", "Accept-Encoding") && !fields_.lists("Vary", "*");
    const auto accepted = read_accept_encoding(parser_.fields(), head_);
    if (request_.version_ == 10 || choose_coding(accepted, true, false) != content_coding::gzip) {
        return false;
    }
    for (const std::string_view each : of_plain_bytes)
        fields_.remove(each);
    // That of a refused condition or range is the file's, and not that of the page.
    if (const auto tag = fields_.find("ETag");
        status_ != 412 && status_ != 416 && tag && !tag->starts_with("W/")) {
        // Other bytes than the plain ones, and not the same each time (RFC 9110, section 8.8.1).
        const std::string weak = "W/" + std::string{*tag};
        fields_.set("ETag", weak);
    }
    return true;
}

task<result<>> exchange::send_compressed(std::string_view type, const_buffer body) {
    const result<> begun = co_await begin_streaming(type, true);
    if (!begun) co_return begun;
    stage_ = stage::sending; // a shorter body must not look complete
    if (!head_only_) {
        const auto written = co_await write_compressed(body, gzip_encoder::until::more);
        if (!written) co_return fail(written);
    }
    co_return co_await end_stream();
}

task<result<>> exchange::send_compressed_file(content_source from, std::uint64_t size,
                                              std::string_view type) {
    const result<> begun = co_await begin_streaming(type, true);
    if (!begun) co_return begun;
    stage_ = stage::sending;
    scratch block;
    for (std::uint64_t done = 0; done < size && !head_only_;) {
        const auto wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(size - done, step_size));
        const_buffer part;
        if (from.memory != nullptr) {
            part = {from.memory + done, wanted};
        } else {
            if (block.size() == 0) block = scratch::borrow(step_size);
            const result<std::size_t> count =
                simplenet::detail::read_file(from.fd, done, mutable_buffer{block}.first(wanted));
            if (!count) co_return fail(count);
            if (*count == 0) co_return fail(std::errc::io_error); // it has become shorter
            part = const_buffer{block.bytes()}.first(*count);
        }
        const auto written = co_await write_compressed(part, gzip_encoder::until::more);
        if (!written) co_return fail(written);
        done += part.size();
        if (done < size) co_await take_turn(); // a step may be done without output
    }
    co_return co_await end_stream();
}

task<> exchange::take_turn() {
    // Without a turn after a stop: the next write fails.
    const result<async_mutex::guard> turn = co_await connection_.loop.long_steps.lock();
    co_await yield();
}

task<result<std::size_t>> exchange::write_compressed(const_buffer from, gzip_encoder::until what) {
    if (!gzip_) gzip_.emplace(compression_.level);
    const std::size_t whole = from.size();
    for (bool done = false; !done;) {
        constexpr std::size_t framed = longest_chunk_head + chunk_end.size();
        const result<> room = co_await make_room(output::gathers + framed);
        if (!room) {
            // The encoder has the first part of a write that was stopped: the handler must write
            // only the rest.
            const bool is_part = what == gzip_encoder::until::flush && from.size() != whole;
            if (!is_part || broken_) co_return fail(room);
            co_return whole - from.size();
        }
        char* const begin = output_.room(output::gathers + framed);
        char* const data = begin + longest_chunk_head;
        const const_buffer part = from.first(std::min(from.size(), step_size));
        const bool is_last_part = part.size() == from.size();
        const auto step = gzip_->encode(part, {data, output::gathers},
                                        is_last_part ? what : gzip_encoder::until::more);
        from = from.subspan(step.consumed);
        done = is_last_part && step.done;
        if (step.produced != 0) {
            const std::size_t head = write_chunk_head(begin, step.produced);
            std::memmove(begin + head, data, step.produced);
            std::memcpy(begin + head + step.produced, chunk_end.data(), chunk_end.size());
            output_.took(head + step.produced + chunk_end.size());
            body_bytes_ += step.produced;
        }
        if (!done) co_await take_turn();
    }
    if (what != gzip_encoder::until::flush) co_return whole;
    const result<> left = co_await write_out({});
    if (!left && broken_) co_return fail(left);
    co_return whole; // after a stop the output has it
}

} // namespace simplenet::v0::http::detail
