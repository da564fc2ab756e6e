// Runs a fuzzer on the files and directories of the command line, then again with parts of their
// ends removed: for compilers without libFuzzer.

#include "fuzz/fuzz.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
    if (!std::filesystem::is_directory(path)) return {path};
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator{path})
        files.push_back(entry.path());
    std::ranges::sort(files);
    return files;
}

std::string contents_of(const std::filesystem::path& file) {
    std::ifstream stream{file, std::ios::binary};
    if (!stream) throw std::system_error{errno, std::system_category(), file};
    return {std::istreambuf_iterator<char>{stream}, {}};
}

void feed(const std::string& bytes) {
    // In memory of exactly that size, so that AddressSanitizer detects reads beyond it.
    const std::vector<std::uint8_t> exact{bytes.begin(), bytes.end()};
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

} // namespace

int main(int count, char** arguments) {
    try {
        std::size_t fed = 0;
        for (int at = 1; at < count; ++at) {
            for (const auto& file : files_of(arguments[at])) {
                std::fprintf(stderr, "%s\n", file.c_str()); // the last one printed is the culprit
                const std::string bytes = contents_of(file);
                feed(bytes);
                // A half of it, a quarter, and so on: shorter inputs are different inputs.
                for (std::size_t size = bytes.size() / 2; size != 0; size /= 2)
                    feed(bytes.substr(0, size));
                ++fed;
            }
        }
        std::printf("%zu files fed\n", fed);
        return fed == 0 ? 1 : 0;
    } catch (const std::exception& thrown) {
        std::fprintf(stderr, "%s\n", thrown.what());
        return 1;
    }
}
