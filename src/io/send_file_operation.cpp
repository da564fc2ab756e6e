#include <simplenet/io/detail/send_file_operation.hpp>

#include "io/attempts.hpp"
#include "io/io_queue.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace simplenet::v0::detail {

namespace {

/// The most bytes of a file that one turn sends: that long other tasks and the next poll wait.
constexpr std::size_t file_bytes_per_turn = std::size_t{2} << 20;

/// The most bytes that are read and sent with what is around them. From 32 KiB on sendfile(2) costs
/// less.
constexpr std::size_t most_copied = std::size_t{16} * 1024;

} // namespace

bool send_file_operation::perform() noexcept {
    if (size - sent_of_file() > file_bytes_per_turn) find_end();
    const std::size_t left = size - sent_of_file();
    if (left == 0) return send_around({});
    return left <= most_copied && !unreadable_ ? read_and_send() : send_from_file();
}

/// A count that reaches beyond the end would make the kernel keep the last segment for bytes that
/// never come.
void send_file_operation::find_end() noexcept {
    if (std::exchange(end_known_, true)) return;
    const std::int64_t all = sys::file_size(file_);
    if (all < 0 || static_cast<std::uint64_t>(all) <= offset_) return; // made up as it is read
    size = std::min<std::uint64_t>(size, static_cast<std::uint64_t>(all) - offset_);
}

// Two system calls for head, file and tail, where sendfile(2) would take five: one for the head,
// and two to keep SIGPIPE away.
bool send_file_operation::read_and_send() noexcept {
    std::array<std::byte, most_copied> block; // uninitialised
    const std::size_t before = sent_of_file();
    const std::size_t wanted = size - before;
    std::size_t have = 0;
    while (have < wanted) {
        const ssize_t count = sys::pread(file_, block.data() + have, wanted - have,
                                         static_cast<off_t>(offset_ + before + have));
        if (sys::is_refusal(count)) {
            unreadable_ = true;
            return send_from_file();
        }
        if (count < 0) {
            error = static_cast<int>(-count);
            return true;
        }
        if (count == 0) size = before + have; // the file is shorter
        if (count == 0) break;
        have += static_cast<std::size_t>(count);
    }
    return send_around({block.data(), have});
}

bool send_file_operation::send_from_file() noexcept {
    const bool tcp = record->kind == record_kind::stream;
    if (const const_buffer head = rest_of_head(); !head.empty()) {
        const ssize_t count = sys::send(record->fd, head.data(), head.size(), MSG_MORE);
        if (count < 0) return send_failed(*this, count);
        moved += static_cast<std::size_t>(count);
        if (static_cast<std::size_t>(count) < head.size()) return false;
    }
    const std::size_t before = sent_of_file();
    const std::size_t most = std::min(size - before, file_bytes_per_turn);
    // The last part leaves together with the tail. sendfile(2) has no flag for that.
    const bool joins = tcp && !rest_of_tail().empty() && most == size - before;
    if (joins) sys::cork(record->fd, true);
    const ssize_t count =
        sys::sendfile(record->fd, file_, static_cast<off_t>(offset_ + before), most);
    bool ended = false;
    if (count == 0) { // the file is shorter
        size = before;
        ended = send_around({});
        // The kernel keeps a segment for bytes that will not come.
        if (ended && tcp && around_.tail.empty()) sys::push(record->fd);
    } else {
        ended = over(count);
        if (count > 0) record->home->worked_long();
        if (!ended && error == 0 && sent_of_file() == size) ended = send_around({});
    }
    if (joins) sys::cork(record->fd, false);
    return ended;
}

/// Sends the rest of the head, `middle`, and if nothing of the file is left behind it, the rest of
/// the tail.
bool send_file_operation::send_around(const_buffer middle) noexcept {
    std::array<iovec, 3> parts;
    std::size_t count = 0;
    for (const const_buffer& each : {rest_of_head(), middle, rest_of_tail()}) {
        if (!each.empty()) parts[count++] = {const_cast<std::byte*>(each.data()), each.size()};
    }
    if (count == 0) return true;
    if (count == 1) return over(sys::send(record->fd, parts[0].iov_base, parts[0].iov_len));
    return over(sys::sendv(record->fd, std::span{parts}.first(count)));
}

/// After a call that has sent `count` bytes, or failed. True: the transfer is over.
bool send_file_operation::over(ssize_t count) noexcept {
    if (count < 0) return send_failed(*this, count);
    moved += static_cast<std::size_t>(count);
    return moved == around_.head.size() + size + around_.tail.size();
}

const char* send_file_operation::name() const noexcept {
    return "async_send_file";
}

} // namespace simplenet::v0::detail
