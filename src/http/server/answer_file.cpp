// Answering with a file: conditions, ranges, sendfile(2).

#include "http/codec/conditions.hpp"
#include "http/codec/date.hpp"
#include "http/codec/list.hpp"
#include "http/codec/multipart.hpp"
#include "http/codec/ranges.hpp"
#include "http/fields_access.hpp"
#include "http/random.hpp"
#include "http/server/exchange.hpp"
#include "http/server/service.hpp"

#include <simplenet/coro/task_group.hpp>
#include <simplenet/stream/send_file.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace simplenet::v0::http::detail {

/// A refusal is a text of our own, not the file in its coding; a 304 should not describe what is
/// not sent (RFC 9110, section 15.4.5).
void exchange::forget_content() noexcept {
    fields_.remove("Content-Encoding");
    fields_.remove("Content-Type");
    has_type_ = false;
}

task<result<>> exchange::send_file(int fd, std::uint64_t size, file_options options) {
    if (stage_ != stage::open) co_return fail(std::errc::operation_not_permitted);
    if ((!options.entity_tag.empty() && !is_entity_tag(options.entity_tag)) ||
        !valid_field_value(options.content_type)) {
        co_return fail(std::errc::invalid_argument);
    }
    co_return co_await send_content({.fd = fd}, size, options);
}

void exchange::set_validators(const content_source& from, const file_options& options) {
    constexpr std::uint64_t names = field_block::names_of({"ETag", "Last-Modified"});
    if (!from.validators.empty() && fields_.add_new_lines(from.validators, names)) return;
    if (!options.entity_tag.empty()) fields_.set("ETag", options.entity_tag);
    if (options.last_modified >= 0) {
        char date[date_size];
        format_date(options.last_modified, date);
        fields_.set("Last-Modified", {date, date_size});
    }
}

now_or_task<result<>> exchange::send_content(content_source from, std::uint64_t size,
                                             const file_options& options) {
    if (stage_ != stage::open) return result<>{fail(std::errc::operation_not_permitted)};
    if (has_bad_head() || forbids_body() || (announced_ && *announced_ != size)) {
        return result<>{fail(std::errc::invalid_argument)};
    }
    set_validators(from, options);
    const std::string_view type = options.content_type;
    const bool compressed = takes_gzip(type, size);
    if (options.conditional && status_ == 200 && (request_.method_ == "GET" || head_only_)) {
        constexpr std::uint64_t name = field_block::names_of({"Accept-Ranges"});
        if (!compressed && !fields_.add_new_lines("Accept-Ranges: bytes\r\n", name)) {
            fields_.set("Accept-Ranges", "bytes");
        }
        if (may_be_conditional(parser_.fields(), head_)) {
            return send_conditionally(from, size, options, compressed);
        }
    }
    if (compressed) return send_compressed_file(from, size, type);
    if (from.memory != nullptr && size <= output::gathers) {
        const const_buffer body{from.memory, static_cast<std::size_t>(size)};
        if (output_.has_room(head_size(type) + body.size())) {
            append_answer(type, body);
            return result<>{};
        }
    }
    return send_part(from, {.first = 0, .size = size}, type);
}

task<result<>> exchange::send_conditionally(content_source from, std::uint64_t size,
                                            file_options options, bool compressed) {
    const std::string_view method = request_.method_;
    const auto entries = parser_.fields();
    current_representation current{.entity_tag = options.entity_tag, .last_modified = {}};
    if (options.last_modified >= 0) current.last_modified = options.last_modified;
    switch (evaluate(method, entries, head_, current)) {
    case verdict::not_modified: {
        status_ = 304;
        announced_.reset();
        forget_content();
        const result<> room = co_await make_room(head_size({}));
        if (room) append_answer({}, {});
        co_return room;
    }
    case verdict::precondition_failed:
        co_return co_await refuse_content(412, from);
    case verdict::proceed:
        break;
    }
    if (compressed) co_return co_await send_compressed_file(from, size, options.content_type);
    byte_range part{.first = 0, .size = size};
    const auto asked = range_to_apply(method, entries, head_, current);
    const requested_ranges ranges = asked ? parse_ranges(*asked, size) : requested_ranges{};
    if (ranges.is == requested_ranges::verdict::unsatisfiable) {
        std::array<char, max_content_range> text;
        fields_.set("Content-Range", write_unsatisfied_range(text, size));
        co_return co_await refuse_content(416, from);
    }
    if (ranges.is == requested_ranges::verdict::satisfiable) {
        status_ = 206;
        announced_.reset();
        if (ranges.count > 1) {
            co_return co_await send_ranges(from, ranges, size, options.content_type);
        }
        std::array<char, max_content_range> text;
        part = ranges.ranges[0];
        fields_.set("Content-Range", write_content_range(text, part, size));
    }
    co_return co_await send_part(from, part, options.content_type);
}

