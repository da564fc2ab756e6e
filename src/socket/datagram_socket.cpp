#include "socket/datagrams.hpp"

#include "ip/native.hpp"
#include "sys/calls.hpp"

#include <simplenet/core/detail/contract.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <numeric>

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>

namespace simplenet::v0::detail::datagrams {

namespace {

// --- control messages: data beside a datagram ----------------------------------------------------

/// Room for the control messages that a receive may ask for, for both protocols, and for a time
/// stamp.
constexpr std::size_t incoming_control = 256;

/// Room for the control messages of udp_send_options and of a segment size.
constexpr std::size_t outgoing_control =
    CMSG_SPACE(sizeof(in_pktinfo)) + CMSG_SPACE(sizeof(in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int)) +
    CMSG_SPACE(sizeof(std::uint16_t));

/// The control messages of an outgoing datagram.
class control_writer {
public:
    template <class Value>
    void add(int level, int type, const Value& value) noexcept {
        cmsghdr header{};
        header.cmsg_len = CMSG_LEN(sizeof value);
        header.cmsg_level = level;
        header.cmsg_type = type;
        std::memcpy(bytes_.data() + size_, &header, sizeof header);
        std::memcpy(bytes_.data() + size_ + CMSG_LEN(0), &value, sizeof value);
        size_ += CMSG_SPACE(sizeof value);
    }
    /// @param to  Null: the peer that the socket is connected to; its protocol is not known here.
    void add(const udp_send_options& options, const endpoint* to) noexcept {
        if (options.from || options.interface != 0) add_origin(options, to);
        if (options.ecn) {
            // Each protocol ignores the other one's.
            add(IPPROTO_IP, IP_TOS, static_cast<int>(*options.ecn));
            add(IPPROTO_IPV6, IPV6_TCLASS, static_cast<int>(*options.ecn));
        }
    }
    void attach_to(msghdr& message) noexcept {
        if (size_ == 0) return;
        message.msg_control = bytes_.data();
        message.msg_controllen = size_;
    }

private:
    void add_origin(const udp_send_options& options, const endpoint* to) noexcept {
        const auto* const known = options.from ? &*options.from : to ? &to->address() : nullptr;
        if (known == nullptr || known->unmapped().is_v4()) {
            in_pktinfo origin{};
            origin.ipi_ifindex = static_cast<int>(options.interface);
            if (options.from) {
                const auto from = options.from->unmapped();
                std::memcpy(&origin.ipi_spec_dst, from.bytes().data(), sizeof origin.ipi_spec_dst);
            }
            add(IPPROTO_IP, IP_PKTINFO, origin);
        }
        if (known == nullptr || known->unmapped().is_v6()) {
            in6_pktinfo origin{};
            origin.ipi6_ifindex = options.interface;
            if (options.from) {
                if (origin.ipi6_ifindex == 0) origin.ipi6_ifindex = options.from->scope_id();
                std::memcpy(&origin.ipi6_addr, options.from->bytes().data(),
                            sizeof origin.ipi6_addr);
            }
            add(IPPROTO_IPV6, IPV6_PKTINFO, origin);
        }
    }

