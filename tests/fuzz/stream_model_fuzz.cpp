// Sequences of operations on two connected streams, compared with a queue of bytes: in memory, over
// a pair of Unix domain sockets and over TCP, on both backends. Reads and writes of every kind,
// with stops and limits in flight, half-closes and closes.

#include "fuzz/fuzz.hpp"
#include "fuzz/on_loop.hpp"
#include "support/raw_peer.hpp"

#include <simplenet/coro/spawn.hpp>
#include <simplenet/net/local_stream.hpp>
#include <simplenet/net/tcp_stream.hpp>
#include <simplenet/stream/duplex.hpp>
#include <simplenet/stream/read_until.hpp>
#include <simplenet/stream/split.hpp>
#include <simplenet/stream/transfer.hpp>
#include <simplenet/time/deadline.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace simplenet::v0::fuzz {
namespace {

using namespace std::chrono_literals;

enum class reading : std::uint8_t { some, exact, until, lease };
enum class writing : std::uint8_t { some, all, gathered };

/// The arguments of a read or a write.
struct call {
    std::uint8_t kind = 0;
    std::size_t size = 0;
    std::optional<std::chrono::nanoseconds> limit;
};

/// The state of an operation that has started.
struct in_flight {
    std::optional<join_handle<>> handle;
    bool stopped = false; // a stop was requested
    bool closed = false;  // its own end was closed since
    bool over = true;
};

/// One direction: the bytes between the writing end and the reading end.
struct queue {
    std::size_t accepted = 0; // by writes that have ended
    std::size_t offered = 0;  // by the write in flight, from `accepted` on
    std::size_t got = 0;      // by reads that have ended
    bool ended = false;       // by shutdown_write(), or by a close of the writing end
    bool deaf = false;        // the reading end is closed
};

template <class Stream>
class model {
public:
    model(input from, Stream first, Stream second)
        : from_{from}
        , streams_{std::move(first), std::move(second)} {}

    task<> run() {
        for (std::size_t steps = 0; !from_.empty() && steps < 150; ++steps)
            co_await step();
        co_await finish();
    }

private:
    static constexpr bool is_memory = std::is_same_v<Stream, duplex_stream>;
    static constexpr bool is_tcp = std::is_same_v<Stream, tcp_stream>;

    // End `e` writes queues_[e], and reads queues_[1 - e].
    queue& outgoing(unsigned e) { return queues_[e]; }
    queue& incoming(unsigned e) { return queues_[1 - e]; }

    task<> step() {
        const std::uint8_t decision = from_.byte();
        const unsigned e = decision % 2;
        switch (decision / 2 % 12) {
        case 0:
        case 1:
        case 2:
            begin_read(e);
            break;
        case 3:
        case 4:
        case 5:
            begin_write(e);
            break;
        case 6:
            co_await turns(1 + from_.up_to(3));
            break;
        case 7:
            stop(readers_[e]);
            break;
        case 8:
            stop(writers_[e]);
            break;
        case 9:
            if (from_.byte() < 64) shut_down(e);
            break;
        case 10:
            if (from_.byte() < 48) close(e);
            break;
        case 11:
            co_await settle();
            break;
        }
    }

    call decode_call(std::size_t kinds) {
        call decoded;
        const std::uint8_t how = from_.byte();
        decoded.kind = static_cast<std::uint8_t>(how % kinds);
        decoded.size = from_.up_to((how & 0x40U) != 0 ? 60000 : 100);
        if ((how & 0x80U) != 0) {
            constexpr std::array limits{0ns, -1ns, 1ns, 50000ns, std::chrono::nanoseconds::max()};
            decoded.limit = limits[from_.up_to(limits.size() - 1)];
        }
        return decoded;
    }

    // --- starting operations --------------------------------------------------------------------

    void begin_read(unsigned e) {
        const call what = decode_call(4);
        if (!readers_[e].over) return; // one reader at a time
        readers_[e] = {.closed = closed_[e], .over = false};
        readers_[e].handle = spawn(read(*this, e, what));
    }
    void begin_write(unsigned e) {
        const call what = decode_call(3);
        if (!writers_[e].over) return;
        writers_[e] = {.closed = closed_[e], .over = false};
        outgoing(e).offered = what.size;
        writers_[e].handle = spawn(write(*this, e, what));
    }
    static void stop(in_flight& which) {
        if (which.over) return;
        which.stopped = true;
        which.handle->request_stop();
    }
    void shut_down(unsigned e) {
        const auto done = streams_[e].shutdown_write();
        if (done) {
            outgoing(e).ended = true;
        } else {
            FUZZ_CHECK((closed_[e] && done.error() == std::errc::bad_file_descriptor) ||
                       ((outgoing(e).ended || closed_[1 - e]) &&
                        done.error() == std::errc::not_connected));
        }
    }
    void close(unsigned e) {
        streams_[e].close();
        closed_[e] = true;
        FUZZ_CHECK(!streams_[e].is_open());
        outgoing(e).ended = true;
        incoming(e).deaf = true;
        readers_[e].closed = writers_[e].closed = true;
    }

    // --- checking results -----------------------------------------------------------------------

