#include <simplenet/callbacks/connection.hpp>

#include "connection_fixture.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0 {
namespace {

using callbacks::connection_ptr;
using testing::echo_back;
using testing::too_much;

class connection_input_test : public testing::connection_fixture {};

TEST_P(connection_input_test, a_message_finds_what_the_last_one_left) {
    handlers_.on_message = [](const connection_ptr& connection, callbacks::buffer& input) {
        while (const char* const end = input.find_crlf()) {
            connection->send({input.peek(), static_cast<std::size_t>(end - input.peek())});
            input.retrieve_until(end + 2);
        }
    };
    auto peer = begin();

    for (const std::string_view part : {"he", "llo\r", "\nwor", "ld\r\n"})
        peer.send(part);

    EXPECT_EQ(peer.receive(10), "helloworld");
}

TEST_P(connection_input_test, what_a_message_leaves_holds_no_receive_buffer) {
    const auto leased = [&] { return (*group_)[0].metrics().receive_pool_leased; };
    handlers_.on_message = [&](const connection_ptr& connection, callbacks::buffer& input) {
        seen_.event(std::to_string(leased()) + ' ');
        if (input.readable() > 1) return; // leaves it
        input.retrieve_all();
        connection->send("x");
    };
    auto peer = begin();

    peer.send("1");
    EXPECT_EQ(peer.receive(1), "x");
    on_loop([&] { EXPECT_EQ(leased(), 0U); });
    peer.send("22");
    EXPECT_TRUE(eventually([&] { return seen_.events() == "1 1 "; })); // both were not copied
    on_loop([&] { EXPECT_EQ(leased(), 0U); });
    peer.send("3");
    EXPECT_TRUE(eventually([&] { return seen_.events() == "1 1 0 "; })); // behind the rest
}

TEST_P(connection_input_test, messages_larger_than_a_receive_buffer_arrive_whole) {
    handlers_.on_message = [](const connection_ptr& connection, callbacks::buffer& input) {
        while (input.readable() >= 4 && input.readable() - 4 >= input.peek_u32()) {
            const std::size_t size = 4 + input.peek_u32();
            connection->send({input.peek(), size});
            input.retrieve(size);
        }
    };
    auto peer = begin();
    callbacks::buffer frames;
    for (const std::uint32_t size : {100'000U, 0U, 3U, 16380U, 16384U, 40'000U, 1U}) {
        frames.append_u32(size);
        frames.append(std::string(size, static_cast<char>('a' + size % 26)));
    }
    const std::string expected{frames.text()};

    peer.send(expected);

    EXPECT_EQ(peer.receive(expected.size()), expected);
}

TEST_P(connection_input_test, a_handler_may_keep_the_buffer) {
    callbacks::buffer moved;
    callbacks::buffer swapped;
    handlers_.on_message = [&](const connection_ptr& connection, callbacks::buffer& input) {
        if (moved.readable() == 0) {
            moved = std::move(input);
        } else if (swapped.readable() == 0) {
            swapped.append("! ");
            std::swap(swapped, input); // "! " is left, in front of the next message
        } else {
            echo_back(connection, input);
        }
        connection->send(".");
    };
    auto peer = begin();

    for (const std::string_view text : {"one", "two"}) {
        peer.send(text);
        EXPECT_EQ(peer.receive(1), ".");
    }
    peer.send("three");
    EXPECT_EQ(peer.receive(8), "! three.");
    server_.reset();
    group_.reset(); // and with it the memory into which they were received

    EXPECT_EQ(moved.text(), "one");
    EXPECT_EQ(swapped.text(), "two");
}

TEST_P(connection_input_test, a_handler_may_change_the_content) {
    handlers_.on_message = [](const connection_ptr& connection, callbacks::buffer& input) {
        const char* const end = input.find_crlf();
        if (end == nullptr) return;
        input.retrieve_until(end + 2);
        input.prepend("<");
        input.append(">");
        connection->send(input);
        input.retrieve(2);
    };
    auto peer = begin();

    peer.send("a\r\nbc"); // leaves "c>"
    EXPECT_EQ(peer.receive(4), "<bc>");
    peer.send("\r\nd"); // "c>\r\nd"

    EXPECT_EQ(peer.receive(3), "<d>");
}

TEST_P(connection_input_test, a_message_that_is_left_stays_while_the_queue_is_above_its_mark) {
    handlers_.on_message = [](const connection_ptr& connection, callbacks::buffer& input) {
        if (input.readable() < 8) return;
        connection->send(std::string(too_much, 'x'));
        connection->stop_reading();
        input.retrieve(4); // the rest is for the next message
    };
    handlers_.on_high_water_mark = [&](const connection_ptr&, std::size_t) {
        seen_.event("high ");
    };
    handlers_.on_write_complete = [&](const connection_ptr& connection) {
        seen_.event("complete ");
        connection->start_reading();
    };
    auto peer = begin();
    ours()->set_high_water_mark(1);

    peer.send("question");
    EXPECT_TRUE(eventually([&] { return seen_.events() == "high "; }));
    peer.send("again");

    EXPECT_EQ(peer.receive(2 * too_much).size(), 2 * too_much);
    EXPECT_TRUE(eventually([&] { return seen_.events() == "high complete high complete "; }));
}

TEST_P(connection_input_test, may_be_closed_with_content_that_is_left) {
    handlers_.on_message = [&](const connection_ptr& connection, callbacks::buffer& input) {
        seen_.event(input.text());
        connection->close();
        EXPECT_EQ(input.text(), "left"); // it is there as long as the handler runs
    };
    auto peer = begin();

    peer.send("left");

    EXPECT_TRUE(went_down());
    EXPECT_EQ(seen_.events(), "left");
}

TEST_P(connection_input_test, drops_messages_without_a_handler) {
    auto peer = begin();
    peer.send(std::string(100'000, 'x'));
    peer.shutdown_write();

    EXPECT_TRUE(went_down());
    EXPECT_EQ(seen_.error(), std::error_code{});
}

TEST_P(connection_input_test, close_in_a_message_is_the_last_message) {
    handlers_.on_message = [&](const connection_ptr& connection, callbacks::buffer& input) {
        input.retrieve(1);
        seen_.event("message ");
        connection->close();
    };
    auto peer = begin();

    peer.send("ab");
    EXPECT_TRUE(went_down());

    EXPECT_EQ(seen_.events(), "message ");
}

TEST_P(connection_input_test, stop_reading_holds_messages_back) {
    handlers_.on_message = [&](const connection_ptr& connection, callbacks::buffer& input) {
        seen_.event(input.retrieve_all_as_string());
        connection->stop_reading();
    };
    auto peer = begin();
    peer.send("a");
    EXPECT_TRUE(eventually([&] { return seen_.events() == "a"; }));
    peer.send("b");
    for (int turn = 0; turn < 5; ++turn)
        on_loop([] {});
    EXPECT_EQ(seen_.events(), "a");

    ours()->start_reading();

    EXPECT_TRUE(eventually([&] { return seen_.events() == "ab"; }));
}

TEST_P(connection_input_test, may_be_closed_while_reading_is_stopped) {
    auto peer = begin();
    ours()->stop_reading();
    peer.send("x");
    for (int turn = 0; turn < 5; ++turn)
        on_loop([] {});

    ours()->close();

    EXPECT_TRUE(went_down());
}

INSTANTIATE_TEST_SUITE_P(backends, connection_input_test, testing::real_backends,
                         testing::backend_name);

} // namespace
} // namespace simplenet::v0
