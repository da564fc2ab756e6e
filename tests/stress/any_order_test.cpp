// Every kind of object that a loop knows lives outside of it, in use or not, and is destroyed in
// any order, before or after the loop (promise 15). AddressSanitizer reports the mistakes.
//
// The test prints each seed in advance, because the process may die: SIMPLENET_SEED=<seed> starts
// with that one. The kernel decides when data arrives, so a seed does not always repeat the same
// run.

#include "support/backend_test.hpp"
#include "support/coroutines.hpp"
#include "support/descriptors.hpp"
#include "support/error_of.hpp"
#include "support/full_form.hpp"

#include <simplenet/simplenet.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <unistd.h>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::dice;

/// A stream and the operations that tasks have started on it: at most one read and one write, since
/// a second one would be a violation.
template <class Stream>
struct used {
    explicit used(Stream made)
        : stream{std::move(made)} {}

    Stream stream;
    bool read = false;
    bool written = false;
};

template <class Socket>
struct accepting {
    explicit accepting(Socket made)
        : socket{std::move(made)} {}

    Socket socket;
    bool busy = false;
    std::shared_ptr<int> life = std::make_shared<int>();
};

/// Objects of one kind. They do not move while tasks use them.
template <class T>
class pile {
public:
    T& add(T thing) { return *things_.emplace_back(std::make_unique<T>(std::move(thing))); }
    [[nodiscard]] std::size_t size() const { return things_.size(); }
    T* any(dice& by) {
        return things_.empty() ? nullptr : things_[by.up_to(things_.size() - 1)].get();
    }
    /// Removes a random object; null if there is none.
    std::unique_ptr<T> take(dice& by) {
        if (things_.empty()) return nullptr;
        std::swap(things_[by.up_to(things_.size() - 1)], things_.back());
        auto taken = std::move(things_.back());
        things_.pop_back();
        return taken;
    }

private:
    std::vector<std::unique_ptr<T>> things_;
};

using any_released = std::variant<tcp_stream::released, local_stream::released>;

/// The objects outside of the loop.
struct world {
    dice random;
    std::tuple<pile<used<tcp_stream>>, pile<used<local_stream>>, pile<accepting<tcp_listener>>,
               pile<accepting<local_listener>>, pile<accepting<udp_socket>>, pile<received>,
               pile<queued_writer<tcp_stream>>, pile<read_half<tcp_stream>>,
               pile<write_half<tcp_stream>>, pile<any_released>, pile<join_handle<void>>>
        things;

    template <class T>
    pile<T>& of() {
        return std::get<pile<T>>(things);
    }
    [[nodiscard]] std::size_t size() const {
        return std::apply([](const auto&... each) { return (each.size() + ...); }, things);
    }
    /// Destroys a random object of a random kind, if there is one.
    void drop_one() {
        std::size_t at = random.up_to(std::tuple_size_v<decltype(things)> - 1);
        const auto drop = [&](auto& from) {
            if (at-- == 0) static_cast<void>(from.take(random));
        };
        std::apply([&](auto&... each) { (drop(each), ...); }, things);
    }

    template <class Stream>
    task<> keep(Stream stream) {
        of<used<Stream>>().add(used<Stream>{std::move(stream)});
        co_return;
    }
};

std::chrono::microseconds some_time(world& in) {
    return std::chrono::microseconds{in.random.up_to(2000)};
}
std::vector<std::byte> some_bytes(world& in, std::size_t most) {
    return std::vector<std::byte>(1 + in.random.up_to(most));
}

// The streams may be destroyed while these tasks wait; the tasks do not use them afterwards.

