// Opens files for other processes: a client sends a name, and gets an open descriptor back.
// Lesson: descriptors travel with bytes over Unix domain streams, and who receives one owns it.
//
//   descriptor_passing serve DIRECTORY SOCKET     hands out the files of DIRECTORY
//   descriptor_passing fetch SOCKET NAME          prints one of them, though it opens none

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <iostream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

using namespace simplenet;

//! [send]
// One request is one line with a name. The answer is a line, with a descriptor if there is one.
task<> hand_out(local_stream peer, int directory) {
    std::array<char, 256> name;
    while (const auto count = co_await peer.read_some(name)) {
        std::string wanted{name.data(), *count};
        if (wanted.ends_with('\n')) wanted.pop_back();
        // Not out of the directory: neither by a path nor by a link.
        const bool fine = wanted.find('/') == std::string::npos && wanted != "..";
        const unique_fd file{
            fine ? ::openat(directory, wanted.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1};
        const auto sent = file ? co_await peer.send_descriptors("here it is\n", file.get())
                               : co_await async_write_all(peer, "no such file\n");
        if (!sent) co_return;
    } // the file is closed here; the client has its own descriptor
}
//! [send]

task<result<>> serve(local_listener listener, int directory) {
    std::cout << "listening" << std::endl; // flushed: somebody may wait for it
    task_group clients;
    for (;;) {
        auto peer = co_await listener.accept();
        if (!peer) co_return fail(peer);
        clients.spawn(hand_out(*std::move(peer), directory));
    }
}

task<result<>> fetch(simplenet::local_endpoint server, std::string name) {
    auto stream = co_await async_connect(server);
    if (!stream) co_return fail(stream);
    name += '\n';
    if (auto sent = co_await async_write_all(*stream, name); !sent) co_return fail(sent);
    //! [receive]
    std::array<char, 256> text;
    auto answer = co_await stream->receive_descriptors(text, 1); // more than 1 is refused
    if (!answer) co_return fail(answer);
    if (answer->descriptors.empty()) co_return fail(std::errc::no_such_file_or_directory);
    const unique_fd file = std::move(answer->descriptors.front()); // ours from here on
    //! [receive]
    std::array<char, 65536> block;
    ssize_t count = 0;
    while ((count = ::read(file.get(), block.data(), block.size())) > 0)
        std::cout.write(block.data(), count);
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
    if (!serves) {
        const auto done = run(fetch(*at, second), options);
        return done ? 0 : example::failed(second, done.error());
    }
    const unique_fd directory{::open(first.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (!directory) return example::failed(first, {errno, std::system_category()});
    auto listener = local_listener::bind(*at, {.unlink_existing = true});
    if (!listener) return example::failed(second, listener.error());
    const auto ended = run(serve(*std::move(listener), directory.get()), options);
    return ended || ended.error() == std::errc::operation_canceled ? 0 : 1;
}