    /// Checks received bytes: they are the next ones, and none was invented.
    void received(unsigned e, std::string_view bytes) {
        queue& from = incoming(e);
        FUZZ_CHECK(bytes == pattern(from.got, bytes.size(), 1 - e));
        from.got += bytes.size();
        FUZZ_CHECK(from.got <= from.accepted + from.offered);
    }

    void check_error(unsigned e, bool reads, const call& what, std::error_code error) {
        const in_flight& self = reads ? readers_[e] : writers_[e];
        if (error == std::errc::operation_canceled) {
            FUZZ_CHECK(self.stopped || self.closed);
        } else if (error == errc::deadline_exceeded) {
            FUZZ_CHECK(what.limit.has_value() && *what.limit < 1s);
        } else if (error == std::errc::bad_file_descriptor) {
            FUZZ_CHECK(self.closed);
        } else if (error == errc::end_of_stream) {
            // The bytes that a write in flight has moved are not known yet.
            // After a read has reported a reset, an end says nothing about the bytes.
            FUZZ_CHECK(reads && incoming(e).ended &&
                       (reset_told_[e] || incoming(e).got >= incoming(e).accepted));
        } else if (error == std::errc::connection_reset) {
            FUZZ_CHECK(!is_memory && closed_[1 - e]);
            if (reads) reset_told_[e] = true;
        } else if (error == std::errc::broken_pipe) {
            FUZZ_CHECK(!reads && (outgoing(e).ended || outgoing(e).deaf));
        } else if (error == errc::limit_exceeded) {
            FUZZ_CHECK(reads && static_cast<reading>(what.kind) == reading::until);
        } else {
            std::fprintf(stderr, "unexpected: %s\n", error.message().c_str());
            FUZZ_CHECK(false);
        }
    }

    /// Whether bytes are available to a read at its start. TCP may still be delivering some.
    [[nodiscard]] bool is_there(unsigned e) {
        return !is_tcp && incoming(e).got < incoming(e).accepted;
    }

    template <class Awaitable>
    static auto limited(Awaitable operation, const call& what) {
        // Without a limit, use one that never passes: the code path is the same.
        return with_timeout(std::move(operation), what.limit.value_or(1000s));
    }

    static task<> read(model& of, unsigned e, call what) {
        switch (static_cast<reading>(what.kind)) {
        case reading::some:
            co_await of.read_some(e, what);
            break;
        case reading::exact:
            co_await of.read_exact(e, what);
            break;
        case reading::until:
            co_await of.read_until(e, what);
            break;
        case reading::lease:
            co_await of.read_lease(e, what);
            break;
        }
        of.readers_[e].over = true;
    }
    task<> read_some(unsigned e, call what) {
        std::string into(what.size + 1, '\0');
        const bool there = is_there(e);
        const auto count = co_await limited(streams_[e].read_some(into), what);
        if (!count) {
            check_error(e, true, what, count.error());
            // Available data beats a deadline that has passed.
            FUZZ_CHECK(count.error() != errc::deadline_exceeded || !there);
            co_return;
        }
        FUZZ_CHECK(*count != 0 && *count <= into.size());
        received(e, std::string_view{into}.substr(0, *count));
    }
    task<> read_exact(unsigned e, call what) {
        std::string into(what.size, '\0');
        const auto count = co_await limited(async_read_exact(streams_[e], into), what);
        const std::size_t moved = count ? *count : count.error().transferred;
        FUZZ_CHECK(count ? moved == into.size() : moved < into.size() || into.empty());
        received(e, std::string_view{into}.substr(0, moved));
        if (!count) check_error(e, true, what, count.error().code);
    }
    task<> read_until(unsigned e, call what) {
        std::string& text = until_[e];
        const std::size_t had = text.size();
        const auto length =
            co_await limited(async_read_until(streams_[e], text, "\n", what.size), what);
        FUZZ_CHECK(text.size() >= had && text.size() <= std::max(had, what.size));
        received(e, std::string_view{text}.substr(had));
        if (!length) {
            check_error(e, true, what, length.error());
            co_return;
        }
        FUZZ_CHECK(*length == text.find('\n') + 1);
        text.erase(0, *length);
    }
    task<> read_lease(unsigned e, call what) {
        if constexpr (is_memory) {
            co_await read_some(e, what);
        } else {
            const bool there = is_there(e);
            const auto lease = co_await limited(streams_[e].receive(), what);
            if (!lease) {
                check_error(e, true, what, lease.error());
                FUZZ_CHECK(lease.error() != errc::deadline_exceeded || !there);
                co_return;
            }
            FUZZ_CHECK(lease->size() != 0);
            received(e, lease->text());
        }
    }

