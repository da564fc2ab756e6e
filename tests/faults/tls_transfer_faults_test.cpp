// Faults in every call, and in every allocation of ours and of OpenSSL, while data moves over TLS.

#include "faults/tls_faults.hpp"

#include "tls/tls_pair.hpp"

#include "support/fail_everywhere.hpp"
#include "support/fault_parts.hpp"

#include <simplenet/tls.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::memory_stream;
using testing::noise;
using testing::server_with;
using testing::talking;
using testing::tls_tcp;

class tls_transfer_faults_test : public testing::tls_faults_test {};

/// With contexts that serve all plays. They have no sessions, so each handshake is a full one.
class transferring : public talking {
protected:
    transferring()
        : talking{server(), client()} {}

private:
    static const tls::context& server() {
        static const tls::context made = plain_server();
        return made;
    }
    static const tls::context& client() {
        static const tls::context made = testing::client();
        return made;
    }
};

/// Without waiting where that is possible, and by leases.
class trying : public transferring {
    static bool would_wait(std::error_code error) {
        return error == std::errc::operation_would_block;
    }
    static task<result<>> send(tls_tcp& to, std::string_view text) {
        while (!text.empty()) {
            auto count = to.try_write_some(text);
            if (!count && would_wait(count.error())) count = co_await to.write_some(text);
            if (!count) co_return fail(count);
            text.remove_prefix(*count);
        }
        co_return co_await to.shutdown_write();
    }
    static task<result<>> receive(tls_tcp& from, std::string& got) {
        for (;;) {
            auto taken = from.try_receive();
            if (!taken && would_wait(taken.error())) taken = co_await from.receive();
            if (!taken) co_return testing::ended(taken.error());
            got.append(reinterpret_cast<const char*>(taken->data()), taken->size());
        }
    }
    task<result<std::string>> play() override {
        auto both = co_await or_return(co_await connect());
        co_await or_return(co_await gather(both.client.handshake(), both.server.handshake()));
        std::string got;
        got.reserve(50'000);
        auto server = testing::echo_by_receive(std::move(both.server));
        co_await or_return(co_await gather(std::move(server), send(both.client, text_),
                                           receive(both.client, got)));
        co_return got == text_ ? "all of it" : "other bytes";
    }

    const std::string text_ = noise(40'000, 3);
};
TEST_P(tls_transfer_faults_test, operations_that_do_not_wait_and_leases) {
    fail_everywhere<trying>();
}

// --- no byte is lost -----------------------------------------------------------------------------

/// Both directions at once, in operations that are repeated when memory is short.
class enduring : public transferring {
    static constexpr int most_tries = 8;

    /// Lacking memory is an error as any other.
    template <class Make>
    static auto tried(Make make) -> decltype(make()) {
        try {
            auto outcome = co_await make();
            co_return outcome;
        } catch (const std::bad_alloc&) {
        }
        co_return fail(std::errc::not_enough_memory);
    }
    /// Again and again, while only memory is missing.
    template <class Make>
    static auto persistently(Make make) -> decltype(make()) {
        for (int tries = 0;; ++tries) {
            auto outcome = co_await tried(make);
            if (outcome || outcome.error() != std::errc::not_enough_memory || tries == most_tries) {
                co_return outcome;
            }
        }
    }
    template <class S>
    static task<result<>> send(S& to, std::string_view text) {
        while (!text.empty()) {
            auto write = [&] { return to.write_some(text); };
            const auto count = co_await persistently(write);
            if (!count) co_return fail(count);
            text.remove_prefix(*count);
        }
        auto end = [&] { return to.shutdown_write(); };
        co_return co_await persistently(end);
    }
    template <class S>
    static task<result<>> receive(S& from, std::string& got) {
        std::array<char, 5000> buffer{};
        auto read = [&] { return from.read_some(mutable_buffer{buffer}); };
        for (;;) {
            const auto count = co_await persistently(read);
            if (!count) co_return testing::ended(count.error());
            got.append(buffer.data(), *count);
        }
    }
    task<result<std::string>> play() override {
        auto both = co_await or_return(co_await connect());
        co_return co_await exchange(both.client, both.server);
    }

protected:
    template <class S>
    task<result<std::string>> exchange(S& client, S& server) {
        const auto ended = co_await gather(send(client, forth_), receive(server, went_),
                                           send(server, back_), receive(client, came_));
        if (!forth_.starts_with(went_) || !back_.starts_with(came_)) co_return "other bytes";
        if (!ended) co_return fail(ended);
        co_return went_ == forth_&& came_ == back_ ? "all of it" : "bytes are missing";
    }

private:
    const std::string forth_ = noise(150'000, 1);
    const std::string back_ = noise(40'000, 2);
    std::string went_ = reserved();
    std::string came_ = reserved();

    static std::string reserved() {
        std::string text;
        text.reserve(200'000);
        return text;
    }
};
TEST_P(tls_transfer_faults_test, both_directions_with_repeated_operations) {
    fail_everywhere<enduring>();
}

task<result<>> shut_down_or_close(memory_stream& writer) {
    const auto ended = co_await writer.shutdown_write();
    if (!ended) writer.close();
    co_return ended;
}

/// One write of 40000 bytes into a connection that takes 35000, a part of the last record. Its
/// allocations fail, from the `failing`-th on. Returns whether any of them did.
task<bool> write_with(memory_stream& writer, memory_stream& reader, std::size_t failing) {
    const std::string text = noise(40'000, 4);
    std::size_t written = 0;
    bool failed = false;
    {
        const testing::failing_allocations here{failing, true};
        try {
            written = writer.try_write_some(text).value_or(0);
        } catch (const std::bad_alloc&) {
        }
        failed = testing::failing_allocations::seen() > failing;
    }
    EXPECT_TRUE(written == text.size() || (failed && written == 0)) << written;
    std::error_code end;
    auto [ended, got] =
        co_await when_all(shut_down_or_close(writer), testing::read_all(reader, end));
    EXPECT_TRUE(ended) << ended.error().message();
    EXPECT_EQ(end, errc::end_of_stream);
    EXPECT_TRUE(got == text.substr(0, written));
    co_return failed;
}

// If the transport took a part of the last record, the connection used to fail.
TEST_P(tls_transfer_faults_test, a_write_that_lacks_memory_takes_nothing_or_everything) {
    std::thread{[] { // without memory in its cache
        testing::exempts_openssl = true;
        auto loop = or_throw(event_loop::create({.backend = used}));
        bool failed = true;
        auto all = [&]() -> task<> {
            for (std::size_t failing = 0; failed; ++failing) {
                auto ends = testing::connected(server_with(), testing::client(),
                                               {.server_name = "localhost"}, 35'000);
                const auto errors = co_await testing::shake_hands(ends);
                EXPECT_FALSE(errors.client || errors.server);
                failed = co_await write_with(ends.client, ends.server, failing);
            }
        };
        loop.spawn(all());
        EXPECT_TRUE(loop.run_for(10s));
    }}
        .join();
}

/// TLS whose transport may lack memory, too.
class enduring_inside : public enduring {
    task<result<std::string>> play() override {
        auto outer = co_await or_return(co_await connect());
        tls::stream<tls_tcp> client{std::move(outer.client), client_, {.server_name = "localhost"}};
        tls::stream<tls_tcp> server{std::move(outer.server), server_};
        co_return co_await exchange(client, server);
    }
};
TEST_P(tls_transfer_faults_test, tls_inside_tls) {
    fail_everywhere<enduring_inside>();
}

INSTANTIATE_TEST_SUITE_P(backends, tls_transfer_faults_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
