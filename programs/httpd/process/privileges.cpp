#include "httpd/process/privileges.hpp"

#include <cerrno>
#include <system_error>

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace httpd {

namespace {

simplenet::result<> last_error() {
    return simplenet::fail(std::error_code{errno, std::system_category()});
}

/// Only CAP_NET_BIND_SERVICE. libcap would be a dependency for one call.
bool keep_binding() noexcept {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct sets[2]{}; // of 32 capabilities each
    sets[0].permitted = sets[0].effective = 1U << CAP_NET_BIND_SERVICE;
    return ::syscall(SYS_capset, &header, sets) == 0;
}

} // namespace

void raise_descriptor_limit() noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

simplenet::result<> become(const run_as& user) {
    if (::geteuid() != 0) {
        if (::geteuid() == user.uid) return {};
        return simplenet::fail(std::errc::operation_not_permitted);
    }
    if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return last_error();
    if (::initgroups(user.name.c_str(), user.gid) != 0) return last_error();
    if (::setgid(user.gid) != 0 || ::setuid(user.uid) != 0) return last_error();
    if (user.uid != 0 && !keep_binding()) return last_error();
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return last_error();
    return {};
}

} // namespace httpd