template <class Stream>
task<> read(world& in, Stream& from) {
    std::vector<std::byte> into = some_bytes(in, 70'000);
    switch (in.random.up_to(5)) {
    case 0:
        static_cast<void>(co_await from.read_some(into));
        break;
    case 1: {
        auto limited = with_timeout(from.read_some(into), some_time(in));
        static_cast<void>(co_await std::move(limited));
        break;
    }
    case 2:
        static_cast<void>(co_await async_read_exact(from, into));
        break;
    case 3:
        static_cast<void>(co_await from.closed());
        break;
    case 4: {
        auto limited = with_timeout(from.receive(), some_time(in));
        auto lease = co_await std::move(limited);
        if (lease) in.of<received>().add(*std::move(lease));
        break;
    }
    default: {
        auto lease = co_await from.receive();
        if (lease) in.of<received>().add(*std::move(lease));
    }
    }
}

template <class Stream>
task<> write(world& in, Stream& to) {
    const std::vector<std::byte> bytes = some_bytes(in, 300'000);
    if (in.random.one_in(2)) {
        static_cast<void>(co_await async_write_all(to, bytes));
    } else {
        auto limited = with_timeout(async_write_all(to, bytes), some_time(in));
        static_cast<void>(co_await std::move(limited));
    }
}

template <class Listener>
task<> accept(world& in, Listener& from, std::weak_ptr<int> life) {
    while (!life.expired()) {
        auto stream = co_await from.accept();
        if (!stream) co_return;
        co_await in.keep(*std::move(stream));
    }
}

template <class Listener>
task<> own_and_accept(world& in, Listener mine) {
    const auto life = std::make_shared<int>();
    co_await accept(in, mine, life);
}

task<> receive_datagram(udp_socket& from) {
    std::array<std::byte, 100> into{};
    static_cast<void>(co_await from.receive_from(into));
}

template <class Endpoint>
task<> dial(world& in, Endpoint to) {
    auto made = co_await async_connect(to);
    if (!made) co_return;
    if (in.random.one_in(2)) co_await write(in, *made);
    co_await in.keep(*std::move(made));
}

template <class Stream>
task<> use_and_keep(world& in, std::unique_ptr<used<Stream>> mine) {
    co_await read(in, mine->stream);
    if (!in.random.one_in(3)) co_await in.keep(std::move(mine->stream));
}

template <class Stream>
task<> let_go(world& in, std::unique_ptr<used<Stream>> mine) {
    auto gone = co_await std::move(mine->stream).release();
    if (gone) in.of<any_released>().add(any_released{*std::move(gone)});
}

class any_order_test : public testing::backend_test {
protected:
    void play(std::uint32_t seed) {
        const std::ptrdiff_t frames = detail::live_frames();
        const std::size_t descriptors = testing::open_descriptors();
        {
            world all{.random = dice{seed}, .things = {}};
            begin(all);
            for (std::size_t step = 3 + all.random.up_to(10); step != 0; --step) {
                do_something(all);
                static_cast<void>(loop().run_for(some_time(all)));
                end_something(all);
            }
            end(all);
        }
        EXPECT_EQ(detail::live_frames(), frames) << "seed " << seed;
        EXPECT_EQ(testing::open_descriptors(), descriptors) << "seed " << seed;
    }
    std::uint64_t dropped() const { return dropped_; }

private:
    void begin(world& all) {
        dice& random = all.random;
        loop_options options;
        if (random.one_in(2)) options.receive_pool = 16384 * (2 + random.up_to(3));
        if (random.one_in(3)) options.read_ahead = 1 + random.up_to(40'000);
        if (random.one_in(3)) {
            options.queue_depth = 8;
            options.completion_depth = 16;
        }
        remake_loop(options);
        at_.clear();
        local_at_.clear();
        for (std::size_t left = 1 + random.up_to(2); left != 0; --left) {
            auto listener = or_throw(tcp_listener::bind(endpoint::loopback(0)));
            at_.push_back(or_throw(listener.local_endpoint()));
            listen(all, std::move(listener));
        }
        local_at_.push_back(or_throw(local_endpoint::abstract(
            "simplenet-any-order-" + std::to_string(::getpid()) + std::to_string(++names_))));
        listen(all, or_throw(local_listener::bind(local_at_.back())));
        for (std::size_t left = random.up_to(2); left != 0; --left) {
            all.of<accepting<udp_socket>>().add(
                accepting{or_throw(udp_socket::bind(endpoint::loopback(0)))});
        }
    }
    template <class Listener>
    void listen(world& all, Listener listener) {
        if (all.random.one_in(2)) return start(all, own_and_accept(all, std::move(listener)));
        auto& kept = all.of<accepting<Listener>>().add(accepting{std::move(listener)});
        if (!all.random.one_in(4)) start(all, accept(all, kept.socket, kept.life));
    }
    void start(world& all, task<> work) {
        all.of<join_handle<void>>().add(loop().spawn(std::move(work)));
        static_cast<void>(loop().poll()); // so that it begins before any destruction
    }

    void do_something(world& all) {
        for (std::size_t left = all.random.up_to(4); left != 0; --left)
            start(all, dial(all, at_[all.random.up_to(at_.size() - 1)]));
        for (std::size_t left = all.random.up_to(2); left != 0; --left)
            start(all, dial(all, local_at_.front()));
        for (std::size_t left = all.random.up_to(5); left != 0; --left)
            all.random.one_in(3) ? use<local_stream>(all) : use<tcp_stream>(all);
        auto* const datagrams = all.of<accepting<udp_socket>>().any(all.random);
        if (datagrams != nullptr && !std::exchange(datagrams->busy, true)) {
            start(all, receive_datagram(datagrams->socket));
        }
    }
    template <class Stream>
    void use(world& all) {
        auto& streams = all.of<used<Stream>>();
        used<Stream>* const chosen = streams.any(all.random);
        if (chosen == nullptr) return;
        if (all.random.one_in(2)) {
            // A task uses it in its place.
            if (all.random.one_in(2)) {
                if (!std::exchange(chosen->read, true)) start(all, read(all, chosen->stream));
            } else if (!std::exchange(chosen->written, true)) {
                start(all, write(all, chosen->stream));
            }
            return;
        }
        auto taken = streams.take(all.random);
        if (taken->read || taken->written) return; // destroys it, perhaps in use
        if (all.random.one_in(3)) return start(all, let_go(all, std::move(taken)));
        if constexpr (std::is_same_v<Stream, tcp_stream>) {
            if (all.random.one_in(3)) return make_writer(all, std::move(taken->stream));
            if (all.random.one_in(3)) {
                auto [reading, writing] = split(std::move(taken->stream));
                all.of<read_half<Stream>>().add(std::move(reading));
                all.of<write_half<Stream>>().add(std::move(writing));
                return;
            }
        }
        start(all, use_and_keep(all, std::move(taken)));
    }
    void make_writer(world& all, tcp_stream stream) {
        auto& writer = all.of<queued_writer<tcp_stream>>().add(queued_writer{std::move(stream)});
        loop().post([&all, &writer] {
            static_cast<void>(writer.enqueue(const_buffer{some_bytes(all, 200'000)}));
        });
        static_cast<void>(loop().poll());
    }

    void end_something(world& all) {
        for (std::size_t left = all.random.up_to(12); left != 0; --left)
            drop_one(all);
        auto* const task = all.of<join_handle<void>>().any(all.random);
        if (task != nullptr && all.random.one_in(2)) task->request_stop();
        if (all.random.one_in(4)) close_any<accepting<tcp_listener>>(all);
        if (all.random.one_in(4)) close_any<accepting<local_listener>>(all);
        auto* const stream = all.of<used<tcp_stream>>().any(all.random);
        if (stream != nullptr && all.random.one_in(4)) stream->stream.close();
    }
    template <class Holder>
    static void close_any(world& all) {
        auto* const chosen = all.of<Holder>().any(all.random);
        if (chosen != nullptr) chosen->socket.close();
    }
    void drop_one(world& all) {
        const std::size_t before = all.size();
        all.drop_one();
        dropped_ += before - all.size();
    }

    /// Destroys everything in random order, including the loop.
    void end(world& all) {
        for (std::size_t left = all.random.up_to(2 * all.size()); left != 0; --left)
            drop_one(all);
        destroy_loop();
        remake_loop(); // a new loop cannot use them
        auto* const stream = all.of<used<tcp_stream>>().any(all.random);
        if (stream != nullptr && (stream->read || stream->written)) {
            run([&]() -> task<> {
                EXPECT_EQ(error_of(co_await stream->stream.write_some("x")),
                          std::errc::bad_file_descriptor);
            });
        }
        while (all.size() != 0) {
            if (all.random.one_in(50)) remake_loop();
            drop_one(all);
        }
    }

    std::vector<endpoint> at_;
    std::vector<local_endpoint> local_at_;
    std::uint64_t names_ = 0;
    std::uint64_t dropped_ = 0;
};

TEST_P(any_order_test, every_order_of_destruction_is_safe) {
    const auto first = static_cast<std::uint32_t>(testing::first_seed());
    const std::uint32_t count = testing::short_or_full<std::uint32_t>(40, 5000);
    std::uint32_t seed = first;
    for (; seed < first + count && !HasFailure(); ++seed) {
        still_alive();
        std::printf("seed %u\n", seed);
        std::fflush(stdout);
        play(seed);
    }
    testing::report_figures("seeds " + std::to_string(first) + " to " + std::to_string(seed - 1) +
                            ", " + std::to_string(dropped()) + " things dropped");
}

INSTANTIATE_TEST_SUITE_P(backends, any_order_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
