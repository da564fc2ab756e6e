#pragma once
// Shared by the examples: parsing the command line, and reporting an error in one line. Not a part
// of the library.

#include <simplenet/simplenet.hpp>

#include <cerrno>
#include <charconv>
#include <concepts>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace example {

/// If a process starts without its standard streams (`program >&-`), the next files it opens get
/// their numbers, and its output would go to a peer. This occupies the numbers with files that
/// cannot be written, so printing fails as it should.
inline void occupy_standard_streams() {
    int taken = -1;
    do {
        taken = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (taken >= 0 && taken <= STDERR_FILENO);
    if (taken > STDERR_FILENO) ::close(taken);
}

/// `--name value` pairs and the words between them. A mistake in them ends the program with status
/// 2, the reason and the usage.
class arguments {
public:
    arguments(int argc, char** argv, std::string_view usage)
        : usage_{usage}
        , words_(argv + 1, argv + argc) {
        occupy_standard_streams();
        for (const std::string_view word : words_) {
            if (word != "--help" && word != "-h") continue;
            std::cout << "Usage: " << usage_ << '\n';
            std::exit(0);
        }
    }

    /// The word after `--name`, if it was given.
    std::optional<std::string_view> option(std::string_view name) {
        for (std::size_t at = 0; at < words_.size(); ++at) {
            if (words_[at] != name) continue;
            if (at + 1 == words_.size()) wrong(std::string{name} + " needs a value");
            const std::string_view value = words_[at + 1];
            words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(at),
                         words_.begin() + static_cast<std::ptrdiff_t>(at + 2));
            return value;
        }
        return std::nullopt;
    }

    /// Whether `--name` was given, an option without a value.
    bool flag(std::string_view name) { return std::erase(words_, name) != 0; }

    /// The next word that belongs to no option. Take the options first.
    std::string_view next(std::string_view what) {
        if (words_.empty()) wrong(std::string{what} + " is missing");
        const std::string_view word = words_.front();
        if (word.starts_with('-')) wrong("unknown option: " + std::string{word});
        words_.erase(words_.begin());
        return word;
    }
    [[nodiscard]] bool empty() const { return words_.empty(); }

    template <std::unsigned_integral T>
    T number(std::string_view what, std::string_view text, T least, T most) const {
        T value = 0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (problem == std::errc{} && end == text.data() + text.size() && value >= least &&
            value <= most)
            return value;
        wrong("bad " + std::string{what} + " '" + std::string{text} + "': expected " +
              std::to_string(least) + " to " + std::to_string(most));
    }
    std::uint16_t port(std::string_view text, std::uint16_t least = 1) const {
        return number<std::uint16_t>("port", text, least, 65535);
    }
    simplenet::ip_address address(std::string_view text) const {
        const auto parsed = simplenet::ip_address::parse(text);
        if (!parsed) {
            wrong("bad address '" + std::string{text} +
                  "': expected an IP address like 127.0.0.1 or ::1");
        }
        return *parsed;
    }
    /// The value of `--backend`.
    simplenet::backend backend() {
        using simplenet::backend;
        const auto name = option("--backend").value_or("automatic");
        for (const backend each : {backend::automatic, backend::epoll, backend::io_uring}) {
            if (name == to_string(each)) return each;
        }
        wrong("bad backend '" + std::string{name} + "': expected automatic, epoll or io_uring");
    }

    /// Fails if any word is left.
    void finish() const {
        if (!words_.empty()) wrong("unexpected argument '" + std::string{words_[0]} + "'");
    }

    [[noreturn]] void wrong(std::string_view reason) const {
        std::cerr << reason << "\nUsage: " << usage_ << '\n';
        std::exit(2);
    }

private:
    std::string_view usage_;
    std::vector<std::string_view> words_; // not yet taken
};

/// The options of every server here.
struct server_options {
    simplenet::endpoint at;
    simplenet::backend backend;
};
inline constexpr std::string_view server_usage =
    " [--address IP] [--port N] [--backend automatic|epoll|io_uring]";
/// Takes them from `given`, which may have others.
inline server_options take_server_options(arguments& given) {
    const auto address = given.address(given.option("--address").value_or("127.0.0.1"));
    const auto port = given.port(given.option("--port").value_or("7000"), 0);
    return {{address, port}, given.backend()};
}
inline server_options read_server_options(int argc, char** argv, std::string_view name) {
    const std::string usage = std::string{name}.append(server_usage);
    arguments given{argc, argv, usage};
    const server_options options = take_server_options(given);
    given.finish();
    return options;
}

/// Prints the server's address: with port 0 the kernel has chosen the port. Needs a running loop.
inline void announce(const auto& socket) {
    std::cout << "listening on " << or_throw(socket.local_endpoint()).to_string() << " ("
              << to_string(simplenet::event_loop::current()->selected_backend()) << ")"
              << std::endl; // flushed: a program may be waiting for it
}

/// The same for a server on several loops.
inline void announce(const auto& server, simplenet::backend used) {
    std::cout << "listening on " << server.local_endpoint().to_string() << " (" << to_string(used)
              << ")" << std::endl;
}

/// Prints what failed and why; returns the exit status of a failed program.
inline int failed(std::string_view what, std::error_code why) {
    std::cerr << what << ": " << why.message() << '\n';
    return EXIT_FAILURE;
}

/// Returns the exit status of a program that has printed its result: a full disk is a failure too.
inline int printed() {
    if (std::cout.flush()) return EXIT_SUCCESS;
    return failed("cannot write the output", {errno, std::system_category()});
}

inline simplenet::task<simplenet::result<>>
announce_and(simplenet::task<simplenet::result<>> (*serve)(simplenet::tcp_listener),
             simplenet::tcp_listener listener) {
    announce(listener);
    co_return co_await serve(std::move(listener));
}
/// A server's whole main(); echo_server.cpp has it written out.
inline int run_server(int argc, char** argv, std::string_view name,
                      simplenet::task<simplenet::result<>> (*serve)(simplenet::tcp_listener)) {
    const auto options = read_server_options(argc, argv, name);
    auto listener = simplenet::tcp_listener::bind(options.at);
    if (!listener) return failed("cannot listen on " + options.at.to_string(), listener.error());
    try {
        const auto ended =
            simplenet::run(announce_and(serve, *std::move(listener)), {.backend = options.backend});
        if (ended || ended.error() == std::errc::operation_canceled) return 0; // a normal end
        return failed("cannot accept connections", ended.error());
    } catch (const std::system_error& error) {
        return failed("cannot make an event loop", error.code());
    }
}

} // namespace example
