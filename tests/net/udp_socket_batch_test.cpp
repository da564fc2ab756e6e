// Several datagrams with one call: batches, and segments that the kernel splits or joins.

#include <simplenet/net/udp_socket.hpp>

#include "support/coroutines.hpp"
#include "support/error_of.hpp"
#include "support/udp_pair_test.hpp"

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using testing::all_backends;
using testing::backend_name;
using testing::noise;
using testing::places;
using testing::text_of;

class udp_socket_batch_test : public testing::udp_pair_test {};

// --- batches

TEST_P(udp_socket_batch_test, a_batch_of_any_size_arrives_in_order) {
    EXPECT_TRUE(two().set_receive_buffer(1 << 20));
    run([&]() -> task<> {
        std::vector<std::string> texts;
        std::vector<outgoing_datagram> batch;
        for (std::size_t at = 0; at < 150; ++at) // more than one call accepts; one is empty
            texts.push_back(noise(at % 40, static_cast<std::uint32_t>(at)));
        for (const std::string& text : texts)
            batch.push_back({.data = text, .to = address_of(two())});
        EXPECT_EQ(co_await one().send_batch(batch), batch.size());

        places<incoming_datagram> places{40, 64};
        std::size_t got = 0;
        while (got < texts.size()) {
            const auto count = co_await two().receive_batch(places.slots);
            EXPECT_TRUE(count && *count > 0 && *count <= places.slots.size());
            for (std::size_t at = 0; count && at < *count; ++at, ++got) {
                EXPECT_EQ(text_of(places.slots[at].data()), texts[got]);
                EXPECT_EQ(places.slots[at].about.from, address_of(one()));
            }
        }
        EXPECT_EQ(got, texts.size());
    });
}

