#pragma once
// dns_server: a name server that misbehaves as a test demands: silent, late, lying, truncating.

#include "support/raw_peer.hpp"

#include <simplenet/core/unique_fd.hpp>
#include <simplenet/ip/ip_address.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace simplenet::v0::testing {

enum class record : std::uint16_t { a = 1, aaaa = 28 };

/// The reply to a question.
struct dns_reply {
    enum class way {
        answer,
        silence,
        hold,      // until release()
        truncate,  // over UDP only "ask again with TCP", which gets the answer
        garbage,   // bytes that are not an answer
        wrong_id,  // an answer to another client's question
        wrong_name // an answer to another question
    };
    way how = way::answer;
    std::vector<std::string> addresses;
    unsigned code = 0; // RCODE: 2 server failure, 3 no such name, 5 refused
};

/// Answers on port 53 of 127.0.0.1, over UDP and TCP; names without a reply do not exist. Owns its
/// thread.
class dns_server {
public:
    dns_server() {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_port = htons(53);
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int one = 1;
        ::setsockopt(tcp_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        for (const int fd : {udp_.get(), tcp_.get()})
            checked(::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at));
        checked(::listen(tcp_.get(), 16));
        thread_ = std::thread{[this] { serve(); }};
    }
    dns_server(const dns_server&) = delete;
    dns_server& operator=(const dns_server&) = delete;
    ~dns_server() {
        wake();
        thread_.join();
    }

    void set(std::string_view name, record type, dns_reply reply) {
        const std::lock_guard lock{guard_};
        replies_[{std::string{name}, type}] = std::move(reply);
    }
    /// Answers a question that was held, with these addresses.
    void release(std::string_view name, record type, std::vector<std::string> addresses) {
        const std::lock_guard lock{guard_};
        const auto reply = dns_reply{dns_reply::way::answer, std::move(addresses), 0};
        replies_[{std::string{name}, type}] = reply;
        for (auto each = held_.begin(); each != held_.end();) {
            if (each->asked.name == name && each->asked.type == type) {
                send(each->to, message(each->asked, reply));
                each = held_.erase(each);
            } else {
                ++each;
            }
        }
    }
    /// The number of times that this was asked, over UDP and TCP together.
    [[nodiscard]] std::size_t asked(std::string_view name, record type) const {
        const std::lock_guard lock{guard_};
        const auto at = asked_.find({std::string{name}, type});
        return at == asked_.end() ? 0 : at->second;
    }
    [[nodiscard]] std::size_t over_tcp() const {
        const std::lock_guard lock{guard_};
        return over_tcp_;
    }

private:
    using bytes = std::vector<unsigned char>;
    using key = std::pair<std::string, record>;

    struct question {
        std::string name;
        record type{};
        bytes text;          // the message with the question
        std::size_t end = 0; // of the question in `text`
    };
    struct held_question {
        sockaddr_in to;
        question asked;
    };

    static question read(const bytes& text) {
        question asked;
        std::size_t at = 12;
        while (at < text.size() && text[at] != 0) {
            const std::size_t length = text[at];
            if (!asked.name.empty()) asked.name += '.';
            for (std::size_t each = 1; each <= length && at + each < text.size(); ++each)
                asked.name += static_cast<char>(text[at + each]);
            at += length + 1;
        }
        asked.end = at + 5; // root, type and class
        if (asked.end > text.size()) return {};
        asked.type = static_cast<record>(text[at + 1] << 8 | text[at + 2]);
        asked.text = text;
        return asked;
    }

    static void put16(bytes& to, std::size_t value) {
        to.push_back(static_cast<unsigned char>(value >> 8));
        to.push_back(static_cast<unsigned char>(value));
    }

