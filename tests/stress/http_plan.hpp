#pragma once
// http_plan: requests for http_chaos_test, and the only answer that each may get.

#include "support/placed_bytes.hpp"
#include "support/random_stop.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::testing {

/// The content of the file that the server sends.
inline constexpr std::uint64_t served_file_seed = 77;
inline constexpr std::size_t served_file_size = 700'000;
/// Added to a request's number for the content of its body.
inline constexpr std::uint64_t body_seed = 1ULL << 50U;

inline std::string placed_text(std::uint64_t seed, std::size_t size) {
    std::string text(size, '\0');
    placed_bytes{seed}.fill(0, std::as_writable_bytes(std::span{text}));
    return text;
}

/// A request, and the answer to it.
struct planned_request {
    std::uint64_t number = 0;
    std::string text; // head and body, or something that is no request
    unsigned status = 200;
    bool names_number = true;  // in a field of the answer
    bool head_only = false;    // the answer has no body
    std::uint64_t seed = 0;    // of the content
    std::uint64_t offset = 0;  // in it
    std::uint64_t size = 0;    // of the body
    bool until_close = false;  // the end of the connection is the end of the body
    std::string simple = {};   // the body instead of placed bytes
    bool may_continue = false; // `100 Continue` may come first
    bool may_break = false;    // the answer may be cut
    bool must_break = false;   // and never be complete
    bool upgrades = false;     // what follows the head is an echo of `size` bytes
    enum class ends : std::uint8_t { no, maybe, yes };
    ends closes = ends::no;  // whether the connection ends behind the answer
    bool is_last = false;    // a client that said so sends nothing more (RFC 9112, section 9.6)
    bool takes_gzip = false; // the answer may be compressed
    std::size_t waits_behind = 0; // so many bytes leave; the rest when the server says 100
};

/// What the requests of a connection are chosen from.
struct request_mix {
    bool malformed = false; // something that is refused
    bool breaking = false;  // handlers that fail behind the head, or are stopped
};

class request_planner {
public:
    request_planner(decisions& random, request_mix mix)
        : random_{random}
        , mix_{mix} {}

