#pragma once
// The command line of the TLS servers: that of the others, and
//
//   --certificate FILE   --key FILE
//   --mode echo, source (writes blocks of --block bytes), sink (answers each MiB with one byte), or
//          answer (to each read, as HTTP, with a body of --body bytes; only without a library)
//   --loops N            on each of N threads a loop of its own   --pin
//
// A client decides on cipher suite and group, so that all servers have the same.

#include "server_options.hpp"

#include <cstddef>
#include <string>

namespace bench {

/// How much a sink reads before it answers.
inline constexpr std::size_t sink_unit = 1 << 20;

struct tls_options {
    server_options common;
    std::string certificate;
    std::string key;
    std::size_t loops = 0;
    bool pin = false;
    std::size_t body = 0;

    static tls_options read(arguments& given, std::string_view backend) {
        tls_options found;
        found.common = server_options::read(given, backend, {"echo", "source", "sink", "answer"});
        found.certificate = given.text("certificate", "");
        found.key = given.text("key", "");
        found.loops = given.number("loops", 0);
        found.pin = given.flag("pin");
        found.body = given.number("body", 0);
        given.done();
        return found;
    }
};

} // namespace bench