    /// RFC 1035, 4.1
    static bytes message(const question& asked, const dns_reply& reply, bool cut_short = false) {
        bytes out{asked.text[0], asked.text[1]};
        if (reply.how == dns_reply::way::wrong_id) out[0] ^= 0x55;
        out.push_back(static_cast<unsigned char>(0x85 | (cut_short ? 2 : 0)));
        out.push_back(static_cast<unsigned char>(0x80 | reply.code));
        put16(out, 1);
        put16(out, cut_short ? 0 : reply.addresses.size());
        put16(out, 0);
        put16(out, 0);
        out.insert(out.end(), asked.text.begin() + 12,
                   asked.text.begin() + static_cast<std::ptrdiff_t>(asked.end));
        if (reply.how == dns_reply::way::wrong_name) out[13] ^= 1;
        if (cut_short) return out;
        for (const std::string& text : reply.addresses) {
            const auto address = or_throw(ip_address::parse(text));
            put16(out, 0xc00c); // the name in the question
            put16(out, static_cast<std::size_t>(address.is_v4() ? record::a : record::aaaa));
            put16(out, 1);
            put16(out, 0);
            put16(out, 60); // time to live in seconds
            put16(out, address.bytes().size());
            for (const std::byte each : address.bytes())
                out.push_back(std::to_integer<unsigned char>(each));
        }
        return out;
    }

    void serve() {
        std::array<pollfd, 3> watched{pollfd{udp_.get(), POLLIN, 0}, pollfd{tcp_.get(), POLLIN, 0},
                                      pollfd{over_.get(), POLLIN, 0}};
        for (;;) {
            ::poll(watched.data(), watched.size(), -1);
            if (watched[2].revents != 0) return;
            if (watched[0].revents != 0) serve_datagram();
            if (watched[1].revents != 0) serve_connection();
        }
    }
    void serve_datagram() {
        bytes text(2048);
        sockaddr_in from{};
        socklen_t size = sizeof from;
        const auto count = ::recvfrom(udp_.get(), text.data(), text.size(), 0,
                                      reinterpret_cast<sockaddr*>(&from), &size);
        if (count < 17) return;
        text.resize(static_cast<std::size_t>(count));
        const question asked = read(text);
        const std::lock_guard lock{guard_};
        const dns_reply reply = reply_to(asked);
        switch (reply.how) {
        case dns_reply::way::silence:
            return;
        case dns_reply::way::hold:
            held_.push_back({from, asked});
            return;
        case dns_reply::way::garbage:
            return send(from, {asked.text[0], asked.text[1], 0xff, 0xff, 0xff});
        case dns_reply::way::truncate:
            return send(from, message(asked, reply, true));
        default:
            return send(from, message(asked, reply));
        }
    }
    void serve_connection() {
        const unique_fd peer{::accept4(tcp_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
        std::array<unsigned char, 2> length{};
        if (::recv(peer.get(), length.data(), 2, MSG_WAITALL) != 2) return;
        bytes text(static_cast<std::size_t>(length[0] << 8 | length[1]));
        if (::recv(peer.get(), text.data(), text.size(), MSG_WAITALL) !=
            static_cast<ssize_t>(text.size())) {
            return;
        }
        const question asked = read(text);
        const std::lock_guard lock{guard_};
        ++over_tcp_;
        const bytes answer = message(asked, reply_to(asked));
        bytes framed;
        put16(framed, answer.size());
        framed.insert(framed.end(), answer.begin(), answer.end());
        static_cast<void>(!::send(peer.get(), framed.data(), framed.size(), MSG_NOSIGNAL));
    }

    [[nodiscard]] dns_reply reply_to(const question& asked) {
        ++asked_[{asked.name, asked.type}];
        const auto known = replies_.find({asked.name, asked.type});
        if (known != replies_.end()) return known->second;
        const bool exists = replies_.contains({asked.name, record::a}) ||
                            replies_.contains({asked.name, record::aaaa});
        return {dns_reply::way::answer, {}, exists ? 0U : 3U};
    }
    void send(const sockaddr_in& to, const bytes& text) {
        static_cast<void>(!::sendto(udp_.get(), text.data(), text.size(), 0,
                                    reinterpret_cast<const sockaddr*>(&to), sizeof to));
    }
    void wake() {
        const std::uint64_t one = 1;
        static_cast<void>(!::write(over_.get(), &one, sizeof one));
    }

    unique_fd udp_{checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0))};
    unique_fd tcp_{checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    unique_fd over_{checked(::eventfd(0, EFD_CLOEXEC))};
    mutable std::mutex guard_;
    std::map<key, dns_reply> replies_;
    std::map<key, std::size_t> asked_;
    std::vector<held_question> held_;
    std::size_t over_tcp_ = 0;
    std::thread thread_;
};

} // namespace simplenet::v0::testing