    // Uninitialised except for added messages: nearly every datagram has none.
    alignas(cmsghdr) std::array<std::byte, outgoing_control> bytes_;
    std::size_t size_ = 0;
};

template <class Value>
Value value_of(const cmsghdr& header) noexcept {
    Value value;
    std::memcpy(&value, CMSG_DATA(&header), sizeof value);
    return value;
}

void note(udp_datagram& about, const cmsghdr& header) noexcept {
    if (header.cmsg_level == IPPROTO_UDP && header.cmsg_type == UDP_GRO) {
        about.segment_size = static_cast<std::size_t>(value_of<int>(header));
    } else if (header.cmsg_level == IPPROTO_IPV6 && header.cmsg_type == IPV6_PKTINFO) {
        const auto arrival = value_of<in6_pktinfo>(header);
        const std::span<const in6_addr, 1> bits{&arrival.ipi6_addr, 1};
        auto to = ip_address::from_bytes(std::as_bytes(bits));
        if (to.is_link_local()) {
            to = ip_address::from_bytes(std::as_bytes(bits), arrival.ipi6_ifindex);
        }
        about.to = to;
        about.interface = arrival.ipi6_ifindex;
    } else if (header.cmsg_level == IPPROTO_IP && header.cmsg_type == IP_PKTINFO) {
        // An IPv6 socket reports an IPv4 datagram in both forms; `from` has the IPv6 form.
        if (about.to && about.to->is_v6()) return;
        const auto arrival = value_of<in_pktinfo>(header);
        const std::span<const in_addr, 1> bits{&arrival.ipi_addr, 1};
        about.to = ip_address::from_bytes(std::as_bytes(bits));
        about.interface = static_cast<unsigned>(arrival.ipi_ifindex);
    } else if (header.cmsg_level == IPPROTO_IPV6 && header.cmsg_type == IPV6_TCLASS) {
        about.ecn = static_cast<ecn>(value_of<int>(header) & 3);
    } else if (header.cmsg_level == IPPROTO_IP && header.cmsg_type == IP_TOS) {
        about.ecn = static_cast<ecn>(value_of<std::uint8_t>(header) & 3);
    }
}

// --- both address families -----------------------------------------------------------------------

void tell_sender(udp_datagram& about, const native_address& name) noexcept {
    if (const auto from = endpoint_from_native(name.data(), name.size)) about.from = *from;
}
void tell_sender(local_message& about, const native_address& name) noexcept {
    if (const auto from = local_endpoint_from_native(name.data(), name.size)) about.from = *from;
}

void tell_control(udp_datagram& about, msghdr& message) noexcept {
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        note(about, *header);
    }
}
void tell_control(local_message&, msghdr&) noexcept {}

/// The memory for receiving one datagram. Fills an `About` with its properties.
template <class About>
struct arrival {
    native_address name;
    alignas(cmsghdr)
        std::array<std::byte, std::is_same_v<About, udp_datagram> ? incoming_control : 1> control;
    iovec bytes;

    void prepare(msghdr& message, mutable_buffer into) noexcept {
        SIMPLENET_EXPECTS(!into.empty(), "receiving into an empty buffer loses the datagram");
        bytes = {.iov_base = into.data(), .iov_len = into.size()};
        message = {};
        message.msg_name = name.data();
        message.msg_namelen = sizeof name.storage;
        message.msg_iov = &bytes;
        message.msg_iovlen = 1;
        // Without room for control messages the kernel drops descriptors sent with a datagram.
        if constexpr (std::is_same_v<About, udp_datagram>) {
            message.msg_control = control.data();
            message.msg_controllen = control.size();
        }
    }
    /// @param length  The full length of the datagram, which recvmsg(2) returns with MSG_TRUNC.
    void tell(About& about, msghdr& message, std::size_t length) noexcept {
        about = {};
        about.size = std::min(length, bytes.iov_len);
        about.missing = length - about.size;
        about.truncated = about.missing != 0;
        name.size = message.msg_namelen;
        tell_sender(about, name);
        tell_control(about, message);
    }
};

/// The memory for sending one datagram: its destination and its bytes.
template <class Endpoint>
struct departure {
    native_address name;
    iovec bytes;