TEST_P(udp_socket_batch_test, an_error_in_the_middle_of_a_batch_says_how_many_were_sent) {
    run([&]() -> task<> {
        const std::string huge(70'000, 'x');
        const std::array<outgoing_datagram, 4> batch{{{.data = "1", .to = address_of(two())},
                                                      {.data = "2", .to = address_of(two())},
                                                      {.data = huge, .to = address_of(two())},
                                                      {.data = "4", .to = address_of(two())}}};
        const auto sent = co_await one().send_batch(batch);
        EXPECT_EQ(error_of(sent), std::errc::message_size);
        EXPECT_EQ(sent.error().transferred, 2U);

        places<incoming_datagram> places{8, 8};
        EXPECT_EQ(co_await two().receive_batch(places.slots), 2U);
        EXPECT_EQ(co_await one().send_batch(std::span{batch}.subspan(3)), 1U);
        EXPECT_EQ(co_await two().receive_batch(places.slots), 1U);
        EXPECT_EQ(text_of(places.slots[0].data()), "4");
    });
}

TEST_P(udp_socket_batch_test, neighbours_that_are_sent_as_segments_arrive_as_separate_datagrams) {
    auto third = or_throw(udp_socket::bind(endpoint::loopback(0)));
    run([&]() -> task<> {
        struct piece {
            std::size_t size;
            udp_socket* to;
            std::optional<ecn> mark;
        };
        const std::vector<piece> plan{
            {10, &two(), {}},        {10, &two(), {}}, {5, &two(), {}},  {10, &two(), {}},
            {0, &two(), {}},         {10, &two(), {}}, {10, &third, {}}, {10, &third, {}},
            {11, &third, {}},        {10, &third, {}}, {10, &two(), {}}, {10, &two(), ecn::ect_0},
            {10, &two(), ecn::ect_0}};
        EXPECT_TRUE(two().set_receive_ecn(true));
        for (const int no_checksums : {0, 1}) { // with 1 the kernel refuses segmentation
            EXPECT_EQ(::setsockopt(one().native_handle(), SOL_SOCKET, SO_NO_CHECK, &no_checksums,
                                   sizeof no_checksums),
                      0);
            std::vector<std::string> texts;
            std::vector<outgoing_datagram> batch;
            for (std::size_t at = 0; at < plan.size(); ++at)
                texts.push_back(noise(plan[at].size, static_cast<std::uint32_t>(at)));
            for (std::size_t at = 0; at < plan.size(); ++at) {
                batch.push_back({.data = texts[at],
                                 .to = address_of(*plan[at].to),
                                 .options = {.ecn = plan[at].mark}});
            }
            EXPECT_EQ(co_await one().send_batch(batch), batch.size());
            for (std::size_t at = 0; at < plan.size(); ++at) {
                const auto got = co_await plan[at].to->receive_from(buffer_);
                EXPECT_TRUE(got);
                EXPECT_EQ(std::string_view(buffer_.data(), got ? got->size : 0), texts[at]);
                EXPECT_EQ(got->ecn, plan[at].mark.value_or(ecn::not_capable));
            }
        }
    });
}

TEST_P(udp_socket_batch_test, neighbours_in_a_batch_are_sent_as_segments) {
    EXPECT_TRUE(two().enable_gro());
    run([&]() -> task<> {
        const std::vector<outgoing_datagram> batch(100, {.data = "four", .to = address_of(two())});
        EXPECT_EQ(co_await one().send_batch(batch), batch.size());
        std::string into(65'536, '\0');
        const auto got = co_await two().receive_from(into);
        EXPECT_TRUE(got && got->segment_size == 4 && got->size == 4 * 64UL);
        EXPECT_EQ((co_await two().receive_from(into))->size, 4 * 36U);
    });
}

TEST_P(udp_socket_batch_test, an_empty_batch_is_sent_at_once) {
    run([&]() -> task<> {
        EXPECT_EQ(co_await one().send_batch(std::span<const outgoing_datagram>{}), 0U);
    });
}

TEST_P(udp_socket_batch_test, a_batch_marks_truncated_and_empty_datagrams) {
    run([&]() -> task<> {
        const std::array<outgoing_datagram, 3> batch{
            {{.data = "long enough to be cut", .to = address_of(two())},
             {.data = {}, .to = address_of(two())},
             {.data = "fits", .to = address_of(two())}}};
        EXPECT_EQ(co_await one().send_batch(batch), 3U);
        places<incoming_datagram> places{3, 8};
        EXPECT_EQ(co_await two().receive_batch(places.slots), 3U);
        EXPECT_TRUE(places.slots[0].about.truncated);
        EXPECT_EQ(places.slots[0].about.missing, 13U);
        EXPECT_EQ(places.slots[1].about.size, 0U);
        EXPECT_FALSE(places.slots[1].about.truncated);
        EXPECT_EQ(text_of(places.slots[2].data()), "fits");
    });
}

// --- segments

TEST_P(udp_socket_batch_test, segments_arrive_as_datagrams) {
    run([&]() -> task<> {
        const std::string text = noise(1050);
        EXPECT_EQ(co_await one().send_segmented(text, 100, address_of(two())), text.size());
        places<incoming_datagram> places{16, 128};
        std::string all;
        for (std::size_t got = 0; got < 11;) {
            const auto count = co_await two().receive_batch(places.slots);
            EXPECT_TRUE(count);
            for (std::size_t at = 0; at < count.value_or(11); ++at, ++got) {
                EXPECT_EQ(places.slots[at].about.size, got == 10 ? 50U : 100U);
                EXPECT_EQ(places.slots[at].about.segment_size, 0U);
                all += text_of(places.slots[at].data());
            }
        }
        EXPECT_TRUE(all == text);
    });
}

TEST_P(udp_socket_batch_test, segments_arrive_together_with_their_size_if_gro_is_on) {
    EXPECT_TRUE(two().enable_gro());
    run([&]() -> task<> {
        const std::string text = noise(1050);
        EXPECT_EQ(co_await one().send_segmented(text, 100, address_of(two())), text.size());
        std::string into(65'536, '\0');
        const auto got = co_await two().receive_from(into);
        EXPECT_TRUE(got);
        EXPECT_EQ(got->size, text.size());
        EXPECT_EQ(got->segment_size, 100U);
        std::vector<std::size_t> sizes;
        std::string all;
        datagrams_of(into, *got, [&](mutable_buffer each) {
            sizes.push_back(each.size());
            all += text_of(each);
        });
        EXPECT_EQ(sizes.size(), 11U);
        EXPECT_EQ(sizes.back(), 50U);
        EXPECT_TRUE(all == text);
    });
}

TEST_P(udp_socket_batch_test, more_segments_than_the_kernel_takes_at_once_are_all_sent) {
    EXPECT_TRUE(two().set_receive_buffer(1 << 20));
    EXPECT_TRUE(two().connect_to(address_of(one())));
    EXPECT_TRUE(one().connect_to(address_of(two())));
    run([&]() -> task<> {
        const std::string text = noise(1501);
        EXPECT_EQ(co_await one().send_segmented(text, 10), text.size());
        std::array<char, 16> into;
        std::string all;
        for (int at = 0; at < 151; ++at) {
            const auto got = co_await two().receive(into);
            all.append(into.data(), got->size);
        }
        EXPECT_TRUE(all == text);
        EXPECT_EQ(co_await one().send_segmented(const_buffer{}, 10), 0U);
        EXPECT_EQ(co_await one().send_segmented("one", 1000), 3U);
        EXPECT_EQ((co_await two().receive(into))->size, 3U);
        EXPECT_EQ(error_of(co_await one().send_segmented(std::string(200'000, 'x'), 70'000)),
                  std::errc::message_size);
    });
}

TEST_P(udp_socket_batch_test, datagrams_are_sent_one_by_one_if_the_kernel_cannot_segment) {
    const int on = 1; // without checksums the kernel refuses segmentation
    EXPECT_EQ(::setsockopt(one().native_handle(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), 0);
    run([&]() -> task<> {
        for (int round = 0; round < 3; ++round) {
            const std::string text = noise(250);
            EXPECT_EQ(co_await one().send_segmented(text, 100, address_of(two())), text.size());
            std::string into(512, '\0');
            for (const std::size_t size : {100U, 100U, 50U})
                EXPECT_EQ((co_await two().receive_from(into))->size, size);
        }
    });
}

INSTANTIATE_TEST_SUITE_P(backends, udp_socket_batch_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
