#include <simplenet/callbacks/connection.hpp>

#include "connection_fixture.hpp"

#include <any>
#include <array>
#include <atomic>
#include <latch>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using callbacks::connection_ptr;
using testing::echo_back;
using testing::too_much;

class connection_test : public testing::connection_fixture {};

TEST_P(connection_test, echoes) {
    handlers_.on_message = echo_back;
    auto peer = begin();

    for (const std::string_view text : {"hello", "again"}) {
        peer.send(text);
        EXPECT_EQ(peer.receive(5), text);
    }
}

TEST_P(connection_test, is_told_up_and_down_once_each) {
    handlers_.on_message = echo_back;
    auto peer = begin();
    const auto connection = ours();
    EXPECT_TRUE(connection->is_connected());
    EXPECT_EQ(connection->local(), server_->local_endpoint());
    EXPECT_TRUE(connection->peer().address().is_loopback());
    EXPECT_EQ(&connection->loop(), &(*group_)[0]);

    peer.close();

    EXPECT_TRUE(went_down());
    EXPECT_FALSE(connection->is_connected());
    EXPECT_EQ(connection->error(), std::error_code{});
    server_.reset();
    EXPECT_EQ(seen_.ups(), 1U);
    EXPECT_EQ(seen_.downs(), 1U);
}

TEST_P(connection_test, send_takes_bytes_in_every_form) {
    auto peer = begin();
    const auto connection = ours();
    const auto send_all = [&] {
        const std::string kept = "string ";
        const std::array<std::byte, 2> bytes{std::byte{'b'}, std::byte{' '}};
        std::string moved = "moved ";
        connection->send("literal ");
        connection->send(std::string_view{"view "});
        connection->send(kept);
        connection->send(std::span<const std::byte>{bytes});
        connection->send(std::move(moved));
        connection->send(std::string{"temporary "});
        connection->send("");
        callbacks::buffer held;
        held.append("buffer.");
        connection->send(held);
    };

    on_loop(send_all);
    send_all(); // on this thread

    const std::string once = "literal view string b moved temporary buffer.";
    EXPECT_EQ(peer.receive(2 * once.size()), once + once);
}

TEST_P(connection_test, sends_more_than_the_kernel_takes) {
    handlers_.on_write_complete = [&](const connection_ptr&) { seen_.event("complete "); };
    auto peer = begin();
    std::string text(too_much, 'x');

    on_loop([&] {
        ours()->send("head");
        ours()->send(std::move(text));
        ours()->send("tail");
    });

    EXPECT_EQ(seen_.events(), "");
    EXPECT_EQ(peer.receive(4 + too_much + 4), "head" + std::string(too_much, 'x') + "tail");
    EXPECT_TRUE(eventually([&] { return !seen_.events().empty(); }));
    on_loop([] {});
    EXPECT_EQ(seen_.events(), "complete ");
}

TEST_P(connection_test, on_write_complete_is_not_called_inside_of_send) {
    handlers_.on_write_complete = [&](const connection_ptr&) { seen_.event("complete "); };
    auto peer = begin();

    on_loop([&] {
        ours()->send("x");
        seen_.event("sent ");
    });

    EXPECT_TRUE(eventually([&] { return seen_.events() == "sent complete "; }));
}

TEST_P(connection_test, on_write_complete_may_send_the_next_part) {
    handlers_.on_write_complete = [left = 1000](const connection_ptr& connection) mutable {
        if (left-- > 0) connection->send("x");
    };
    auto peer = begin();

    ours()->send("x");

    EXPECT_EQ(peer.receive(1001), std::string(1001, 'x'));
}

TEST_P(connection_test, the_high_water_mark_is_reported_when_it_is_crossed_upwards) {
    handlers_.on_high_water_mark = [&](const connection_ptr&, std::size_t queued) {
        EXPECT_GE(queued, 1'000'000U);
        seen_.event("high ");
    };
    handlers_.on_write_complete = [&](const connection_ptr&) { seen_.event("complete "); };
    auto peer = begin();
    ours()->set_high_water_mark(1'000'000);

    for (int round = 0; round < 2; ++round) {
        on_loop([&] {
            ours()->send(std::string(too_much, 'x'));
            ours()->send(std::string(too_much, 'x'));
            EXPECT_EQ(seen_.events(), round == 0 ? "" : "high complete ");
        });
        EXPECT_EQ(peer.receive(2 * too_much).size(), 2 * too_much);
        const std::string_view expected =
            round == 0 ? "high complete " : "high complete high complete ";
        EXPECT_TRUE(eventually([&] { return seen_.events() == expected; })) << seen_.events();
    }
}

