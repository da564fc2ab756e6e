#pragma once
// async_resolve: from a name to endpoints. async_connect(host, port) uses the same lookups. Layer
// net.

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

/// What async_resolve() looks up.
struct resolve_options {
    /// Looks up only addresses of this family.
    address_family family = address_family::any;
    /// Service names are those of UDP, if /etc/services distinguishes them.
    bool datagram = false;
};

/// The category of the system resolver's errors, named "resolver". Values are those of
/// getaddrinfo(3), messages those of gai_strerror(3). Its codes equal errc::name_not_found or
/// errc::name_lookup_failed. Any thread.
[[nodiscard]] const std::error_category& resolver_category() noexcept;

/// Looks `host` up as getaddrinfo(3) does, in the sources that /etc/nsswitch.conf names.
///
/// An address, including IPv6 with a scope id (`fe80::1%3`, `fe80::1%eth0`), needs no lookup and no
/// thread. A name is looked up on the process's resolver threads, at most 8, which start when
/// needed and end after 10 s without work. IPv4 and IPv6 are two lookups. Equal lookups at the same
/// time are merged into one, even from different loops; nothing is cached. When every thread is
/// busy, a lookup waits for its turn.
///
/// @param host  Copied. A name as it is sent (an international one in its `xn--` form), or an
///              address. An IPv4 address must be four decimal octets: a name whose last part is a
///              number, such as 127.1 or 0x7f000001, is refused, because programs disagree about
///              its meaning.
/// @param port  The port of the returned endpoints.
/// @return At least one endpoint, without duplicates: IPv6 first, then IPv4, but a family to which
///         this machine has no route comes last. Within a family, the order of RFC 6724 as applied
///         by getaddrinfo(3). If only one family has addresses, the error of the other is not
///         reported.
///
/// @par Errors
/// Codes from the resolver have its message, and equal one of the first two.
/// - `errc::name_not_found`: the resolver answered: no such name, no address, no such service.
/// - `errc::name_lookup_failed`: the resolver could not answer. A later attempt may succeed.
/// - `std::errc::invalid_argument`: `host` is empty, has more than 253 characters (section 2.3.4 of
///   RFC 1035), ends with a number, or contains a character that no name has: blanks, control
///   characters, NUL, any of `:/[]@*`.
/// - `std::errc::no_such_device`: there is no network interface of that name.
/// - `std::errc::operation_canceled`, `errc::deadline_exceeded`: a stop or a deadline came first.
/// - Anything else: an errno of the lookup, such as `std::errc::too_many_files_open`.
///
/// @par Cancellation
/// Ends at once. A running lookup cannot be interrupted (getaddrinfo(3) offers no way) and
/// continues unattended; there are at most 8 of them. A lookup that has not begun is dropped. If
/// one family has already answered with addresses, they are the result.
/// @par Cost
/// Allocates; two posts from other threads for a name.
/// @par Thread safety
/// A child of fork(2) has its own resolver threads. The end of the process does not wait for
/// lookups. Resolver threads block all signals except those of faults.
/// @par Example
/// @snippet docs/snippets/resolving.cpp resolve
[[nodiscard]] task<result<std::vector<endpoint>>>
async_resolve(std::string_view host, std::uint16_t port, resolve_options options = {});

/// The same for a service, given by its number or by its name in /etc/services.
///
/// @param service  Copied. Digits are a port; a name is looked up on a resolver thread.
/// @par Errors
/// - `std::errc::invalid_argument`: also if `service` is empty or `*`, contains blanks, NUL or
///   control characters, begins with a sign, or is a number above 65535.
[[nodiscard]] task<result<std::vector<endpoint>>>
async_resolve(std::string_view host, std::string_view service, resolve_options options = {});

} // namespace runtime
} // namespace simplenet::v0

#pragma GCC visibility pop
