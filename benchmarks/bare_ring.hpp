#pragma once
// What the servers with io_uring and without a library share: multishot accept and receive, a ring
// of provided buffers, plain descriptors; one io_uring_enter per turn. Things that make our server
// fast but are not the library's merit are here too, so that only the library differs: the flags of
// the ring, its registered descriptor, no I/O wait, and only as many buffers as are needed at a
// time, which stay in the processor's cache.

#include "server_options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include <liburing.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bench {

class bare_ring {
public:
    static constexpr unsigned buffer_count = 4096; // at most

    /// @param buffer  The bytes of one.
    bare_ring(int listener, std::size_t buffer)
        : listener_{listener}
        , buffer_{buffer}
        , memory_{std::make_unique_for_overwrite<char[]>(buffer * buffer_count)} {
        io_uring_params parameters{};
        parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                           IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                           IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE;
        parameters.cq_entries = 8192;
        check(io_uring_queue_init_params(1024, &ring_, &parameters), "io_uring_setup");
        no_iowait_ = (parameters.features & feature_no_iowait) != 0 ? enter_no_iowait : 0;
        io_uring_register_ring_fd(&ring_); // may fail
        void* place = nullptr;
        if (::posix_memalign(&place, 4096, buffer_count * sizeof(io_uring_buf)) != 0) std::abort();
        buffers_ = static_cast<io_uring_buf_ring*>(place);
        io_uring_buf_reg registration{};
        registration.ring_addr = reinterpret_cast<std::uint64_t>(buffers_);
        registration.ring_entries = buffer_count;
        check(io_uring_register_buf_ring(&ring_, &registration, 0), "io_uring_register_buf_ring");
        io_uring_buf_ring_init(buffers_);
        provide_more();
        publish();
        arm_accept();
    }

    /// Reports what arrives there.
    void arm_receive(int fd) {
        io_uring_sqe* const to = entry();
        io_uring_prep_recv_multishot(to, fd, nullptr, 0, 0);
        to->flags |= IOSQE_BUFFER_SELECT;
        to->buf_group = 0;
        to->user_data = static_cast<std::uint64_t>(fd);
    }
    void wait_writable(int fd) {
        io_uring_sqe* const to = entry();
        io_uring_prep_poll_add(to, fd, POLLOUT);
        to->user_data = writable_flag | static_cast<std::uint64_t>(fd);
    }

    /// For ever. `server` has `received(fd, bytes)`, `writable(fd)` after wait_writable(), and
    /// `ended(fd)`, after which the descriptor is closed.
    template <class Server>
    [[noreturn]] void run(Server& server) {
        while (true) {
            submit_and_wait();
            unsigned head = 0;
            unsigned taken = 0;
            io_uring_cqe* each = nullptr;
            io_uring_for_each_cqe(&ring_, head, each) {
                ++taken;
                handle(server, *each);
            }
            io_uring_cq_advance(&ring_, taken);
            publish();
        }
    }

private:
    static constexpr unsigned buffers_at_a_time = 64;
    static constexpr unsigned enter_no_iowait = 1U << 7;    // Linux 6.15, IORING_ENTER_NO_IOWAIT
    static constexpr unsigned feature_no_iowait = 1U << 17; // Linux 6.15, IORING_FEAT_NO_IOWAIT
    static constexpr std::uint64_t accept_tag = ~std::uint64_t{0};
    static constexpr std::uint64_t writable_flag = std::uint64_t{1} << 32;

    static void check(int result, const char* what) {
        if (result >= 0) return;
        std::fprintf(stderr, "%s: %s\n", what, std::strerror(-result));
        std::exit(1);
    }

    template <class Server>
    void handle(Server& server, const io_uring_cqe& done) {
        if (done.user_data == accept_tag) {
            if (done.res >= 0) {
                bench::set_no_delay(done.res);
                arm_receive(done.res);
            }
            if ((done.flags & IORING_CQE_F_MORE) == 0) arm_accept();
            return;
        }
        const int fd = static_cast<int>(done.user_data & 0xffffffff);
        if ((done.user_data & writable_flag) != 0) {
            server.writable(fd);
            return;
        }
        if (done.res == -ENOBUFS) {
            provide_more();
            publish(); // before the kernel sees the receive
            arm_receive(fd);
            return;
        }
        if (done.res <= 0) {
            server.ended(fd);
            ::close(fd);
            return;
        }
        const unsigned which = done.flags >> IORING_CQE_BUFFER_SHIFT;
        server.received(fd, std::string_view{memory_.get() + which * buffer_,
                                             static_cast<std::size_t>(done.res)});
        give_back(which);
        if ((done.flags & IORING_CQE_F_MORE) == 0) arm_receive(fd);
    }

    io_uring_sqe* entry() {
        io_uring_sqe* found = io_uring_get_sqe(&ring_);
        if (found == nullptr) {
            io_uring_submit(&ring_);
            found = io_uring_get_sqe(&ring_);
        }
        return found;
    }
    void arm_accept() {
        io_uring_sqe* const to = entry();
        io_uring_prep_multishot_accept(to, listener_, nullptr, nullptr, SOCK_CLOEXEC);
        to->user_data = accept_tag;
    }
    /// io_uring_submit_and_wait() of liburing before 2.10 has no flag against I/O wait.
    void submit_and_wait() {
        io_uring_sq& queue = ring_.sq;
        queue.sqe_head = queue.sqe_tail;
        io_uring_smp_store_release(queue.ktail, queue.sqe_tail);
        const unsigned to_submit = queue.sqe_tail - io_uring_smp_load_acquire(queue.khead);
        unsigned flags = IORING_ENTER_GETEVENTS | no_iowait_;
        if (ring_.enter_ring_fd != ring_.ring_fd) flags |= IORING_ENTER_REGISTERED_RING;
        ::syscall(__NR_io_uring_enter, ring_.enter_ring_fd, to_submit, 1, flags, nullptr, 0);
    }
    void provide_more() {
        const unsigned until = std::min(provided_ + buffers_at_a_time, buffer_count);
        while (provided_ < until)
            give_back(provided_++);
    }
    void give_back(unsigned which) {
        io_uring_buf_ring_add(buffers_, memory_.get() + which * buffer_,
                              static_cast<unsigned>(buffer_), static_cast<unsigned short>(which),
                              int{buffer_count} - 1, returned_++);
    }
    void publish() {
        io_uring_buf_ring_advance(buffers_, returned_);
        returned_ = 0;
    }

    int listener_;
    std::size_t buffer_;
    std::unique_ptr<char[]> memory_;
    unsigned provided_ = 0; // of the buffers in memory_
    unsigned no_iowait_ = 0;
    io_uring ring_{};
    io_uring_buf_ring* buffers_ = nullptr;
    int returned_ = 0;
};

} // namespace bench
