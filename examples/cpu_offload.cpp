// Prints the FNV-1a hash of each file, in the order of the arguments.
// Lesson: the loop waits, and never works: files are read where a thread may block, and hashed on
// as many threads as there are CPUs.

#include "arguments.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace simplenet;

namespace {

result<std::string> contents_of(const std::string& path) {
    errno = 0;
    std::ifstream file{path, std::ios::binary};
    std::string contents{std::istreambuf_iterator<char>{file}, {}};
    if (!file.is_open() || file.bad()) {
        return fail(std::error_code{errno != 0 ? errno : EIO, std::system_category()});
    }
    return contents;
}

std::uint64_t hash_of(const std::string& bytes) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char byte : bytes)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
    return hash;
}

//! [offload]
task<result<std::uint64_t>> hash_file(thread_pool& pool, std::string path) {
    auto contents = co_await run_blocking(contents_of, std::move(path)); // this waits for the disk
    if (!contents) co_return fail(contents);
    // The contents move to the pool's thread, and are freed there.
    co_return co_await run_on(pool, hash_of, *std::move(contents));
}
//! [offload]

task<bool> hash_all(std::vector<std::string> paths) {
    thread_pool pool; // a thread for each CPU
    std::vector<task<result<std::uint64_t>>> all;
    for (const std::string& each : paths)
        all.push_back(hash_file(pool, each));
    const auto hashes = co_await when_all(std::move(all));

    bool good = true;
    for (std::size_t at = 0; at < paths.size(); ++at) {
        if (hashes[at]) {
            std::array<char, 24> text{};
            std::snprintf(text.data(), text.size(), "%016llx  ",
                          static_cast<unsigned long long>(*hashes[at]));
            std::cout << text.data() << paths[at] << '\n';
        } else {
            std::cerr << paths[at] << ": " << hashes[at].error().message() << '\n';
            good = false;
        }
    }
    co_return good;
}

} // namespace

int main(int argc, char** argv) {
    example::arguments given{argc, argv, "cpu_offload FILE..."};
    std::vector<std::string> paths{std::string{given.next("FILE")}};
    while (!given.empty())
        paths.emplace_back(given.next("FILE"));
    given.finish();

    try {
        const bool good = run(hash_all(std::move(paths)));
        const int printed = example::printed();
        return good ? printed : 1;
    } catch (const std::system_error& error) { // the loop or a thread could not be created
        return example::failed("cannot run", error.code());
    }
}