TEST_P(connection_test, the_end_of_a_queue_is_told_after_the_mark_that_it_crossed) {
    // Otherwise a program that stops reading at the mark, and continues at the end, would stop
    // last.
    std::size_t sent = 0;
    std::atomic<std::size_t> queued = 0;
    std::latch drained{1};
    const auto send_more = [&](const connection_ptr& connection) {
        sent += 65536;
        connection->send(std::string(65536, 'x'));
    };
    handlers_.on_high_water_mark = [&](const connection_ptr& connection, std::size_t bytes) {
        seen_.event("high ");
        if (queued != 0) return;
        queued = bytes;
        drained.wait(); // the loop makes no turn, so the queue stays as it is
        connection->set_high_water_mark(bytes + 1);
        connection->send(std::string(bytes + 1, 'y')); // crosses, and the kernel has room for all
    };
    handlers_.on_write_complete = [&](const connection_ptr& connection) {
        if (queued != 0) return seen_.event("complete ");
        send_more(connection); // until the kernel takes no more
    };
    auto peer = begin();
    ours()->set_high_water_mark(1);

    (*group_)[0].post([&] { send_more(ours()); });
    EXPECT_TRUE(eventually([&] { return queued != 0; }));
    const std::size_t taken = sent - queued;
    EXPECT_EQ(peer.receive(taken).size(), taken);
    drained.count_down();

    EXPECT_EQ(peer.receive(2 * queued + 1).size(), 2 * queued + 1);
    EXPECT_TRUE(eventually([&] { return seen_.events().ends_with("complete "); }));
    on_loop([] {});
    // Once, if the kernel took the first part of the queue before the loop stood still.
    EXPECT_THAT(seen_.events(), ::testing::AnyOf("high high complete ", "high complete "));
}

TEST_P(connection_test, a_queue_beyond_the_limit_closes) {
    auto peer = begin();
    ours()->set_limit(1'000'000);

    on_loop([&] {
        ours()->send(std::string(too_much, 'x'));
        EXPECT_FALSE(ours()->is_connected());
    });

    EXPECT_TRUE(went_down());
    EXPECT_EQ(seen_.error(), errc::queue_full);
}

TEST_P(connection_test, shutdown_ends_sending_after_what_is_queued) {
    handlers_.on_message = [&](const connection_ptr&, callbacks::buffer& input) {
        seen_.event(input.retrieve_all_as_string());
    };
    auto peer = begin();

    on_loop([&] {
        ours()->send(std::string(too_much, 'x'));
        ours()->shutdown();
        EXPECT_FALSE(ours()->is_connected());
        ours()->send("lost");
    });

    EXPECT_EQ(peer.receive(too_much + 1).size(), too_much);
    EXPECT_EQ(seen_.downs(), 0U);
    peer.send("more");
    EXPECT_TRUE(eventually([&] { return seen_.events() == "more"; }));
    peer.close();
    EXPECT_TRUE(went_down());
}

TEST_P(connection_test, shutdown_without_a_queue_ends_sending_now) {
    auto peer = begin();

    ours()->shutdown();

    EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
    EXPECT_EQ(seen_.downs(), 0U);
}

TEST_P(connection_test, close_drops_what_is_queued) {
    auto peer = begin();

    on_loop([&] {
        ours()->send(std::string(too_much, 'x'));
        ours()->close();
        EXPECT_FALSE(ours()->is_connected());
        EXPECT_EQ(seen_.downs(), 0U);
        ours()->send("lost");
    });

    EXPECT_TRUE(went_down());
    EXPECT_EQ(seen_.error(), std::error_code{});
    EXPECT_LT(peer.receive(too_much).size(), too_much);
}

