#pragma once
// own_network: a private network and /etc for the test, so that it can run a name server.

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::testing {

/// Moves this process into namespaces (namespaces(7)) in which only 127.0.0.1 and ::1 exist, and
/// the resolver asks 127.0.0.1. Must be called before any thread is started.
///
/// @return The reason why this failed, or an empty string.
inline std::string enter_own_network() {
    const auto failed = [](const std::string& what) { return what + ": " + std::strerror(errno); };
    const uid_t user = ::geteuid();
    const gid_t group = ::getegid();
    const int unprivileged = user == 0 ? 0 : CLONE_NEWUSER;
    if (::unshare(CLONE_NEWNET | CLONE_NEWNS | unprivileged) != 0) {
        return failed("this machine refuses namespaces to tests");
    }
    if (unprivileged != 0) {
        std::ofstream{"/proc/self/setgroups"} << "deny";
        std::ofstream{"/proc/self/uid_map"} << "0 " << user << " 1";
        std::ofstream{"/proc/self/gid_map"} << "0 " << group << " 1";
    }
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return failed("cannot make mounts private");
    }

    const int asking = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq loopback{};
    std::strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP | IFF_RUNNING;
    const bool up = ::ioctl(asking, SIOCSIFFLAGS, &loopback) == 0;
    ::close(asking);
    if (!up) return failed("cannot start the loopback interface");

    std::string directory = "/tmp/simplenet-etc.XXXXXX";
    if (::mkdtemp(directory.data()) == nullptr) return failed("mkdtemp");
    // A file system of this process alone: nothing is left behind.
    if (::mount("none", directory.c_str(), "tmpfs", 0, nullptr) != 0) return failed("mount tmpfs");
    for (const auto& [name, text] : std::initializer_list<std::pair<const char*, const char*>>{
             {"resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"},
             {"nsswitch.conf", "hosts: files dns\nservices: files\n"},
             {"hosts", "127.0.0.1 localhost\n::1 localhost\n"}}) {
        const std::string ours = directory + '/' + name;
        std::ofstream{ours} << text;
        const std::string theirs = std::string{"/etc/"} + name;
        if (::mount(ours.c_str(), theirs.c_str(), nullptr, MS_BIND, nullptr) != 0) {
            return failed("cannot mount over " + theirs);
        }
    }
    if (::umount2(directory.c_str(), MNT_DETACH) == 0) ::rmdir(directory.c_str());
    return {};
}

} // namespace simplenet::v0::testing