    void prepare(msghdr& message, const_buffer from, const Endpoint* to) noexcept {
        bytes = {.iov_base = const_cast<std::byte*>(from.data()), .iov_len = from.size()};
        message = {};
        message.msg_iov = &bytes;
        message.msg_iovlen = 1;
        if (to == nullptr) return;
        name = to_native(*to);
        message.msg_name = name.data();
        message.msg_namelen = name.size;
    }
};

template <class About>
ssize_t receive_datagram(int fd, mutable_buffer into, About& about) noexcept {
    arrival<About> place;
    msghdr message;
    place.prepare(message, into);
    const ssize_t length = sys::recvmsg(fd, message, MSG_TRUNC);
    if (length < 0) return length;
    place.tell(about, message, static_cast<std::size_t>(length));
    return 0;
}

template <class About, class Slot>
ssize_t receive_datagrams(int fd, std::span<Slot> into) noexcept {
    SIMPLENET_EXPECTS(!into.empty(), "receive_batch() into an empty span");
    std::array<mmsghdr, most_at_once> messages;
    std::array<arrival<About>, most_at_once> places;
    const std::size_t count = std::min(into.size(), messages.size());
    for (std::size_t at = 0; at < count; ++at)
        places[at].prepare(messages[at].msg_hdr, into[at].into);
    const int outcome =
        sys::recvmmsg(fd, std::span{messages}.first(count), MSG_TRUNC | MSG_WAITFORONE);
    for (int done = 0; done < outcome; ++done) {
        const auto at = static_cast<std::size_t>(done);
        places[at].tell(into[at].about, messages[at].msg_hdr, messages[at].msg_len);
    }
    return outcome;
}

template <class Value>
const Value* address_of(const std::optional<Value>& value) noexcept {
    return value ? &*value : nullptr;
}

bool has_options(const udp_send_options& options) noexcept {
    return options.from || options.interface != 0 || options.ecn;
}

/// Sends segments as separate datagrams with the same destination and options.
ssize_t send_separately(int fd, const_buffer from, std::size_t segment_size, const endpoint* to,
                        const udp_send_options& options) noexcept {
    std::array<mmsghdr, most_at_once> messages;
    std::array<iovec, most_at_once> pieces;
    departure<endpoint> common;
    control_writer control;
    control.add(options, to);
    std::size_t count = 0;
    for (const_buffer rest = from; !rest.empty() && count != messages.size(); ++count) {
        const const_buffer piece = rest.first(std::min(rest.size(), segment_size));
        rest = rest.subspan(piece.size());
        msghdr& message = messages[count].msg_hdr;
        if (count == 0) {
            common.prepare(message, piece, to);
            control.attach_to(message);
        } else {
            message = messages[0].msg_hdr;
        }
        pieces[count] = {.iov_base = const_cast<std::byte*>(piece.data()), .iov_len = piece.size()};
        message.msg_iov = &pieces[count];
    }
    const int outcome = sys::sendmmsg(fd, std::span{messages}.first(count));
    if (outcome < 0) return outcome;
    return static_cast<ssize_t>(
        std::min(static_cast<std::size_t>(outcome) * segment_size, from.size()));
}

ssize_t send_cut_by_the_kernel(int fd, const_buffer from, std::size_t segment_size,
                               const endpoint* to, const udp_send_options& options) noexcept {
    departure<endpoint> one;
    msghdr message;
    one.prepare(message, from, to);
    control_writer control;
    control.add(options, to);
    control.add(IPPROTO_UDP, UDP_SEGMENT, static_cast<std::uint16_t>(segment_size));
    control.attach_to(message);
    return sys::sendmsg(fd, message);
}

/// Whether a segmented send failed in a way that separate datagrams may avoid.
// EIO: the device cannot. EMSGSIZE: a segment is longer than the route's packets. EINVAL: the same
// before Linux 6.14; or the socket sends no checksums, or the kernel does not know UDP_SEGMENT
// (before Linux 4.18).
bool refuses_segments(ssize_t outcome) noexcept {
    return outcome == -EIO || outcome == -EMSGSIZE || outcome == -EINVAL;
}

/// Lowers the limit after a segmented send failed with `outcome` and a separate one succeeded.
void lower(segment_limit& limit, ssize_t outcome, std::size_t segment_size) noexcept {
    constexpr std::size_t always_fits = 1280 - 40 - 8; // RFC 8200, 5
    const bool too_long =
        outcome == -EMSGSIZE || (outcome == -EINVAL && segment_size > always_fits);
    limit.set(too_long ? segment_size - 1 : 0);
}

/// The most bytes of one call with UDP_SEGMENT: the payload of the longest IPv4 datagram.
constexpr std::size_t most_segmented_bytes = 65'507;

/// The number of datagrams at the front of `from` that can be passed to the kernel as one buffer,
/// which it splits into datagrams: with the same destination and size, except that the last may be
/// shorter. At least 1 unless `from` is empty.
std::size_t run_length(std::span<const outgoing_datagram> from, std::size_t most_size) noexcept {
    if (from.empty()) return 0;
    const outgoing_datagram& first = from[0];
    const std::size_t size = first.data.size();
    if (size == 0 || size > most_size) return 1;
    std::size_t bytes = size;
    std::size_t length = 1;
    for (; length != from.size() && length != most_at_once; ++length) {
        const outgoing_datagram& next = from[length];
        bytes += next.data.size();
        if (next.data.empty() || next.data.size() > size || bytes > most_segmented_bytes) break;
        if (next.to != first.to || next.options != first.options) break;
        if (next.data.size() < size) return length + 1;
    }
    return length;
}

/// Datagrams sent of the first `most_at_once`. A run is sent as one buffer, which costs a fraction.
ssize_t send_runs(int fd, std::span<const outgoing_datagram> from, std::size_t most_size) noexcept {
    from = from.first(std::min(from.size(), most_at_once));
    std::array<mmsghdr, most_at_once> messages;
    std::array<departure<endpoint>, most_at_once> datagrams;
    std::array<iovec, most_at_once> pieces;
    std::array<control_writer, most_at_once> controls;
    std::array<std::size_t, most_at_once> lengths; // datagrams of each message
    std::size_t count = 0;
    for (std::size_t at = 0; at != from.size(); ++count) {
        const outgoing_datagram& first = from[at];
        const std::size_t length = run_length(from.subspan(at), most_size);
        msghdr& message = messages[count].msg_hdr;
        datagrams[count].prepare(message, first.data, address_of(first.to));
        if (has_options(first.options)) controls[count].add(first.options, address_of(first.to));
        if (length > 1) {
            for (std::size_t piece = at; piece != at + length; ++piece) {
                const const_buffer data = from[piece].data;
                pieces[piece] = {.iov_base = const_cast<std::byte*>(data.data()),
                                 .iov_len = data.size()};
            }
            message.msg_iov = &pieces[at];
            message.msg_iovlen = length;
            controls[count].add(IPPROTO_UDP, UDP_SEGMENT,
                                static_cast<std::uint16_t>(first.data.size()));
        }
        controls[count].attach_to(message);
        lengths[count] = length;
        at += length;
    }
    const int outcome = sys::sendmmsg(fd, std::span{messages}.first(count));
    if (outcome < 0) return outcome;
    const auto sent = std::span{lengths}.first(static_cast<std::size_t>(outcome));
    return static_cast<ssize_t>(std::accumulate(sent.begin(), sent.end(), std::size_t{0}));
}

/// Sends a whole batch by repeated `attempt`, until one fails.
template <class Slot, class Attempt>
transfer_result send_all(std::span<const Slot> from, Attempt attempt) noexcept {
    std::size_t done = 0;
    while (done != from.size()) {
        const ssize_t outcome = attempt(from.subspan(done));
        if (outcome < 0) return std::unexpected{transfer_error{sys::error_from(outcome), done}};
        done += static_cast<std::size_t>(outcome);
    }
    return done;
}

} // namespace

