// Tries alternatives that io_uring offers, without the library: an echo server whose parts are
// options, for the experiments of docs/development/performance-findings.md. In addition to the
// options of all servers (server_options.hpp):
//
//   --receive multishot|copy|oneshot   a ring of buffers; the same with a copy; into own memory
//   --send direct|entry|adaptive       send(2); an entry; an entry if more than 2 are to be sent
//   --more none|again|batch            completions that only another enter brings (20 a pass since
//                                      Linux 6.13): leave them to the next turn; enter until there
//                                      are none; one enter for 256 of them with no time to wait
//   --min-wait US   gather that long before continuing with one completion (Linux 6.12)
//   --buffers N     a power of two    --incremental   one buffer serves many (Linux 6.12)

#include "server_options.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <liburing.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// Newer than the headers of liburing 2.3.
constexpr std::uint16_t ring_is_incremental = 2; // IOU_PBUF_RING_INC
constexpr unsigned buffer_has_more = 1U << 4;    // IORING_CQE_F_BUF_MORE

// The argument of an enter, with the field that its padding became.
struct wait_argument {
    std::uint64_t signals = 0;
    std::uint32_t signals_size = _NSIG / 8;
    std::uint32_t min_wait_us = 0;
    std::uint64_t limit = 0;
};

enum class receiving { multishot, copying, oneshot };
enum class sending { direct, entry, adaptive };
enum class draining { none, again, batch };

struct settings {
    receiving receive = receiving::multishot;
    sending send = sending::direct;
    draining more = draining::none;
    unsigned min_wait_us = 0;
    unsigned buffers = 4096;
    bool incremental = false;
};

// user_data: the subject in the bits above the descriptor and the buffer.
enum class subject : std::uint64_t { accept, receive, send };

std::uint64_t tagged(subject about, int fd, unsigned buffer = 0) {
    return static_cast<std::uint64_t>(about) << 60 | std::uint64_t{buffer} << 32 |
           static_cast<std::uint32_t>(fd);
}

class server {
public:
    server(int listener, std::size_t buffer, const settings& how)
        : how_{how}
        , listener_{listener}
        , buffer_{buffer}
        , used_(how.buffers) {
        io_uring_params parameters{};
        parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                           IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CQSIZE;
        parameters.cq_entries = 8192;
        check(io_uring_queue_init_params(4096, &ring_, &parameters), "io_uring_setup");
        memory_ = static_cast<char*>(map(buffer * how.buffers));
        if (how.receive == receiving::oneshot) {
            accept();
            return;
        }
        buffers_ = static_cast<io_uring_buf_ring*>(map(how.buffers * sizeof(io_uring_buf)));
        io_uring_buf_reg registration{};
        registration.ring_addr = reinterpret_cast<std::uint64_t>(buffers_);
        registration.ring_entries = how.buffers;
        registration.pad = how.incremental ? ring_is_incremental : 0;
        check(io_uring_register_buf_ring(&ring_, &registration, 0), "io_uring_register_buf_ring");
        io_uring_buf_ring_init(buffers_);
        for (unsigned at = 0; at < how.buffers; ++at)
            give_back(at);
        accept();
    }

    [[noreturn]] void run() {
        while (true) {
            publish();
            enter(1, how_.min_wait_us);
            handle_all();
            if (how_.more == draining::none || !has_more()) continue;
            if (how_.more == draining::batch) {
                publish();
                enter(256, 0, true);
                handle_all();
            }
            while (how_.more == draining::again && has_more()) {
                publish();
                enter(0, 0);
                handle_all();
            }
        }
    }

private:
    static void check(int result, const char* what) {
        if (result >= 0) return;
        std::fprintf(stderr, "%s: %s\n", what, std::strerror(-result));
        std::exit(1);
    }
    static void* map(std::size_t bytes) {
        void* const place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (place == MAP_FAILED) std::abort();
        return place;
    }

    [[nodiscard]] bool has_more() const {
        return (IO_URING_READ_ONCE(*ring_.sq.kflags) & IORING_SQ_TASKRUN) != 0;
    }

    void enter(unsigned wait_for, unsigned min_wait_us, bool no_time = false) {
        const unsigned count = io_uring_sq_ready(&ring_) == 0 ? 0 : flush();
        wait_argument argument;
        __kernel_timespec limit{};
        unsigned flags = IORING_ENTER_GETEVENTS;
        if (min_wait_us != 0 || no_time) {
            flags |= IORING_ENTER_EXT_ARG;
            argument.min_wait_us = min_wait_us;
            if (min_wait_us != 0) {
                wait_for = 256;
                limit.tv_sec = 3600; // the shorter wait needs a longer one
            }
            argument.limit = reinterpret_cast<std::uint64_t>(&limit);
        }
        const bool extended = (flags & IORING_ENTER_EXT_ARG) != 0;
        const long outcome =
            ::syscall(__NR_io_uring_enter, ring_.ring_fd, count, wait_for, flags,
                      extended ? &argument : nullptr, extended ? sizeof argument : 0);
        if (outcome < 0 && errno != ETIME && errno != EINTR) check(-errno, "io_uring_enter");
    }
    unsigned flush() {
        io_uring_sq& queue = ring_.sq;
        queue.sqe_head = queue.sqe_tail;
        io_uring_smp_store_release(queue.ktail, queue.sqe_tail);
        return queue.sqe_tail - io_uring_smp_load_acquire(queue.khead);
    }

    void handle_all() {
        unsigned head = 0;
        unsigned taken = 0;
        io_uring_cqe* each = nullptr;
        batch_ = io_uring_cq_ready(&ring_);
        io_uring_for_each_cqe(&ring_, head, each) {
            ++taken;
            handle(*each);
        }
        io_uring_cq_advance(&ring_, taken);
    }

