// Boost.Asio's side of every server scenario: C++20 coroutines, one io_context(1), a coroutine for
// each connection. Built twice, for epoll and for io_uring, because Asio chooses at compile time.
//
//   --loops N    an io_context(1) on each of N threads, each with a listener of the shared port
//   --shared N   one io_context that N threads run
//   --pin        thread n of --loops runs only on the nth processor of the affinity mask

#include "processors.hpp"
#include "server_options.hpp"

#include <boost/asio.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;

namespace {

// Errors are values on both sides: throwing at the end of a stream would measure the style, not
// Asio.
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

awaitable<void> echo(tcp::socket stream, std::size_t size) {
    const auto buffer = std::make_unique<std::byte[]>(size);
    while (true) {
        auto [error, count] =
            co_await stream.async_read_some(asio::buffer(buffer.get(), size), as_result);
        if (error) break;
        auto [failed, sent] =
            co_await asio::async_write(stream, asio::buffer(buffer.get(), count), as_result);
        if (failed) break;
    }
}

awaitable<void> source(tcp::socket stream, std::size_t size) {
    const std::vector<std::byte> block(size);
    while (true) {
        auto [error, sent] = co_await asio::async_write(stream, asio::buffer(block), as_result);
        if (error) break;
    }
}

/// The write queue that Asio's users write by hand, as in Asio's chat example, but with one
/// gathered write for everything queued.
class write_queue : public std::enable_shared_from_this<write_queue> {
public:
    explicit write_queue(std::shared_ptr<tcp::socket> stream)
        : stream_{std::move(stream)} {}

    void enqueue(std::string bytes) {
        waiting_.push_back(std::move(bytes));
        if (!sending_.empty() || posted_) return;
        // Posted, so that all writes queued in the same turn are sent together.
        posted_ = true;
        asio::post(stream_->get_executor(), [self = shared_from_this()] {
            self->posted_ = false;
            if (!self->stopped_) self->send();
        });
    }
    void stop() { stopped_ = true; }

private:
    void send() {
        sending_.swap(waiting_);
        buffers_.clear();
        for (const std::string& each : sending_)
            buffers_.push_back(asio::buffer(each));
        asio::async_write(
            *stream_, std::span<const asio::const_buffer>{buffers_},
            [self = shared_from_this()](boost::system::error_code error, std::size_t) {
                self->sending_.clear();
                if (error || self->stopped_ || self->waiting_.empty()) return;
                self->send();
            });
    }

    std::shared_ptr<tcp::socket> stream_;
    std::vector<std::string> waiting_;
    std::vector<std::string> sending_;
    std::vector<asio::const_buffer> buffers_;
    bool posted_ = false;
    bool stopped_ = false;
};

awaitable<void> queue(std::shared_ptr<tcp::socket> stream, std::size_t size, std::size_t copies) {
    const auto buffer = std::make_unique<char[]>(size);
    const auto writer = std::make_shared<write_queue>(stream);
    while (true) {
        auto [error, count] =
            co_await stream->async_read_some(asio::buffer(buffer.get(), size), as_result);
        if (error) break;
        for (std::size_t at = 0; at < copies; ++at)
            writer->enqueue(std::string(buffer.get(), count));
    }
    writer->stop();
    stream->close();
}

awaitable<void> accept_all(tcp::acceptor listener, bench::server_options how) {
    while (true) {
        auto [error, stream] = co_await listener.async_accept(as_result);
        if (error) continue;
        stream.set_option(tcp::no_delay{true});
        const auto executor = listener.get_executor();
        if (how.mode == "source") {
            asio::co_spawn(executor, source(std::move(stream), how.block), asio::detached);
        } else if (how.mode == "queue") {
            auto shared = std::make_shared<tcp::socket>(std::move(stream));
            asio::co_spawn(executor, queue(std::move(shared), how.buffer, how.copies),
                           asio::detached);
        } else {
            asio::co_spawn(executor, echo(std::move(stream), how.buffer), asio::detached);
        }
    }
}

using reuse_port = asio::detail::socket_option::boolean<SOL_SOCKET, SO_REUSEPORT>;

tcp::acceptor listen_on(asio::io_context& context, std::uint16_t port, bool shared) {
    tcp::acceptor listener{context};
    listener.open(tcp::v4());
    listener.set_option(tcp::acceptor::reuse_address{true});
    if (shared) listener.set_option(reuse_port{true});
    listener.bind({asio::ip::address_v4::loopback(), port});
    listener.listen(4096);
    return listener;
}

void serve_on_loops(std::size_t loops, bool pin, bench::server_options how) {
    std::vector<std::unique_ptr<asio::io_context>> contexts;
    for (std::size_t each = 0; each < loops; ++each) {
        contexts.push_back(std::make_unique<asio::io_context>(1));
        tcp::acceptor listener = listen_on(*contexts.back(), how.port, true);
        how.port = listener.local_endpoint().port();
        asio::co_spawn(*contexts.back(), accept_all(std::move(listener), how), asio::detached);
    }
    std::vector<std::jthread> threads;
    for (std::size_t each = 0; each < loops; ++each) {
        threads.emplace_back([&context = *contexts[each], each, pin] {
            if (pin) bench::pin_to(each);
            context.run();
        });
    }
    bench::print_port(how.port);
}

void serve_shared(int threads_wanted, const bench::server_options& how) {
    asio::io_context context{threads_wanted};
    tcp::acceptor listener = listen_on(context, how.port, false);
    bench::print_port(listener.local_endpoint().port());
    asio::co_spawn(context, accept_all(std::move(listener), how), asio::detached);
    std::vector<std::jthread> threads;
    for (int each = 0; each < threads_wanted; ++each)
        threads.emplace_back([&context] { context.run(); });
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
#ifdef BOOST_ASIO_HAS_IO_URING_AS_DEFAULT
    const char* const backend = "io_uring";
#else
    const char* const backend = "epoll";
#endif
    const auto how = bench::server_options::read(given, backend, {"echo", "source", "queue"});
    const std::size_t loops = given.number("loops", 0);
    const auto shared = static_cast<int>(given.number("shared", 0));
    const bool pin = given.flag("pin");
    given.done();
    if (loops != 0) {
        serve_on_loops(loops, pin, how);
        return 0;
    }
    if (shared != 0) {
        serve_shared(shared, how);
        return 0;
    }

    asio::io_context context{1};
    tcp::acceptor listener = listen_on(context, how.port, false);
    bench::print_port(listener.local_endpoint().port());
    asio::co_spawn(context, accept_all(std::move(listener), how), asio::detached);
    context.run();
}
