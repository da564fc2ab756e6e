// Opens files for other processes: a client sends a name and gets an open descriptor back.
// Lesson: descriptors travel with bytes over Unix domain streams, and the receiver owns them.
//
//   descriptor_passing serve DIRECTORY SOCKET     hands out the files of DIRECTORY
//  descriptor_passing fetch SOCKET NAME          prints one of them without opening it

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <cerrno>
#include <iostream>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace simplenet;

//! [send]
// Opens a regular file in the directory. No path or link may lead out of the directory, and a
// directory's descriptor would let its owner open everything around it. O_NONBLOCK: a FIFO must not
// block the loop.
unique_fd open_in(int directory, const std::string& name) {
    if (name.find('/') != std::string::npos) return {};
    unique_fd file{
        ::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
    struct stat about{};
    if (!file || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return {};
    return file;
}

// A request is one line with a name. The answer is a line, with a descriptor if the file exists.
task<> hand_out(local_stream peer, int directory) {
    buffered_reader reader{peer};
    while (const auto name = co_await reader.read_line(255)) {
        const unique_fd file = open_in(directory, std::string{*name});
        if (file) {
            const auto sent = co_await peer.send_descriptors("here it is\n", file.get());
            if (!sent) co_return;
        } else {
            const auto sent = co_await async_write_all(peer, "no such file\n");
            if (!sent) co_return;
        }
    } // the file is closed here; the client has its own descriptor
}
//! [send]

task<result<>> serve(local_listener listener, int directory) {
    std::cout << "listening" << std::endl; // flushed: a program may be waiting for it
    const auto ended = co_await with_group([&](task_group& clients) -> task<result<>> {
        for (;;) {
            auto peer = co_await listener.accept();
            if (!peer) co_return fail(peer);
            clients.spawn(hand_out(*std::move(peer), directory));
        }
    });
    static_cast<void>(listener.unlink_path()); // otherwise the socket's file stays
    co_return ended;
}

task<result<>> fetch(simplenet::local_endpoint server, std::string name) {
    auto stream = co_await async_connect(server);
    if (!stream) co_return fail(stream);
    name += '\n';
    if (auto sent = co_await async_write_all(*stream, name); !sent) co_return fail(sent);
    //! [receive]
    std::array<char, 256> text;
    auto answer = co_await stream->receive_descriptors(text, 1); // more than 1 is an error
    if (!answer) co_return fail(answer);
    if (answer->descriptors.empty()) co_return fail(std::errc::no_such_file_or_directory);
    const unique_fd file = std::move(answer->descriptors.front()); // from here on we own it
    //! [receive]
    std::array<char, 65536> block;
    ssize_t count = 0;
    do {
        count = ::read(file.get(), block.data(), block.size());
    } while (count > 0 && std::cout.write(block.data(), count));
    if (count < 0 || !std::cout.flush())
        co_return fail(std::error_code{errno, std::system_category()});
    co_return result<>{};
}

int main(int argc, char** argv) {
    example::arguments given{argc, argv,
                             "descriptor_passing serve DIRECTORY SOCKET | fetch SOCKET NAME "
                             "[--backend automatic|epoll|io_uring]"};
    const loop_options options{.backend = given.backend()};
    const auto mode = given.next("serve or fetch");
    const std::string first{given.next("the first argument")};
    const std::string second{given.next("the second argument")};
    given.finish();
    const bool serves = mode == "serve";
    if (!serves && mode != "fetch") given.wrong("expected serve or fetch");

    const auto at = simplenet::local_endpoint::parse(serves ? second : first);
    if (!at) return example::failed("bad socket path", at.error());
    try {
        if (!serves) {
            const auto done = run(fetch(*at, second), options);
            return done ? 0 : example::failed(second, done.error());
        }
        const unique_fd directory{::open(first.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        if (!directory) return example::failed(first, {errno, std::system_category()});
        auto listener = local_listener::bind(*at, {.unlink_existing = true});
        if (!listener) return example::failed(second, listener.error());
        const auto ended = run(serve(*std::move(listener), directory.get()), options);
        if (ended || ended.error() == std::errc::operation_canceled) return 0; // a normal end
        return example::failed("cannot accept connections", ended.error());
    } catch (const std::system_error& error) { // the loop could not be created
        return example::failed("cannot make an event loop", error.code());
    }
}