TEST_P(connection_test, may_be_closed_when_it_is_up) {
    handlers_.on_connection = [&](const connection_ptr& connection) {
        seen_.counter()(connection);
        connection->close();
    };
    auto peer = begin();

    EXPECT_TRUE(went_down());
}

TEST_P(connection_test, what_another_thread_sends_keeps_its_order) {
    auto peer = begin();
    std::string expected;

    const auto connection = ours();
    for (int each = 0; each < 1000; ++each) {
        std::string text = std::to_string(each) + ' ';
        expected += text;
        if (each % 2 == 0) {
            connection->send(std::move(text));
        } else {
            connection->send(text);
        }
    }
    connection->shutdown();

    EXPECT_EQ(peer.receive(expected.size() + 1), expected);
}

TEST_P(connection_test, an_idle_connection_is_closed) {
    auto peer = begin({.idle_timeout = 10ms});

    EXPECT_TRUE(went_down());

    EXPECT_EQ(seen_.error(), errc::deadline_exceeded);
    EXPECT_EQ(peer.receive_to_the_end(), errc::end_of_stream);
}

TEST_P(connection_test, on_idle_decides_about_an_idle_connection) {
    handlers_.on_idle = [&](const connection_ptr& connection) {
        seen_.event("idle ");
        connection->send("?");
    };
    handlers_.on_message = echo_back;
    auto peer = begin({.idle_timeout = 10ms});

    EXPECT_EQ(peer.receive(2), "??");
    EXPECT_TRUE(ours()->is_connected());
    EXPECT_TRUE(seen_.events().starts_with("idle idle "));
}

TEST_P(connection_test, on_idle_is_told_of_a_peer_that_does_not_read) {
    handlers_.on_idle = [&](const connection_ptr& connection) {
        seen_.event("idle ");
        connection->close();
    };
    auto peer = begin({.idle_timeout = 20ms});

    on_loop([&] {
        ours()->stop_reading();
        ours()->send(std::string(too_much, 'x'));
    });

    EXPECT_TRUE(went_down());
    EXPECT_EQ(seen_.events(), "idle ");
}

TEST_P(connection_test, reports_a_reset) {
    auto peer = begin();

    peer.reset();

    EXPECT_TRUE(went_down());
    EXPECT_EQ(seen_.error(), std::errc::connection_reset);
}

