// Prints which files of a directory appear, change and vanish.
// Lesson: the loop can wait for any descriptor that can be polled, here one of inotify(7).

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>

#include <sys/inotify.h>
#include <unistd.h>

using namespace simplenet;

std::string_view what_happened(std::uint32_t mask) {
    if ((mask & IN_Q_OVERFLOW) != 0) return "too many at once: some are missing";
    if ((mask & (IN_CREATE | IN_MOVED_TO)) != 0) return "appeared";
    if ((mask & (IN_DELETE | IN_MOVED_FROM)) != 0) return "vanished";
    return "changed";
}

/// Prints the events returned by one read(2). Returns their number, or an error if the directory is
/// gone.
result<std::size_t> print(std::string_view events) {
    std::size_t count = 0;
    while (events.size() >= sizeof(inotify_event)) {
        inotify_event event;
        std::memcpy(&event, events.data(), sizeof event);
        if ((event.mask & IN_IGNORED) != 0) return fail(std::errc::no_such_file_or_directory);
        // The name is padded with NULs; it is empty for events of the directory itself.
        const std::string_view padded = events.substr(sizeof event, event.len);
        std::cout << what_happened(event.mask) << ' ' << padded.substr(0, padded.find('\0'))
                  << std::endl;
        events.remove_prefix(sizeof event + event.len);
        ++count;
    }
    return count;
}

//! [wait]
// The descriptor is nonblocking: read it until it is empty, and only then wait.
task<result<>> print_changes(int inotify, std::size_t most) {
    std::array<char, 16384> events;
    for (std::size_t seen = 0; seen < most;) {
        const ssize_t size = ::read(inotify, events.data(), events.size());
        if (size > 0) {
            const auto count = print({events.data(), static_cast<std::size_t>(size)});
            if (!count) co_return fail(count);
            seen += *count;
        } else if (errno == EAGAIN) {
            // Meanwhile the loop runs other tasks, and a stop or a deadline can end this wait.
            if (auto ready = co_await async_wait_readable(inotify); !ready) co_return ready;
        } else {
            co_return fail(std::error_code{errno, std::system_category()});
        }
    }
    co_return result<>{};
}
//! [wait]

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "watch_files DIRECTORY [--events N] "
                             "[--backend automatic|epoll|io_uring]"};
    const auto most = given.number<std::size_t>(
        "number of events", given.option("--events").value_or("1000000000"), 1, 1'000'000'000);
    const loop_options options{.backend = given.backend()};
    const std::string directory{given.next("DIRECTORY")};
    given.finish();

    const unique_fd inotify{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    constexpr std::uint32_t wanted =
        IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE;
    if (!inotify || ::inotify_add_watch(inotify.get(), directory.c_str(), wanted) < 0) {
        return example::failed(directory, {errno, std::system_category()});
    }
    std::cout << "watching " << directory << std::endl; // flushed: a program may be waiting for it
    try {
        const auto ended = run(print_changes(inotify.get(), most), options);
        if (ended || ended.error() == std::errc::operation_canceled) return 0; // a normal end
        return example::failed(directory, ended.error());
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