    void handle(const io_uring_cqe& done) {
        const int fd = static_cast<int>(done.user_data & 0xffffffff);
        switch (static_cast<subject>(done.user_data >> 60)) {
        case subject::accept:
            if (done.res >= 0) {
                bench::set_no_delay(done.res);
                receive(done.res);
            }
            if ((done.flags & IORING_CQE_F_MORE) == 0) accept();
            return;
        case subject::send:
            if (how_.receive != receiving::oneshot) give_back(buffer_of(done));
            return;
        case subject::receive:
            if (done.res == -ENOBUFS) return receive(fd);
            if (done.res <= 0) {
                ::close(fd);
                return;
            }
            received(fd, done);
        }
    }
    static unsigned buffer_of(const io_uring_cqe& done) {
        return static_cast<unsigned>(done.user_data >> 32) & 0xffff;
    }

    void received(int fd, const io_uring_cqe& done) {
        const auto size = static_cast<std::size_t>(done.res);
        if (how_.receive == receiving::oneshot) {
            send(fd, own(fd), size, 0);
            return receive(fd);
        }
        const unsigned which = done.flags >> IORING_CQE_BUFFER_SHIFT;
        char* bytes = memory_ + which * buffer_ + used_[which];
        bool free = true;
        if (how_.incremental) {
            used_[which] += size;
            free = (done.flags & buffer_has_more) == 0;
        }
        if (how_.receive == receiving::copying)
            bytes = static_cast<char*>(std::memcpy(own(fd), bytes, size));
        const bool sent = send(fd, bytes, size, which);
        if (sent && free) give_back(which);
        if ((done.flags & IORING_CQE_F_MORE) == 0) receive(fd);
    }

    /// True: the bytes are not needed any more.
    bool send(int fd, const char* bytes, std::size_t size, unsigned which) {
        if (how_.send == sending::direct || (how_.send == sending::adaptive && batch_ <= 2)) {
            // A benchmark client reads everything it asked for.
            if (::send(fd, bytes, size, MSG_NOSIGNAL) < 0) return true;
            return true;
        }
        io_uring_sqe* const to = entry();
        io_uring_prep_send(to, fd, bytes, size, MSG_NOSIGNAL | MSG_WAITALL);
        to->user_data = tagged(subject::send, fd, which);
        return false;
    }

    char* own(int fd) {
        const auto at = static_cast<std::size_t>(fd);
        if (at >= own_.size()) own_.resize(at + 1);
        if (own_[at].empty()) own_[at].resize(buffer_);
        return own_[at].data();
    }

    io_uring_sqe* entry() {
        io_uring_sqe* found = io_uring_get_sqe(&ring_);
        if (found == nullptr) {
            io_uring_submit(&ring_);
            found = io_uring_get_sqe(&ring_);
        }
        return found;
    }
    void accept() {
        io_uring_sqe* const to = entry();
        io_uring_prep_multishot_accept(to, listener_, nullptr, nullptr, SOCK_CLOEXEC);
        to->user_data = tagged(subject::accept, 0);
    }
    void receive(int fd) {
        io_uring_sqe* const to = entry();
        if (how_.receive == receiving::oneshot) {
            io_uring_prep_recv(to, fd, own(fd), buffer_, 0);
        } else {
            io_uring_prep_recv_multishot(to, fd, nullptr, 0, 0);
            to->flags |= IOSQE_BUFFER_SELECT;
            to->buf_group = 0;
        }
        to->user_data = tagged(subject::receive, fd);
    }
    void give_back(unsigned which) {
        used_[which] = 0;
        io_uring_buf_ring_add(buffers_, memory_ + which * buffer_, static_cast<unsigned>(buffer_),
                              static_cast<unsigned short>(which),
                              static_cast<int>(how_.buffers) - 1, returned_++);
    }
    void publish() {
        if (returned_ == 0) return;
        io_uring_buf_ring_advance(buffers_, returned_);
        returned_ = 0;
    }

    settings how_;
    int listener_;
    std::size_t buffer_;
    char* memory_ = nullptr;
    std::vector<std::size_t> used_;      // bytes of each buffer, if incremental
    std::vector<std::vector<char>> own_; // by descriptor
    io_uring ring_{};
    io_uring_buf_ring* buffers_ = nullptr;
    int returned_ = 0;
    unsigned batch_ = 0; // completions in this turn
};

template <class Kind>
Kind one_of(bench::arguments& given, const char* option,
            std::initializer_list<std::pair<std::string_view, Kind>> kinds) {
    const std::string_view wanted = given.text(option, kinds.begin()->first);
    for (const auto& [name, kind] : kinds) {
        if (name == wanted) return kind;
    }
    bench::server_options::unknown(option, wanted);
}

} // namespace

int main(int argc, char** argv) {
    bench::arguments given{argc, argv};
    const auto common = bench::server_options::read(given, "io_uring", {"echo"});
    settings how;
    how.receive = one_of<receiving>(given, "receive",
                                    {{"multishot", receiving::multishot},
                                     {"copy", receiving::copying},
                                     {"oneshot", receiving::oneshot}});
    how.send = one_of<sending>(
        given, "send",
        {{"direct", sending::direct}, {"entry", sending::entry}, {"adaptive", sending::adaptive}});
    how.more = one_of<draining>(
        given, "more",
        {{"none", draining::none}, {"again", draining::again}, {"batch", draining::batch}});
    how.min_wait_us = static_cast<unsigned>(given.number("min-wait", 0));
    how.buffers = static_cast<unsigned>(given.number("buffers", 4096));
    how.incremental = given.flag("incremental");
    given.done();
    server{bench::listen_on_loopback(common.port, 0), common.buffer, how}.run();
}
