#include <simplenet/tls/context.hpp>

#include "tls/tls_pair.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>

#include <malloc.h>

// Key material is overwritten before its memory is freed: blocks that are freed are searched.

namespace {

std::string_view searched; // empty: nothing is
int found_in_freed_memory = 0;

void search_and_free(void* block) noexcept {
    if (block != nullptr && !searched.empty()) {
        const auto* const begin = static_cast<const char*>(block);
        const auto* const end = begin + ::malloc_usable_size(block);
        if (std::search(begin, end, searched.begin(), searched.end()) != end) {
            ++found_in_freed_memory;
        }
    }
    std::free(block);
}

} // namespace

void* operator new(std::size_t size) {
    // Zero, so that the search reads what was written.
    if (void* const block = std::calloc(1, size != 0 ? size : 1)) return block;
    throw std::bad_alloc{};
}
void operator delete(void* block) noexcept {
    search_and_free(block);
}
void operator delete(void* block, std::size_t) noexcept {
    search_and_free(block);
}

namespace simplenet::v0 {
namespace {

using testing::certificate;
using testing::content;

/// How many blocks with `text` were freed while `body` ran.
template <class Body>
int freed_with(std::string_view text, Body body) {
    found_in_freed_memory = 0;
    searched = text;
    body();
    searched = {};
    return found_in_freed_memory;
}

TEST(tls_secrets_test, the_search_finds_what_is_not_overwritten) {
    const std::string text = testing::pattern(40);
    EXPECT_EQ(freed_with(text, [&] { const std::string copy{text}; }), 1);
}

// A file's text used to stay behind where it was before it had grown.
TEST(tls_secrets_test, the_text_of_a_key_file_is_overwritten) {
    const std::string chain = certificate("server.pem");
    const std::string key = certificate("server.key");
    const std::string text = content(key).substr(60, 40);
    EXPECT_EQ(freed_with(text,
                         [&] {
                             EXPECT_TRUE(tls::context::server(
                                 {.certificate_chain_file = chain, .private_key_file = key}));
                         }),
              0);
}

TEST(tls_secrets_test, the_text_of_a_key_and_its_password_are_overwritten) {
    const std::string chain = content(certificate("server.pem"));
    const std::string key = content(certificate("server_encrypted.key"));
    const auto make = [&](std::string_view password) {
        return tls::context::server({.certificate_chain_pem = chain,
                                     .private_key_pem = key,
                                     .private_key_password = password});
    };
    EXPECT_EQ(freed_with(key.substr(60, 40), [&] { EXPECT_TRUE(make("secret")); }), 0);
    EXPECT_EQ(freed_with("a wrong password of some length",
                         [&] { EXPECT_FALSE(make("a wrong password of some length")); }),
              0);
}

} // namespace
} // namespace simplenet::v0