/// The descriptor of a connection of this process.
int descriptor_of(const connection_ptr& connection) {
    const auto port = [](auto ask, int fd) {
        sockaddr_in name{};
        socklen_t size = sizeof name;
        return ask(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0 ? ntohs(name.sin_port) : 0;
    };
    for (int fd = 0; fd < 1024; ++fd) {
        if (port(::getsockname, fd) == connection->local().port() &&
            port(::getpeername, fd) == connection->peer().port()) {
            return fd;
        }
    }
    ADD_FAILURE() << "no descriptor";
    return -1;
}

TEST_P(connection_test, a_write_that_fails_ends_it_after_what_has_arrived) {
    // A peer that is alive and goes on: no end of reading follows by itself.
    handlers_.on_message = [&](const connection_ptr&, callbacks::buffer& input) {
        seen_.event(input.retrieve_all_as_string());
    };
    auto peer = begin();

    on_loop([&] {
        testing::checked(::shutdown(descriptor_of(ours()), SHUT_WR));
        peer.send("last");
        ours()->send("x"); // EPIPE
        EXPECT_FALSE(ours()->is_connected());
        EXPECT_EQ(seen_.downs(), 0U);
    });

    EXPECT_TRUE(went_down());
    EXPECT_EQ(seen_.events(), "last");
    EXPECT_EQ(seen_.error(), std::errc::broken_pipe);
}

TEST_P(connection_test, a_write_that_fails_while_reading_is_stopped_ends_it) {
    auto peer = begin();

    on_loop([&] {
        testing::checked(::shutdown(descriptor_of(ours()), SHUT_WR));
        ours()->stop_reading();
        ours()->send("x");
    });

    EXPECT_TRUE(went_down());
    EXPECT_EQ(seen_.error(), std::errc::broken_pipe);
}

TEST_P(connection_test, stop_reading_after_a_write_that_failed_ends_it) {
    handlers_.on_message = [&](const connection_ptr&, callbacks::buffer& input) {
        seen_.event(input.retrieve_all_as_string());
    };
    auto peer = begin();

    on_loop([&] {
        testing::checked(::shutdown(descriptor_of(ours()), SHUT_WR));
        peer.send("last");
        ours()->send("x");
        ours()->stop_reading();
        EXPECT_EQ(seen_.downs(), 0U);
    });

    EXPECT_TRUE(went_down());
    EXPECT_EQ(seen_.events(), "") << "what the peer sent before is dropped";
    EXPECT_EQ(seen_.error(), std::errc::broken_pipe);
}

TEST_P(connection_test, the_end_of_the_peer_waits_for_the_answer) {
    handlers_.on_message = [](const connection_ptr& connection, callbacks::buffer& input) {
        input.retrieve_all();
        connection->send(std::string(too_much, 'x'));
    };
    auto peer = begin();

    peer.send("question");
    peer.shutdown_write();

    EXPECT_EQ(peer.receive(too_much + 1).size(), too_much);
    EXPECT_TRUE(went_down());
    EXPECT_EQ(seen_.error(), std::error_code{});
}

TEST_P(connection_test, an_exception_of_a_handler_ends_it) {
    handlers_.on_message = [](const connection_ptr&, callbacks::buffer&) {
        throw std::runtime_error{"test"};
    };
    std::atomic<int> thrown = 0;
    server_options options;
    options.context = &thrown;
    options.on_handler_exception = [](std::exception_ptr, void* count) {
        ++*static_cast<std::atomic<int>*>(count);
    };
    auto peer = begin(options);

    peer.send("x");

    EXPECT_TRUE(went_down());
    EXPECT_TRUE(eventually([&] { return server_->statistics().failed == 1; }));
    EXPECT_EQ(thrown, 1);
}

TEST_P(connection_test, an_exception_of_on_connection_is_followed_by_the_second_call) {
    handlers_.on_connection = [&](const connection_ptr& connection) {
        seen_.counter()(connection);
        throw std::runtime_error{"test"};
    };
    std::atomic<int> thrown = 0;
    server_options options;
    options.context = &thrown;
    options.on_handler_exception = [](std::exception_ptr, void* count) {
        ++*static_cast<std::atomic<int>*>(count);
    };
    auto peer = begin(options);

    EXPECT_TRUE(went_down());
    EXPECT_TRUE(eventually([&] { return thrown == 1; }));
}

TEST_P(connection_test, keeps_anything_for_the_program) {
    auto peer = begin();

    on_loop([&] { ours()->context() = std::string{"mine"}; });

    on_loop([&] { EXPECT_EQ(std::any_cast<std::string>(ours()->context()), "mine"); });
}

TEST_P(connection_test, may_be_used_after_its_loop) {
    auto peer = begin();
    auto connection = ours();
    seen_.forget();
    connection->context() = connection->shared_from_this().use_count();
    server_.reset();
    group_.reset();
    EXPECT_EQ(seen_.downs(), 1U);

    connection->send("x");
    connection->send(std::string{"x"});
    connection->shutdown();
    connection->close();
    connection->start_reading();
    connection->stop_reading();
    connection->set_no_delay(true);

    EXPECT_FALSE(connection->is_connected());
    EXPECT_EQ(connection->error(), std::errc::operation_canceled);
    EXPECT_EQ(connection.use_count(), 1);
}

TEST_P(connection_test, threads_may_use_it_while_it_ends) {
    handlers_.on_message = echo_back;
    auto peer = begin();
    std::atomic<bool> is_over = false;
    std::thread other{[&, connection = ours()] {
        while (!is_over) {
            connection->send("x");
            connection->stop_reading();
            connection->start_reading();
            static_cast<void>(connection->error());
        }
    }};
    EXPECT_EQ(peer.receive(1), "x");

    server_.reset();
    group_.reset();
    is_over = true;
    other.join();

    EXPECT_EQ(seen_.downs(), 1U);
}

INSTANTIATE_TEST_SUITE_P(backends, connection_test, testing::real_backends, testing::backend_name);

} // namespace
} // namespace simplenet::v0