    static task<> write(model& of, unsigned e, call what) {
        const std::string bytes = pattern(of.outgoing(e).accepted, what.size, e);
        std::size_t moved = 0;
        std::error_code error;
        switch (static_cast<writing>(what.kind)) {
        case writing::some: {
            const auto count = co_await limited(of.streams_[e].write_some(bytes), what);
            if (count) moved = *count;
            if (!count) error = count.error();
            FUZZ_CHECK(!count || moved != 0 || bytes.empty());
            break;
        }
        case writing::all: {
            const auto count = co_await limited(async_write_all(of.streams_[e], bytes), what);
            moved = count ? *count : count.error().transferred;
            if (!count) error = count.error().code;
            FUZZ_CHECK(!count || moved == bytes.size());
            break;
        }
        case writing::gathered: {
            const std::string_view all = bytes;
            const std::size_t cut = all.size() / 3;
            const std::array<const_buffer, 3> parts{all.substr(0, cut), std::string_view{},
                                                    all.substr(cut)};
            const auto count = co_await limited(
                async_write_all(of.streams_[e], std::span<const const_buffer>{parts}), what);
            moved = count ? *count : count.error().transferred;
            if (!count) error = count.error().code;
            FUZZ_CHECK(!count || moved == bytes.size());
            break;
        }
        }
        FUZZ_CHECK(moved <= bytes.size());
        queue& to = of.outgoing(e);
        to.accepted += moved;
        to.offered = 0;
        FUZZ_CHECK(to.got <= to.accepted);
        if (error) of.check_error(e, false, what, error);
        of.writers_[e].over = true;
    }

    // --- what must happen without further calls -------------------------------------------------

    /// Everything readable is read, and operations that wait for a closed peer end.
    task<> settle() {
        for (std::size_t round = 0; round < 4; ++round)
            co_await turns(4);
        for (const unsigned e : {0U, 1U}) {
            // Exact reads and delimiters may need more than is available; the end reaches all of
            // them. A busy kernel delivers a reset some milliseconds later, after thousands of
            // turns.
            const auto patience = std::chrono::steady_clock::now() + 10s;
            const auto goes_on = [&](const in_flight& which, bool has_to_end) {
                FUZZ_CHECK(which.over || !has_to_end ||
                           std::chrono::steady_clock::now() < patience);
                return !which.over && has_to_end;
            };
            while (goes_on(readers_[e], incoming(e).ended || readers_[e].stopped || closed_[e]))
                co_await turns(1);
            while (goes_on(writers_[e], writers_[e].stopped || closed_[e] || closed_[1 - e]))
                co_await turns(1);
        }
    }

    task<> finish() {
        for (const unsigned e : {0U, 1U}) {
            stop(readers_[e]);
            stop(writers_[e]);
        }
        for (const unsigned e : {0U, 1U}) {
            if (readers_[e].handle) co_await *readers_[e].handle;
            if (writers_[e].handle) co_await *writers_[e].handle;
        }
        for (const unsigned e : {0U, 1U}) {
            if (!closed_[e]) shut_down(e);
        }
        for (const unsigned e : {0U, 1U}) {
            if (closed_[e] || closed_[1 - e]) continue;
            co_await drain(e);
        }
        for (Stream& each : streams_) {
            // No TIME_WAIT: thousands of inputs would use up the ports.
            if constexpr (is_tcp) static_cast<void>(each.set_linger(0s));
            each.close();
        }
    }

    /// Nothing is lost, whatever was stopped before.
    task<> drain(unsigned e) {
        for (;;) {
            std::string into(4096, '\0');
            const auto count = co_await streams_[e].read_some(into);
            if (!count) {
                FUZZ_CHECK(count.error() == errc::end_of_stream);
                break;
            }
            received(e, std::string_view{into}.substr(0, *count));
        }
        FUZZ_CHECK(incoming(e).got == incoming(e).accepted);
    }

    input from_;
    std::array<Stream, 2> streams_;
    std::array<queue, 2> queues_{};
    std::array<in_flight, 2> readers_;
    std::array<in_flight, 2> writers_;
    std::array<std::string, 2> until_; // read by async_read_until(), not returned yet
    std::array<bool, 2> closed_{};
    std::array<bool, 2> reset_told_{}; // to a read
};

template <class Stream>
task<> play(input from, Stream first, Stream second) {
    model<Stream> plays{from, std::move(first), std::move(second)};
    co_await plays.run();
}

task<> play(input from) {
    const std::uint8_t decision = from.byte();
    switch (decision / 2 % 8) {
    case 0:
    case 1:
    case 2:
    case 3: {
        auto [first, second] = duplex(1 + from.up_to(3000));
        co_await play(from, std::move(first), std::move(second));
        break;
    }
    case 4:
    case 5:
    case 6: {
        auto [first, second] = testing::local_ends({.ours = 2048, .theirs = 2048});
        co_await play(from, testing::make_local_stream(std::move(first)),
                      testing::make_local_stream(std::move(second)));
        break;
    }
    case 7: {
        auto [first, second] = testing::tcp_ends({.ours = 4096, .theirs = 4096});
        co_await play(from, testing::make_tcp_stream(std::move(first)),
                      testing::make_tcp_stream(std::move(second)));
        break;
    }
    }
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet;
    if (size > 1024) return 0;
    const bool uring = size != 0 && data[0] % 2 != 0;
    fuzz::run_on(fuzz::shared_loop(uring ? backend::io_uring : backend::epoll),
                 fuzz::play({data, size}));
    return 0;
}
