// Decompression by itself: every format, every split, every cut, and rubbish.

#include "compressed.hpp"
#include "http/client/inflater.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace simplenet::v0::testing {
namespace {

using http::detail::inflater;

struct inflated {
    std::string text;
    bool malformed = false;
    bool complete = false;

    friend bool operator==(const inflated&, const inflated&) = default;
};

/// Decompresses `packed`, which arrives in pieces of `piece`, into a buffer of `room`.
inflated inflate(inflater::format of, std::string_view packed, std::size_t piece = 1000,
                 std::size_t room = 1000) {
    inflater decoder{of};
    inflated all;
    std::string buffer(room, '\0');
    std::string_view next;
    for (;;) {
        const auto step = decoder.next(next, buffer);
        next.remove_prefix(step.consumed);
        all.text.append(buffer, 0, step.produced);
        all.malformed = step.malformed;
        if (step.malformed) return all;
        if (step.produced != 0) continue;
        if (!next.empty()) continue;
        if (packed.empty()) break;
        next = packed.substr(0, piece);
        packed.remove_prefix(next.size());
    }
    all.complete = decoder.is_complete();
    return all;
}

const std::string sentence = "a text that is compressed, a text that is compressed again";

TEST(client_inflater_test, every_format_is_decompressed_however_it_arrives) {
    const inflated whole{sentence, false, true};
    for (std::size_t piece = 1; piece < 80; ++piece) {
        for (const std::size_t room : {1U, 7U, 1000U}) {
            EXPECT_EQ(inflate(inflater::format::gzip, gzipped(sentence), piece, room), whole);
            EXPECT_EQ(inflate(inflater::format::deflate, zlibbed(sentence), piece, room), whole);
            EXPECT_EQ(inflate(inflater::format::deflate, deflated(sentence), piece, room), whole);
        }
    }
}

TEST(client_inflater_test, data_that_is_cut_is_not_complete) {
    for (const auto& [of, packed] : {std::pair{inflater::format::gzip, gzipped(sentence)},
                                     std::pair{inflater::format::deflate, zlibbed(sentence)},
                                     std::pair{inflater::format::deflate, deflated(sentence)}}) {
        for (std::size_t size = 1; size < packed.size(); ++size) {
            const inflated part = inflate(of, packed.substr(0, size));
            EXPECT_FALSE(part.malformed) << size;
            EXPECT_FALSE(part.complete) << size;
            EXPECT_TRUE(sentence.starts_with(part.text)) << size;
        }
    }
}

TEST(client_inflater_test, nothing_at_all_is_complete) {
    EXPECT_TRUE(inflate(inflater::format::gzip, "").complete);
    EXPECT_TRUE(inflate(inflater::format::deflate, "").complete);
}

TEST(client_inflater_test, members_of_gzip_follow_each_other) {
    const std::string two = gzipped("one,") + gzipped("two");
    for (std::size_t piece = 1; piece < two.size(); ++piece) {
        EXPECT_EQ(inflate(inflater::format::gzip, two, piece), (inflated{"one,two", false, true}));
    }
}

TEST(client_inflater_test, what_follows_the_data_is_malformed) {
    EXPECT_TRUE(inflate(inflater::format::gzip, gzipped(sentence) + "rubbish").malformed);
    EXPECT_TRUE(
        inflate(inflater::format::gzip, gzipped(sentence) + std::string(10, '\0')).malformed);
    EXPECT_TRUE(inflate(inflater::format::deflate, zlibbed(sentence) + "r").malformed);
    EXPECT_TRUE(inflate(inflater::format::deflate, deflated(sentence) + "r").malformed);
}

TEST(client_inflater_test, damage_is_found) {
    for (std::string packed = gzipped(sentence); const std::size_t at : {0U, 1U, 2U}) {
        packed[at] = static_cast<char>(packed[at] ^ 0x55);
        EXPECT_TRUE(inflate(inflater::format::gzip, packed).malformed) << at;
    }
    std::string sum = gzipped(sentence);
    sum[sum.size() - 6] = static_cast<char>(sum[sum.size() - 6] ^ 1);
    EXPECT_TRUE(inflate(inflater::format::gzip, sum).malformed);
    EXPECT_TRUE(inflate(inflater::format::deflate, "\xff\xff\xff\xff").malformed);
    EXPECT_TRUE(inflate(inflater::format::gzip, zlibbed(sentence)).malformed);
}

} // namespace
} // namespace simplenet::v0::testing
