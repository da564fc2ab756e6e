// A stop at every suspension of operations on datagrams, descriptors and signals, and of calls to
// another loop.

#include "support/background_loop.hpp"
#include "support/coroutines.hpp"
#include "support/descriptor_messages.hpp"
#include "support/pipes.hpp"
#include "support/raw_peer.hpp"
#include "support/stop_everywhere.hpp"

#include <simplenet/simplenet.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::background_loop;
using testing::make_pipe;
using testing::noise;
using testing::pipe_pair;
using testing::scenario;
using testing::turns;

class network_stop_test : public testing::stop_everywhere_test {};

// --- foreign descriptors -------------------------------------------------------------------------

class nonblocking_pipe : public scenario {
protected:
    void take_what_is_there() {
        std::array<char, 4096> block;
        ssize_t count = 0;
        while ((count = ::read(pipe_.out.get(), block.data(), block.size())) > 0)
            got_.append(block.data(), static_cast<std::size_t>(count));
    }

    pipe_pair pipe_ = make_pipe();
    std::string got_;
};

class waiting_to_read : public nonblocking_pipe {
    task<> subject() override {
        while (got_.size() < text_.size()) {
            const auto ready = co_await async_wait_readable(pipe_.out.get());
            expect_success_or_stop(ready);
            if (!ready) co_return;
            const std::size_t before = got_.size();
            take_what_is_there();
            EXPECT_GT(got_.size(), before);
        }
    }
    task<> partner() override {
        for (const char& each : text_) {
            co_await turns(2);
            EXPECT_EQ(::write(pipe_.in.get(), &each, 1), 1);
        }
    }
    task<> verify() override {
        take_what_is_there();
        EXPECT_EQ(got_, text_);
        co_return;
    }
    const std::string text_ = "nothing is taken by waiting";
};
TEST_P(network_stop_test, async_wait_readable) {
    stop_everywhere<waiting_to_read>();
}

class waiting_to_write : public nonblocking_pipe {
    task<> subject() override {
        while (written_ < text_.size()) {
            const ssize_t count =
                ::write(pipe_.in.get(), text_.data() + written_, text_.size() - written_);
            if (count > 0) {
                written_ += static_cast<std::size_t>(count);
                continue;
            }
            const auto ready = co_await async_wait_writable(pipe_.in.get());
            expect_success_or_stop(ready);
            if (!ready) co_return;
        }
    }
    task<> partner() override {
        while (true) {
            const auto ready = co_await async_wait_readable(pipe_.out.get());
            if (!ready) co_return;
            co_await turns(2);
            take_what_is_there();
        }
    }
    task<> verify() override {
        take_what_is_there();
        EXPECT_EQ(got_, text_.substr(0, written_));
        EXPECT_TRUE(stopped() || written_ == text_.size());
        co_return;
    }
    const std::string text_ = noise(300'000);
    std::size_t written_ = 0;
};
TEST_P(network_stop_test, async_wait_writable) {
    stop_everywhere<waiting_to_write>();
}

// --- datagrams -----------------------------------------------------------------------------------

template <class Socket>
struct datagram_ends;
template <>
struct datagram_ends<udp_socket> {
    udp_socket receiver = or_throw(udp_socket::bind(endpoint::loopback(0)));
    udp_socket sender = or_throw(udp_socket::connect(or_throw(receiver.local_endpoint())));
    using outgoing = outgoing_datagram;
    using incoming = incoming_datagram;
};
template <>
struct datagram_ends<local_datagram> {
    local_datagram receiver = or_throw(local_datagram::bind(local_endpoint{}));
    local_datagram sender = or_throw(local_datagram::connect(or_throw(receiver.local_endpoint())));
    using outgoing = outgoing_message;
    using incoming = incoming_message;
};

/// Numbered datagrams: each one that was sent arrives, once and in order.
template <class Socket>
class datagrams : public scenario {
public:
    task<> verify() override {
        std::array<char, 16> buffer;
        while (true) {
            // Available datagrams beat the deadline.
            const auto got = co_await with_timeout(ends_.receiver.receive_from(buffer), 0ms);
            if (!got) break;
            arrived(std::string_view{buffer.data(), got->size});
        }
        EXPECT_EQ(received_, sent_);
        EXPECT_TRUE(stopped() || sent_ == most_);
    }

protected:
    void arrived(std::string_view text) { EXPECT_EQ(text, std::to_string(received_++)); }

