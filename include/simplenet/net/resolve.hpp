#pragma once
// async_resolve: from a name to endpoints. Layer net. async_connect(host, port) stands on the
// same lookups.

#include <simplenet/coro/task.hpp>
#include <simplenet/ip/address_family.hpp>
#include <simplenet/ip/endpoint.hpp>

#include <cstdint>
#include <string_view>
#include <system_error>
#include <vector>

#pragma GCC visibility push(default)

namespace simplenet::v0 {
inline namespace runtime {

/// What is asked for.
struct resolve_options {
    /// Asks only for addresses of one family.
    address_family family = address_family::any;
    /// Service names are those of UDP, where /etc/services tells them apart.
    bool datagram = false;
};

/// The category of what the system's resolver says, named "resolver": values are those of
/// getaddrinfo(3), messages those of gai_strerror(3). A code of it equals errc::name_not_found or
/// errc::name_lookup_failed. Any thread.
[[nodiscard]] const std::error_category& resolver_category() noexcept;

/// Looks `host` up, the way getaddrinfo(3) does: /etc/nsswitch.conf says where.
///
/// An address, IPv6 with a scope id included (`fe80::1%3`, `fe80::1%eth0`), is its own answer, at
/// once and without a thread. A name is looked up on the process's resolver threads, at most 8,
/// which start when they are needed and end after 10 s without work; IPv4 and IPv6 are two
/// lookups. Equal lookups that are under way at the same time, on whatever loops, are one; nothing
/// is cached. When every thread is busy a lookup waits for its turn.
///
/// @param host  Copied. A name in the form that is sent (an international one in its `xn--` form),
///              or an address. Of the many spellings of IPv4 only four decimal octets are taken: a
///              name whose last part is a number, such as 127.1 or 0x7f000001, is refused, since
///              programs disagree about it.
/// @param port  Of the endpoints that are returned.
/// @return At least one endpoint, none twice: IPv6 first, then IPv4, but a family to which this
///         machine has no route comes last. Within a family, the order of RFC 6724 as
///         getaddrinfo(3) applies it. If only one family has addresses, why the other has none is
///         not told.
///
/// @par Errors
/// Codes that the resolver gives have its own message, and equal one of the first two.
/// - `errc::name_not_found`: the resolver answered: no such name, no address, no such service.
/// - `errc::name_lookup_failed`: it could not answer. Trying later may help.
/// - `std::errc::invalid_argument`: `host` is empty, has more than 253 characters (section 2.3.4 of
///   RFC 1035), or has what is in no name: blanks, control characters, NUL, any of `:/[]@*`, a
///   number in the end.
/// - `std::errc::no_such_device`: there is no network interface of that name.
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// - Anything else: an errno of the lookup, such as `std::errc::too_many_files_open`.
///
/// @par Cancellation
/// Ends at once. The lookup itself cannot be interrupted (getaddrinfo(3) offers no way) and goes on
/// without anybody; so at most 8 are abandoned at a time. One that has not begun is dropped. If one
/// family has answered with addresses when the stop or the deadline comes, they are the result.
/// @par Cost
/// Allocates; two posts from other threads for a name.
/// @par Thread safety
/// A child of fork(2) has resolver threads of its own. At the end of the process nobody waits for
/// a lookup. Resolver threads block every signal but those of faults.
/// @par Example
/// @snippet docs/snippets/resolving.cpp resolve
[[nodiscard]] task<result<std::vector<endpoint>>>
async_resolve(std::string_view host, std::uint16_t port, resolve_options options = {});

/// The same with a service, by its number or by its name in /etc/services.
///
/// @param service  Copied. Digits are a port; any other name is looked up on a resolver thread.
/// @par Errors
/// - `std::errc::invalid_argument`: also if `service` is empty or `*`, contains blanks, NUL or
///   control characters, begins with a sign, or is a number above 65535.
[[nodiscard]] task<result<std::vector<endpoint>>>
async_resolve(std::string_view host, std::string_view service, resolve_options options = {});

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
