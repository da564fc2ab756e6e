#pragma once
// What the program tells the service manager that started it, in the protocol of sd_notify(3).

#include <string_view>

namespace httpd {

/// Sends a state such as "READY=1" to the socket in NOTIFY_SOCKET. Without one, or if that fails,
/// nothing happens: a server does not depend on who watches it. Never blocks.
void notify_manager(std::string_view state) noexcept;

/// The state of a service that begins to read its configuration again.
void notify_reloading() noexcept;

} // namespace httpd