// --- attempts ------------------------------------------------------------------------------------

ssize_t send_one(int fd, const_buffer from, const endpoint* to,
                 const udp_send_options& options) noexcept {
    if (!has_options(options)) {
        // sendto(2) does the same with less to copy, and suffices for most datagrams.
        if (to == nullptr) return sys::send(fd, from.data(), from.size());
        const auto name = to_native(*to);
        return sys::sendto(fd, from.data(), from.size(), 0, name.data(), name.size);
    }
    departure<endpoint> one;
    msghdr message;
    one.prepare(message, from, to);
    control_writer control;
    control.add(options, to);
    control.attach_to(message);
    return sys::sendmsg(fd, message);
}

ssize_t send_one(int fd, const_buffer from, const local_endpoint* to) noexcept {
    if (to == nullptr) return sys::send(fd, from.data(), from.size());
    const auto name = to_native(*to);
    return sys::sendto(fd, from.data(), from.size(), 0, name.data(), name.size);
}

ssize_t receive_one(int fd, mutable_buffer into, udp_datagram& about) noexcept {
    return receive_datagram(fd, into, about);
}
ssize_t receive_one(int fd, mutable_buffer into, local_message& about) noexcept {
    return receive_datagram(fd, into, about);
}

ssize_t receive_some(int fd, std::span<incoming_datagram> into) noexcept {
    return receive_datagrams<udp_datagram>(fd, into);
}
ssize_t receive_some(int fd, std::span<incoming_message> into) noexcept {
    return receive_datagrams<local_message>(fd, into);
}

ssize_t send_some(int fd, std::span<const outgoing_datagram> from, segment_limit& limit) noexcept {
    const std::size_t before = limit.get();
    const ssize_t outcome = send_runs(fd, from, before);
    if (!refuses_segments(outcome) || run_length(from, before) <= 1) return outcome;
    lower(limit, outcome, from[0].data.size());
    const ssize_t apart = send_runs(fd, from, limit.get());
    // If that also fails, and not for lack of room, segments were not the reason.
    if (apart < 0 && apart != -EAGAIN) limit.set(before);
    return apart;
}