task<result<>> exchange::refuse_content(unsigned status, const content_source& of) {
    announced_.reset();
    forget_content();
    fields_.remove("Accept-Ranges");
    fields_.remove("Last-Modified");
    if (of.leaves_refusals)
        refusal_ = status;
    else
        co_await answer_simply(status);
    co_return result<>{};
}

task<result<>> exchange::send_part(content_source from, byte_range part, std::string_view type) {
    const std::size_t with_body =
        part.size <= output::gathers && !head_only_ ? static_cast<std::size_t>(part.size) : 0;
    const result<> room = co_await make_room(head_size(type) + with_body);
    if (!room) co_return room;
    const std::size_t before = output_.size(); // of earlier answers
    closing_ = is_last(true);
    append_head({.length = part.size, .type = type});
    stage_ = stage::sending;
    if (!head_only_) {
        const bool stays = gathers(part.size);
        const result<> sent = co_await write_content(from, part);
        if (!sent && stays) {
            output_.cut(before);
            stage_ = stage::open;
            missed_ = true;
        }
        if (!sent) co_return sent;
    }
    complete();
    co_return result<>{};
}

task<result<>> exchange::send_ranges(content_source from, const requested_ranges& ranges,
                                     std::uint64_t size, std::string_view type) {
    const auto given = fields_.find("Content-Type");
    std::array<std::uint64_t, 2> boundary{};
    fill_with_random(std::as_writable_bytes(std::span{boundary}));
    const multipart_ranges parts{ranges, size, given ? *given : type, boundary};
    fields_.remove("Content-Type");
    has_type_ = false;
    const std::string whole_type = parts.content_type();
    const result<> room = co_await make_room(head_size(whole_type));
    if (!room) co_return room;
    closing_ = is_last(true);
    append_head({.length = parts.total_size(), .type = whole_type});
    stage_ = stage::sending;
    if (!head_only_) {
        for (std::size_t each = 0; each < parts.list().size(); ++each) {
            const std::string head = parts.part_head(each);
            const result<> fits = co_await make_room(head.size() + output::gathers);
            if (!fits) co_return fits;
            output_.append(head);
            const result<> sent = co_await write_content(from, parts.list()[each]);
            if (!sent) co_return sent;
        }
        const std::string tail = parts.tail();
        const result<> fits = co_await make_room(tail.size());
        if (!fits) co_return fits;
        output_.append(tail);
    }
    complete();
    co_return result<>{};
}

now_or_task<result<>> exchange::write_content(content_source from, byte_range part) {
    const bool stays = gathers(part.size);
    if (from.memory != nullptr) {
        const const_buffer bytes{from.memory + part.first, static_cast<std::size_t>(part.size)};
        if (!stays) {
            body_bytes_ += bytes.size();
            return write_out(bytes);
        }
        if (!bytes.empty()) std::memcpy(output_.room(bytes.size()), bytes.data(), bytes.size());
        output_.took(bytes.size());
        body_bytes_ += bytes.size();
        return result<>{};
    }
    if (!stays) return write_file(from.fd, part);
    // Copying so little costs less than sendfile(2), and answers gather.
    for (std::uint64_t done = 0; done < part.size;) {
        const auto left = static_cast<std::size_t>(part.size - done);
        const result<std::size_t> count =
            simplenet::detail::read_file(from.fd, part.first + done, {output_.room(left), left});
        if (!count) return result<>{fail(count)};
        if (*count == 0) return result<>{fail(std::errc::io_error)};
        output_.took(*count);
        body_bytes_ += *count;
        done += *count;
    }
    return result<>{};
}

task<result<>> exchange::write_file(int fd, byte_range part) {
    const result<async_mutex::guard> writing = co_await writing_.lock();
    if (!writing) co_return fail(writing);
    if (broken_) co_return fail(std::errc::broken_pipe);
    const std::size_t ahead = output_.size();
    const transfer_result sent =
        co_await wait_for_client(transport_.send_file(fd, part.first, part.size, output_.bytes()));
    const std::uint64_t count = sent ? *sent : sent.error().transferred;
    output_.left(std::min<std::uint64_t>(count, ahead));
    body_bytes_ += count - std::min<std::uint64_t>(count, ahead);
    unsettled_ = transport_.secure;
    if (!sent) {
        broken_ = lost_ = true;
        co_return fail(sent.error().code);
    }
    if (count != ahead + part.size) { // the file has become shorter
        broken_ = true;
        co_return fail(std::errc::io_error);
    }
    output_.release();
    co_return result<>{};
}

} // namespace simplenet::v0::http::detail