    planned_request next(std::uint64_t number) {
        if (mix_.malformed && random_.percent(12)) return malformed(number);
        if (mix_.breaking && random_.percent(25)) return breaking(number);
        switch (random_.up_to(19)) {
        case 0:
        case 1:
        case 2:
        case 3:
            return with_body("whole", number, random_.size(500));
        case 4:
            return with_body("whole", number, random_.size(250'000));
        case 5:
            return with_body("chunks", number, random_.size(120'000));
        case 6:
            return with_body("length", number, random_.size(120'000));
        case 7:
        case 8:
            return echo("echo", number);
        case 9:
            return echo("pass", number);
        case 10:
            return early(number);
        case 11:
            return with_body(random_.percent(50) ? "sleep" : "block", number, random_.size(3000));
        case 12:
        case 13:
            return file(number);
        case 14:
            return small_refusal(number);
        case 15:
            return partly_read("sip", number, 150'000);
        case 16:
            return partly_read("late", number, 150'000);
        case 17:
            return partly_read("duplex", number, 80'000);
        case 18:
            return random_.percent(50) ? without_body(number) : old(number);
        default:
            return random_.percent(70) ? head(number) : last(number);
        }
    }

private:
    using ends = planned_request::ends;

    [[nodiscard]] std::string target(std::string_view kind, std::uint64_t number,
                                     std::uint64_t size) {
        std::string text{"/"};
        text.append(kind);
        for (const std::uint64_t each : {number, size, std::uint64_t{random_.up_to(1U << 30U)}})
            text.append("/").append(std::to_string(each));
        return text;
    }
    [[nodiscard]] std::string head_of(std::string_view method, std::string_view at,
                                      std::string_view version = "1.1") {
        std::string text;
        if (random_.percent(5)) text += "\r\n"; // RFC 9112, section 2.2
        text.append(method).append(" ").append(at).append(" HTTP/").append(version);
        text += "\r\nHost: h\r\n";
        if (random_.percent(10))
            text += "X-Padding: " + std::string(random_.size(6000), 'p') + "\r\n";
        return text;
    }

    planned_request get(std::string_view kind, std::uint64_t number, std::uint64_t size) {
        planned_request made{.number = number, .seed = number, .size = size};
        made.text = head_of("GET", target(kind, number, size)) + "\r\n";
        return made;
    }
    planned_request with_body(std::string_view kind, std::uint64_t number, std::uint64_t size) {
        planned_request made = get(kind, number, size);
        made.takes_gzip = random_.percent(20);
        if (made.takes_gzip) add_field(made, "Accept-Encoding: gzip");
        return made;
    }
    static void add_field(planned_request& to, const std::string& line) {
        to.text.insert(to.text.size() - 2, line + "\r\n");
    }
    planned_request head(std::uint64_t number) {
        const auto kind = random_.one_of<std::string_view>({"whole", "chunks", "length", "file"});
        planned_request made = with_body(kind, number, random_.size(50'000));
        made.text.replace(made.text.find("GET"), 3, "HEAD");
        made.head_only = true;
        return made;
    }
    /// 204 or 304.
    planned_request without_body(std::uint64_t number) {
        planned_request made = get("empty", number, 0);
        made.status = number % 2 == 0 ? 204 : 304;
        made.head_only = true;
        return made;
    }
    /// HTTP/1.0 that goes on.
    planned_request old(std::uint64_t number) {
        const auto kind = random_.one_of<std::string_view>({"whole", "length"});
        planned_request made{.number = number, .seed = number, .size = random_.size(60'000)};
        made.text = head_of("GET", target(kind, number, made.size), "1.0");
        made.text += "Connection: keep-alive\r\n\r\n";
        return made;
    }
    /// The connection ends behind it, as the client asked.
    planned_request last(std::uint64_t number) {
        const std::uint64_t size = random_.size(60'000);
        planned_request made{.number = number, .seed = number, .size = size};
        made.closes = ends::yes;
        made.is_last = true;
        if (random_.percent(50)) {
            made.text = head_of("GET", target("chunks", number, size), "1.0") + "\r\n";
            made.until_close = true;
        } else {
            made.text = head_of("GET", target("whole", number, size)) + "Connection: close\r\n\r\n";
        }
        return made;
    }
    planned_request file(std::uint64_t number) {
        const std::uint64_t size = random_.size(served_file_size);
        planned_request made = get("file", number, size);
        made.seed = served_file_seed;
        if (!random_.percent(40)) return made;
        const std::uint64_t first = random_.up_to(size - 1);
        made.offset = first;
        made.size = size - first;
        made.status = 206;
        add_field(made, "Range: bytes=" + std::to_string(first) + "-");
        return made;
    }
    planned_request small_refusal(std::uint64_t number) {
        planned_request made{.number = number};
        made.names_number = false;
        const bool known = random_.percent(50);
        made.status = known ? 405 : 404;
        made.simple = known ? "405 Method Not Allowed\n" : "404 Not Found\n";
        made.text = head_of(known ? "DELETE" : "GET", target(known ? "whole" : "none", number, 1));
        made.text += "\r\n";
        return made;
    }

    /// A request with a body of random framing.
    void add_body(planned_request& to, const std::string& body, bool may_expect = true) {
        const bool has_length = random_.percent(50);
        if (may_expect && random_.percent(20)) {
            to.text += "Expect: 100-continue\r\n";
            // Of a chunked body nobody knows that it is empty before its end has come.
            to.may_continue = !has_length || !body.empty();
        }
        const bool waits = to.may_continue && random_.percent(50);
        if (has_length) {
            to.text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
            if (waits) to.waits_behind = to.text.size();
            to.text += body;
            return;
        }
        to.text += "Transfer-Encoding: chunked\r\n\r\n";
        if (waits) to.waits_behind = to.text.size();
        for (std::size_t at = 0; at < body.size();) {
            const std::size_t size = std::min(random_.size(20'000), body.size() - at);
            std::array<char, 24> digits{};
            std::snprintf(digits.data(), digits.size(), "%zX", size);
            to.text.append(digits.data()).append(random_.percent(10) ? ";extension=1" : "");
            to.text.append("\r\n").append(body, at, size).append("\r\n");
            at += size;
        }
        to.text += random_.percent(20) ? "0\r\nX-Trailer: t\r\n\r\n" : "0\r\n\r\n";
    }
    planned_request echo(std::string_view kind, std::uint64_t number) {
        const std::size_t size = random_.percent(5) ? 0 : random_.size(80'000);
        planned_request made{.number = number, .seed = number + body_seed, .size = size};
        made.text = head_of("POST", target(kind, number, size));
        add_body(made, placed_text(made.seed, size));
        return made;
    }
    /// The handler answers and reads nothing.
    planned_request early(std::uint64_t number) {
        const std::uint64_t size = random_.size(3000);
        planned_request made{.number = number, .seed = number, .size = size};
        made.text = head_of("POST", target("whole", number, size));
        add_body(made, placed_text(number + body_seed, random_.size(150'000)));
        // The body never comes where nobody asks for it.
        made.closes = made.waits_behind != 0 ? ends::yes : ends::maybe;
        return made;
    }
    /// The handler reads a part of the body, or reads while or after it answers.
    planned_request partly_read(std::string_view kind, std::uint64_t number, std::size_t most) {
        const std::uint64_t size = random_.size(60'000);
        planned_request made{.number = number, .seed = number, .size = size};
        made.text = head_of("POST", target(kind, number, size));
        // Who has answered does not ask for the body any more.
        add_body(made, placed_text(number + body_seed, random_.size(most)), kind == "sip");
        made.closes = ends::maybe;
        return made;
    }

    planned_request breaking(std::uint64_t number) {
        const std::size_t size = random_.size(150'000);
        planned_request made{.number = number, .seed = number, .size = size};
        const std::size_t way = random_.up_to(7);
        switch (way) {
        case 0: // fails before the head
            made = get("throws", number, size);
            made.status = 500;
            made.names_number = false;
            made.simple = "500 Internal Server Error\n";
            made.closes = ends::yes;
            return made;
        case 1:
        case 2:
            made.text =
                head_of("GET", target("cut", number, size), way == 1 ? "1.1" : "1.0") + "\r\n";
            made.until_close = way == 2;
            made.closes = ends::maybe;
            made.may_break = made.must_break = true;
            return made;
        case 3:
            made.text = head_of("GET", target("upgrade", number, size)) +
                        "Connection: upgrade\r\nUpgrade: echo\r\n\r\n";
            made.text += placed_text(number, size);
            made.status = 101;
            made.upgrades = made.may_break = true;
            return made;
        case 4:
            made = file(number);
            made.text.replace(made.text.find("/file/"), 6, "/stopped_file/");
            break;
        default:
            made = get("stopped_whole", number, size);
        }
        made.may_break = true;
        made.closes = ends::maybe;
        return made;
    }

    planned_request malformed(std::uint64_t number) {
        static const std::array<std::pair<std::string_view, unsigned>, 14> all{{
            {"GET / HTTP/1.1\r\n\r\n", 400},
            {"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", 400},
            {"GET / HTTP/1.1\nHost: h\n\n", 400},
            {"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
            {"GET / HTTP/1.1\r\nHost: h\r\n folded: 1\r\n\r\n", 400},
            {"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
            {"GET / HTTP/1.1x\r\nHost: h\r\n\r\n", 400},
            {"POST /echo/1/1/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 2\r\n\r\nx", 400},
            {"POST /echo/1/1/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: "
             "chunked\r\n\r\n0\r\n\r\n",
             400},
            {"POST /echo/1/1/1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc",
             400},
            {"POST /echo/1/1/1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
             "FFFFFFFFFFFFFFFFF\r\nabc",
             400},
            {"POST /echo/1/1/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n", 413},
            {"POST /echo/1/1/1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
             501},
            {"GET / HTTP/3.1\r\nHost: h\r\n\r\n", 505},
        }};
        const auto& [text, status] = all[random_.up_to(all.size() - 1)];
        planned_request made{.number = number, .text = std::string{text}, .status = status};
        made.names_number = false;
        made.simple = std::to_string(status); // what the body begins with
        made.closes = ends::yes;
        return made;
    }

    decisions& random_;
    const request_mix mix_;
};

} // namespace simplenet::v0::testing