ssize_t send_some(int fd, std::span<const outgoing_message> from) noexcept {
    std::array<mmsghdr, most_at_once> messages;
    std::array<departure<local_endpoint>, most_at_once> datagrams;
    const std::size_t count = std::min(from.size(), messages.size());
    for (std::size_t at = 0; at < count; ++at)
        datagrams[at].prepare(messages[at].msg_hdr, from[at].data, address_of(from[at].to));
    return sys::sendmmsg(fd, std::span{messages}.first(count));
}

ssize_t send_segments(int fd, const_buffer from, std::size_t segment_size, const endpoint* to,
                      const udp_send_options& options, segment_limit& limit) noexcept {
    // most_at_once is also UDP_MAX_SEGMENTS of Linux before 6.9.
    const std::size_t whole = std::min(most_segmented_bytes / segment_size, most_at_once);
    const std::size_t most = std::max<std::size_t>(whole, 1) * segment_size;
    const const_buffer part = from.first(std::min(from.size(), most));
    if (part.size() <= segment_size || segment_size > limit.get()) {
        return send_separately(fd, from, segment_size, to, options);
    }
    const ssize_t outcome = send_cut_by_the_kernel(fd, part, segment_size, to, options);
    if (!refuses_segments(outcome)) return outcome;
    const ssize_t apart = send_separately(fd, from, segment_size, to, options);
    if (apart >= 0 || apart == -EAGAIN) lower(limit, outcome, segment_size);
    return apart;
}

// --- blocking and nonblocking sockets ------------------------------------------------------------

result<udp_datagram> receive_from(int fd, mutable_buffer into) noexcept {
    udp_datagram about;
    if (const ssize_t outcome = receive_one(fd, into, about); outcome < 0) {
        return fail(sys::error_from(outcome));
    }
    return about;
}
result<local_message> receive_message(int fd, mutable_buffer into) noexcept {
    local_message about;
    if (const ssize_t outcome = receive_one(fd, into, about); outcome < 0) {
        return fail(sys::error_from(outcome));
    }
    return about;
}

transfer_result send_batch(int fd, std::span<const outgoing_datagram> from,
                           segment_limit& limit) noexcept {
    return send_all(from, [&](auto rest) { return send_some(fd, rest, limit); });
}
transfer_result send_batch(int fd, std::span<const outgoing_message> from) noexcept {
    return send_all(from, [&](auto rest) { return send_some(fd, rest); });
}
transfer_result send_segmented(int fd, const_buffer from, std::size_t segment_size,
                               const endpoint* to, const udp_send_options& options,
                               segment_limit& limit) noexcept {
    SIMPLENET_EXPECTS(segment_size != 0, "send_segmented() into segments of no size");
    std::size_t done = 0;
    while (done != from.size()) {
        const ssize_t outcome =
            send_segments(fd, from.subspan(done), segment_size, to, options, limit);
        if (outcome < 0) return std::unexpected{transfer_error{sys::error_from(outcome), done}};
        done += static_cast<std::size_t>(outcome);
    }
    return done;
}

result<> connect(int fd, const endpoint& peer) noexcept {
    const auto name = to_native(peer);
    return sys::to_result(sys::connect(fd, name.data(), name.size));
}
result<> connect(int fd, const local_endpoint& peer) noexcept {
    const auto name = to_native(peer);
    return sys::to_result(sys::connect(fd, name.data(), name.size));
}

result<> disconnect(int fd) noexcept {
    return sys::to_result(sys::disconnect(fd)); // connect(2): AF_UNSPEC dissolves the association
}

result<udp_error> take_error(int fd) noexcept {
    arrival<udp_datagram> place;
    std::byte unwanted{}; // for the payload of the failed datagram
    msghdr message;
    place.prepare(message, {&unwanted, 1});
    // MSG_DONTWAIT is not needed: a read of the error queue never blocks (recv(2)).
    if (const ssize_t outcome = sys::recvmsg(fd, message, MSG_ERRQUEUE); outcome < 0) {
        return fail(sys::error_from(outcome));
    }
    place.name.size = message.msg_namelen;
    udp_error about;
    if (const auto to = endpoint_from_native(place.name.data(), place.name.size)) about.to = *to;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        const bool v4 = header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_RECVERR;
        const bool v6 = header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_RECVERR;
        if (!v4 && !v6) continue;
        const int number = static_cast<int>(value_of<sock_extended_err>(*header).ee_errno);
        about.code = {number, std::system_category()};
    }
    return about;
}

} // namespace simplenet::v0::detail::datagrams