    datagram_ends<Socket> ends_;
    std::size_t most_ = 20;
    std::size_t sent_ = 0;
    std::size_t received_ = 0;
};

template <class Socket>
class receiving : public datagrams<Socket> {
    task<> subject() override {
        std::array<char, 16> buffer;
        while (this->received_ < this->most_) {
            const auto got = co_await this->ends_.receiver.receive_from(buffer);
            this->expect_success_or_stop(got);
            if (!got) co_return;
            this->arrived(std::string_view{buffer.data(), got->size});
        }
    }
    task<> partner() override {
        while (this->sent_ < this->most_) {
            co_await turns(2);
            const std::string text = std::to_string(this->sent_);
            if (!co_await this->ends_.sender.send(text)) co_return;
            ++this->sent_;
        }
    }
};
TEST_P(network_stop_test, udp_receive_from) {
    stop_everywhere<receiving<udp_socket>>();
}
TEST_P(network_stop_test, local_receive_from) {
    stop_everywhere<receiving<local_datagram>>();
}

template <class Socket>
class receiving_batches : public datagrams<Socket> {
    task<> subject() override {
        std::array<std::array<char, 16>, 3> memory;
        std::array<typename datagram_ends<Socket>::incoming, 3> places;
        for (std::size_t at = 0; at < places.size(); ++at)
            places[at].into = memory[at];
        while (this->received_ < this->most_) {
            const auto count = co_await this->ends_.receiver.receive_batch(places);
            this->expect_success_or_stop(count);
            if (!count) co_return;
            for (std::size_t at = 0; at < *count; ++at)
                this->arrived(std::string_view{memory[at].data(), places[at].about.size});
        }
    }
    task<> partner() override {
        while (this->sent_ < this->most_) {
            co_await turns(2);
            for (int burst = 0; burst < 2; ++burst) {
                const std::string text = std::to_string(this->sent_);
                if (!co_await this->ends_.sender.send(text)) co_return;
                ++this->sent_;
            }
        }
    }
};
TEST_P(network_stop_test, udp_receive_batch) {
    stop_everywhere<receiving_batches<udp_socket>>();
}
TEST_P(network_stop_test, local_receive_batch) {
    stop_everywhere<receiving_batches<local_datagram>>();
}

/// The receiver is slower than the sender, which has to wait with Unix domain datagrams.
template <class Socket>
class to_a_slow_one : public datagrams<Socket> {
public:
    to_a_slow_one() { this->most_ = 100; }
    task<> partner() override {
        std::array<char, 16> buffer;
        while (true) {
            const auto got = co_await this->ends_.receiver.receive_from(buffer);
            if (!got) co_return;
            this->arrived(std::string_view{buffer.data(), got->size});
            if (this->received_ % 4 == 0) co_await turns(2);
        }
    }
};

template <class Socket>
class sending : public to_a_slow_one<Socket> {
    task<> subject() override {
        while (this->sent_ < this->most_) {
            const std::string text = std::to_string(this->sent_);
            const auto sent = co_await this->ends_.sender.send(text);
            this->expect_success_or_stop(sent);
            if (!sent) co_return;
            ++this->sent_;
            if (this->sent_ % 20 == 0) co_await turns(1); // the kernel accepts all of UDP at once
        }
    }
};
TEST_P(network_stop_test, udp_send) {
    stop_everywhere<sending<udp_socket>>();
}
TEST_P(network_stop_test, local_send) {
    stop_everywhere<sending<local_datagram>>();
}

template <class Socket>
class sending_to : public to_a_slow_one<Socket> {
public:
    sending_to() { this->most_ = 30; } // waiting for room takes a millisecond and more

private:
    task<> subject() override {
        const auto to = or_throw(this->ends_.receiver.local_endpoint());
        while (this->sent_ < this->most_) {
            const std::string text = std::to_string(this->sent_);
            const auto sent = co_await unconnected_.send_to(text, to);
            this->expect_success_or_stop(sent);
            if (!sent) co_return;
            ++this->sent_;
            if (this->sent_ % 10 == 0) co_await turns(1);
        }
    }
    static Socket make() {
        if constexpr (std::same_as<Socket, udp_socket>) {
            return or_throw(udp_socket::bind(endpoint::loopback(0)));
        } else {
            return or_throw(local_datagram::bind(local_endpoint{}));
        }
    }
    Socket unconnected_ = make();
};
TEST_P(network_stop_test, udp_send_to) {
    stop_everywhere<sending_to<udp_socket>>();
}
TEST_P(network_stop_test, local_send_to) {
    stop_everywhere<sending_to<local_datagram>>();
}

/// Continues at the offset that a failure reports.
template <class Socket>
class sending_batches : public to_a_slow_one<Socket> {
    task<> subject() override {
        std::vector<std::string> texts;
        for (std::size_t at = 0; at < this->most_; ++at)
            texts.push_back(std::to_string(at));
        while (this->sent_ < this->most_) {
            const std::size_t size = std::min<std::size_t>(25, this->most_ - this->sent_);
            std::vector<typename datagram_ends<Socket>::outgoing> batch(size);
            for (std::size_t at = 0; at < size; ++at)
                batch[at].data = texts[this->sent_ + at];
            const auto sent = co_await this->ends_.sender.send_batch(batch);
            this->expect_success_or_stop(sent);
            this->sent_ += sent ? *sent : sent.error().transferred;
            if (!sent) co_return;
            co_await turns(1);
        }
    }
};
TEST_P(network_stop_test, udp_send_batch) {
    stop_everywhere<sending_batches<udp_socket>>();
}
TEST_P(network_stop_test, local_send_batch) {
    stop_everywhere<sending_batches<local_datagram>>();
}

// --- passing descriptors -------------------------------------------------------------------------

class local_pair : public scenario {
protected:
    testing::raw_connection<local_stream> ends_ =
        testing::connect_raw_local({.ours = 4096, .theirs = 4096});
};

/// The descriptors are sent with the first byte, and `transferred` says whether it was sent.
class sending_descriptors : public local_pair {
    task<> subject() override {
        auto [out, in] = make_pipe();
        const std::array both{out.get(), in.get()};
        const auto sent = co_await ends_.ours.send_descriptors(text_, both);
        expect_success_or_stop(sent);
        sent_ = sent ? *sent : sent.error().transferred;
    }
    task<> partner() override {
        while (true) {
            const auto ready = co_await async_wait_readable(ends_.theirs.fd());
            if (!ready) co_return;
            co_await turns(2);
            take_some();
        }
    }
    task<> verify() override {
        while (got_.size() < sent_)
            take_some();
        EXPECT_EQ(got_, text_.substr(0, sent_));
        EXPECT_EQ(descriptors_, sent_ > 0 ? 2U : 0U);
        EXPECT_TRUE(stopped() || sent_ == text_.size());
        co_return;
    }
    void take_some() {
        const auto got = testing::receive_with(ends_.theirs);
        got_ += got.text;
        descriptors_ += got.descriptors.size();
    }
    const std::string text_ = noise(200'000);
    std::size_t sent_ = 0;
    std::string got_;
    std::size_t descriptors_ = 0;
};
TEST_P(network_stop_test, send_descriptors) {
    stop_everywhere<sending_descriptors>();
}

class receiving_descriptors : public local_pair {
    task<> subject() override { co_await receive(true); }
    task<> partner() override {
        const std::array one{0};
        for (; sent_ < most; ++sent_) {
            co_await turns(2);
            testing::send_with(ends_.theirs, "a line\n", one);
        }
    }
    task<> verify() override {
        co_await receive(false);
        EXPECT_EQ(received_, sent_);
    }
    task<> receive(bool stoppable) {
        std::array<char, 64> buffer;
        while (received_ < (stoppable ? most : sent_)) {
            const auto got = co_await ends_.ours.receive_descriptors(buffer);
            if (stoppable) expect_success_or_stop(got);
            if (!got) co_return;
            EXPECT_EQ(std::string_view(buffer.data(), got->size), "a line\n");
            received_ += got->descriptors.size();
        }
    }
    static constexpr std::size_t most = 10;
    std::size_t sent_ = 0;
    std::size_t received_ = 0;
};
TEST_P(network_stop_test, receive_descriptors) {
    stop_everywhere<receiving_descriptors>();
}

// --- signals -------------------------------------------------------------------------------------

std::size_t handled = 0;

/// A real-time signal, because those queue. Signals that no await received take their usual effect
/// when the set is destroyed: none is lost, and none is seen twice.
class receiving_signals : public scenario {
public:
    receiving_signals() {
        handled = 0;
        before_ = std::signal(number(), [](int) { ++handled; });
        set_.emplace({number()});
    }
    receiving_signals(const receiving_signals&) = delete;
    receiving_signals& operator=(const receiving_signals&) = delete;
    ~receiving_signals() override {
        set_.reset();
        std::signal(number(), before_);
        if (testing::under_thread_sanitizer && received_ != raised_) {
            // ThreadSanitizer delays signals, and merges those of one number.
            EXPECT_GT(handled, 0U);
        } else {
            EXPECT_EQ(received_ + handled, raised_);
        }
    }

private:
    static int number() { return SIGRTMIN + 1; }
    task<> subject() override {
        while (received_ < most) {
            const auto got = co_await set_->next();
            expect_success_or_stop(got);
            if (!got) co_return;
            EXPECT_EQ(*got, number());
            ++received_;
        }
    }
    task<> partner() override {
        for (; raised_ < most; ++raised_) {
            co_await turns(2);
            std::raise(number());
        }
    }
    static constexpr std::size_t most = 10;
    std::optional<signal_set> set_;
    void (*before_)(int) = nullptr;
    std::size_t raised_ = 0;
    std::size_t received_ = 0;
};
TEST_P(network_stop_test, signal_set) {
    stop_everywhere<receiving_signals>();
}

// --- another loop --------------------------------------------------------------------------------

class calling_elsewhere : public scenario {
    task<> subject() override {
        for (int turn = 0; turn < 5; ++turn) {
            auto call = [this](int value) -> result<int> {
                ++begun_;
                return value + 1;
            };
            const auto next = co_await run_on(*other_, call, turn);
            expect_success_or_stop(next);
            if (!next) co_return;
            EXPECT_EQ(*next, turn + 1);
            ++answers_;
        }
    }
    /// A call that has begun is answered, whenever the stop came.
    task<> verify() override {
        EXPECT_EQ(begun_, answers_);
        EXPECT_TRUE(stopped() || answers_ == 5);
        co_return;
    }
    std::atomic<int> begun_ = 0;
    int answers_ = 0;
    background_loop other_{{.backend = backend::epoll}}; // ends first: its calls use the others
};
TEST_P(network_stop_test, run_on_with_a_call) {
    stop_everywhere<calling_elsewhere>();
}

/// Joined even when stopped: the work on the other loop has ended when the await returns.
class working_elsewhere : public scenario {
    task<> subject() override {
        for (int turn = 0; turn < 3; ++turn) {
            auto work = [this]() -> task<result<int>> {
                running_ = true;
                const auto slept = co_await async_sleep(1ms);
                running_ = false;
                if (!slept) co_return fail(slept);
                co_return 1;
            };
            const auto one = co_await run_on(*event_loop::current(), work);
            EXPECT_FALSE(running_);
            expect_success_or_stop(one);
            if (!one) co_return;
            count_ += *one;
        }
    }
    task<> verify() override {
        EXPECT_TRUE(stopped() || count_ == 3);
        co_return;
    }
    bool running_ = false;
    int count_ = 0;
};
TEST_P(network_stop_test, run_on_with_a_task) {
    stop_everywhere<working_elsewhere>();
}

// --- leaving early -------------------------------------------------------------------------------

/// A stop ends every task up to the subject, and destroys their objects; it loses no byte.
class returning_early : public scenario {
    struct counted {
        explicit counted(int& alive)
            : alive_{++alive} {}
        counted(const counted&) = delete;
        counted& operator=(const counted&) = delete;
        ~counted() { --alive_; }
        int& alive_;
    };
    task<result<std::string>> read_three() {
        const counted here{alive_};
        std::string text(3, '\0');
        std::size_t have = 0;
        while (have < text.size()) {
            have += co_await or_return(
                ends_.ours.read_some(mutable_buffer{text.data() + have, text.size() - have}));
            kept_ = text.substr(0, have);
        }
        kept_.clear();
        co_return text;
    }
    task<result<>> read_all() {
        const counted here{alive_};
        while (got_.size() < sent_.size())
            got_ += co_await or_return(read_three());
        co_return result<>{};
    }
    task<> subject() override {
        expect_success_or_stop(co_await read_all());
        EXPECT_EQ(alive_, 0);
    }
    task<> partner() override {
        for (std::size_t at = 0; at < sent_.size(); at += 2) {
            co_await turns(2);
            ends_.theirs.send(sent_.substr(at, 2));
            told_ = std::min(at + 2, sent_.size());
        }
    }
    task<> verify() override {
        got_ += kept_;
        std::array<char, 64> buffer;
        while (got_.size() < told_) {
            const auto count = co_await ends_.ours.read_some(buffer);
            if (!count) break;
            got_.append(buffer.data(), *count);
        }
        EXPECT_EQ(got_, sent_.substr(0, told_));
    }
    testing::raw_connection<tcp_stream> ends_ = testing::connect_raw();
    const std::string sent_ = "one two three four five six";
    std::string got_;
    std::string kept_;
    std::size_t told_ = 0;
    int alive_ = 0;
};
TEST_P(network_stop_test, or_return) {
    stop_everywhere<returning_early>();
}

INSTANTIATE_TEST_SUITE_P(backends, network_stop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
