#include <simplenet/coro/detail/frame_allocator.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace {

// The program's own operator new, so that a test can count blocks and simulate a lack of memory.
constinit std::atomic<std::int64_t> system_blocks{0};   // allocated and not freed
constinit std::atomic<std::int64_t> system_requests{0}; // since the start
constinit thread_local bool out_of_memory = false;

} // namespace

// Not inlined: GCC would match malloc with operator delete, and warn.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    void* const memory = out_of_memory ? nullptr : std::malloc(bytes);
    if (memory == nullptr) throw std::bad_alloc{};
    ++system_blocks;
    ++system_requests;
    return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
    if (memory != nullptr) --system_blocks;
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    ::operator delete(memory);
}

namespace simplenet::v0::detail {
namespace {

using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAreArray;

/// Runs a test in a thread, and so with a cache, of its own, which ends before the test does.
template <class Body>
void on_new_thread(Body body) {
    std::thread{body}.join();
}

std::vector<void*> allocate_frames(std::size_t count, std::size_t bytes) {
    std::vector<void*> frames(count);
    for (void*& frame : frames)
        frame = allocate_frame(bytes);
    return frames;
}

void deallocate_frames(const std::vector<void*>& frames, std::size_t bytes) {
    for (void* frame : frames)
        deallocate_frame(frame, bytes);
}

/// How many frames the list of one thread holds, and a batch, and the depot.
std::size_t held_by_thread(std::size_t bytes) {
    return frame_cache::class_limit_bytes / frame_cache::bytes_of(frame_cache::index_of(bytes));
}
std::size_t batch_of(std::size_t bytes) {
    return std::max<std::size_t>(
        frame_cache::batch_bytes / frame_cache::bytes_of(frame_cache::index_of(bytes)), 1);
}
std::size_t held_by_depot(std::size_t bytes) {
    return 8 * batch_of(bytes);
}

/// Empties the depot of this size, which threads of earlier tests may have filled.
void empty_depot(std::size_t bytes) {
    on_new_thread([bytes] {
        std::vector<void*> frames;
        frames.reserve(held_by_depot(bytes) + 1);
        const auto before = system_requests.load();
        while (system_requests.load() == before)
            frames.push_back(allocate_frame(bytes));
        deallocate_frames(frames, bytes);
    });
}

#define SKIP_UNLESS_RECYCLING()                                                                    \
    if (!recycles_frames) GTEST_SKIP() << "AddressSanitizer builds do not recycle"

TEST(frame_allocator_test, a_freed_frame_is_the_next_one_of_its_class) {
    SKIP_UNLESS_RECYCLING();
    on_new_thread([] {
        void* const first = allocate_frame(200);
        deallocate_frame(first, 200);

        void* const second = allocate_frame(185); // 185 to 216 bytes are one class

        EXPECT_EQ(second, first);
        deallocate_frame(second, 185);
    });
}

TEST(frame_allocator_test, classes_are_32_bytes_apart_and_do_not_mix) {
    SKIP_UNLESS_RECYCLING();
    on_new_thread([] {
        void* const frame = allocate_frame(184);
        deallocate_frame(frame, 184);

        void* const smaller = allocate_frame(152);
        void* const larger = allocate_frame(185);
        void* const same = allocate_frame(153);

        EXPECT_NE(smaller, frame);
        EXPECT_NE(larger, frame);
        EXPECT_EQ(same, frame);
        deallocate_frame(smaller, 152);
        deallocate_frame(larger, 185);
        deallocate_frame(same, 153);
    });
}

TEST(frame_allocator_test, every_size_has_its_bytes_and_the_default_alignment) {
    on_new_thread([] {
        for (int round = 0; round != 2; ++round) { // the second round recycles
            std::vector<std::pair<void*, std::size_t>> frames;
            for (std::size_t bytes = 1; bytes <= 5000; bytes += 7) {
                void* const frame = allocate_frame(bytes);
                EXPECT_EQ(
                    reinterpret_cast<std::uintptr_t>(frame) % __STDCPP_DEFAULT_NEW_ALIGNMENT__, 0U);
                std::memset(frame, 0xa5, bytes);
                frames.emplace_back(frame, bytes);
            }
            for (const auto& [frame, bytes] : frames)
                deallocate_frame(frame, bytes);
        }
        EXPECT_EQ(live_frames(), 0);
    });
}

TEST(frame_allocator_test, a_steady_state_makes_no_system_requests) {
    SKIP_UNLESS_RECYCLING();
    on_new_thread([] {
        for (std::size_t bytes : {64U, 300U, 4096U})
            deallocate_frame(allocate_frame(bytes), bytes);
        const auto before = system_requests.load();

        for (int round = 0; round != 100; ++round)
            for (std::size_t bytes : {64U, 300U, 4096U})
                deallocate_frame(allocate_frame(bytes), bytes);

        EXPECT_EQ(system_requests.load(), before);
    });
}

TEST(frame_allocator_test, frames_above_the_largest_class_go_back_at_once) {
    on_new_thread([] {
        const auto before = system_blocks.load();
        void* const frame = allocate_frame(frame_cache::largest_bytes + 1);
        EXPECT_EQ(system_blocks.load(), before + 1);

        deallocate_frame(frame, frame_cache::largest_bytes + 1);

        EXPECT_EQ(system_blocks.load(), before);
    });
}

TEST(frame_allocator_test, an_empty_frame_is_allowed) {
    on_new_thread([] {
        void* const frame = allocate_frame(0);
        EXPECT_NE(frame, nullptr);
        deallocate_frame(frame, 0);
        EXPECT_EQ(live_frames(), 0);
    });
}

TEST(frame_allocator_test, a_class_holds_256_kibibytes_and_the_depot_64_and_no_more) {
    SKIP_UNLESS_RECYCLING();
    const std::size_t bytes = 1016; // the whole class
    empty_depot(bytes);
    on_new_thread([] {
        const std::size_t held = held_by_thread(bytes) + held_by_depot(bytes);
        const auto before = system_blocks.load();
        {
            const auto frames = allocate_frames(held + 100, bytes);
            deallocate_frames(frames, bytes);
        }
        EXPECT_EQ(system_blocks.load(), before + static_cast<std::int64_t>(held));
        EXPECT_EQ(live_frames(), 0);
    });
    EXPECT_EQ(held_by_thread(bytes) * bytes / 1024, 255U);
    EXPECT_EQ(held_by_depot(bytes) * bytes / 1024, 63U);
    empty_depot(bytes);
}

TEST(frame_allocator_test, a_frame_taken_from_the_cache_fits_into_it_again) {
    SKIP_UNLESS_RECYCLING();
    on_new_thread([] {
        const std::size_t bytes = 4088; // the whole class
        const std::size_t held = std::size_t{256} * 1024 / bytes;
        const auto frames = allocate_frames(held, bytes);
        deallocate_frames(frames, bytes);

        const auto again = allocate_frames(held, bytes);
        EXPECT_THAT(again, UnorderedElementsAreArray(frames));
        const auto before = system_blocks.load();
        deallocate_frames(again, bytes);
        EXPECT_EQ(system_blocks.load(), before);
    });
}

TEST(frame_allocator_test, a_frame_freed_elsewhere_stays_with_the_thread_that_freed_it) {
    SKIP_UNLESS_RECYCLING();
    on_new_thread([] {
        void* const frame = allocate_frame(100);
        EXPECT_EQ(live_frames(), 1);

        on_new_thread([frame] {
            deallocate_frame(frame, 100);
            EXPECT_EQ(live_frames(), -1);

            void* const again = allocate_frame(100);
            EXPECT_EQ(again, frame);
            deallocate_frame(again, 100);
        });

        EXPECT_EQ(live_frames(), 1); // the sum over both threads is 0
    });
}

TEST(frame_allocator_test, a_thread_that_only_frees_does_not_hoard) {
    SKIP_UNLESS_RECYCLING();
    empty_depot(4096);
    on_new_thread([] {
        const auto frames = allocate_frames(1000, 4096);

        on_new_thread([&frames] {
            const auto before = system_blocks.load();
            deallocate_frames(frames, 4096);
            EXPECT_EQ(before - system_blocks.load(), 1000 - 63 - 8);
        });
    });
    empty_depot(4096);
}

TEST(frame_allocator_test, what_a_thread_cannot_keep_goes_to_one_that_has_none) {
    SKIP_UNLESS_RECYCLING();
    empty_depot(100);
    std::vector<void*> frames = allocate_frames(held_by_thread(100) + batch_of(100), 100);

    on_new_thread([&frames] {
        deallocate_frames(frames, 100);

        on_new_thread([&frames] {
            std::vector<void*> taken(batch_of(100));
            const auto before = system_requests.load();
            for (void*& each : taken)
                each = allocate_frame(100);
            EXPECT_EQ(system_requests.load(), before);
            EXPECT_THAT(frames, IsSupersetOf(taken));
            deallocate_frames(taken, 100);
        });
    });
}

TEST(frame_allocator_test, frames_that_always_travel_make_no_system_requests) {
    SKIP_UNLESS_RECYCLING();
    constexpr int rounds = 200, warm_up = 100;
    std::vector<void*> frames(500);
    std::int64_t before = 0;
    std::barrier<> turn{2};
    std::thread allocates{[&] {
        for (int round = 0; round != rounds; ++round) {
            if (round == warm_up) before = system_requests;
            for (void*& each : frames)
                each = allocate_frame(100);
            turn.arrive_and_wait();
            turn.arrive_and_wait();
        }
    }};
    std::thread frees{[&] {
        for (int round = 0; round != rounds; ++round) {
            turn.arrive_and_wait();
            deallocate_frames(frames, 100);
            turn.arrive_and_wait();
        }
    }};
    allocates.join();
    frees.join();

    EXPECT_EQ(system_requests.load(), before);
    empty_depot(100);
}

// As a program with AddressSanitizer does whose library is built without.
TEST(frame_allocator_test, callers_that_pass_by_the_lists_leave_them_as_they_are) {
    SKIP_UNLESS_RECYCLING();
    empty_depot(100);
    on_new_thread([] { // leaves a batch in the depot
        deallocate_frames(allocate_frames(held_by_thread(100) + 1, 100), 100);
    });
    const auto before = system_blocks.load();
    on_new_thread([] {
        deallocate_frame(allocate_frame(100), 100); // the list holds a batch now
        std::vector<void*> frames(10 * batch_of(100));
        const auto blocks = system_blocks.load();
        for (void*& each : frames)
            each = allocate_recycled_cold(100);
        for (void* const each : frames)
            deallocate_recycled_cold(each, 100);
        EXPECT_EQ(system_blocks.load(), blocks);

        const auto requests = system_requests.load();
        frames.resize(batch_of(100));
        for (void*& each : frames)
            each = allocate_frame(100);
        EXPECT_EQ(system_requests.load(), requests) << "the batch is still there";
        deallocate_frames(frames, 100);
    });
    EXPECT_EQ(before - system_blocks.load(), static_cast<std::int64_t>(batch_of(100)));
}

TEST(frame_allocator_test, many_threads_pass_frames_on_and_lose_none) {
    constexpr std::size_t threads = 4, rounds = 200, many = 400;
    std::array<std::vector<void*>, threads> passed;
    for (auto& each : passed)
        each.resize(many);
    std::barrier<> turn{threads};
    std::vector<std::jthread> workers;
    for (std::size_t own = 0; own != threads; ++own) {
        workers.emplace_back([&, own] {
            for (std::size_t round = 0; round != rounds; ++round) {
                for (void*& each : passed[own]) {
                    each = allocate_frame(200);
                    std::memset(each, static_cast<int>(own), 200);
                }
                turn.arrive_and_wait();
                const std::size_t from = (own + round) % threads;
                for (void* const each : passed[from]) {
                    EXPECT_EQ(static_cast<unsigned char*>(each)[199], from);
                    deallocate_frame(each, 200);
                }
                turn.arrive_and_wait();
            }
        });
    }
    workers.clear();

    if (recycles_frames) empty_depot(200);
}

TEST(frame_allocator_test, the_end_of_a_thread_gives_its_frames_back) {
    const auto before = system_blocks.load();

    on_new_thread([] {
        for (std::size_t bytes = 24; bytes <= 4120; bytes += 32)
            deallocate_frames(allocate_frames(20, bytes), bytes);
    });

    EXPECT_EQ(system_blocks.load(), before);
}

/// Frees its frame when its thread ends, after everything constructed later has been destroyed.
struct late_owner {
    void* frame = nullptr;
    ~late_owner() {
        deallocate_frame(frame, 300);
        deallocate_frame(allocate_frame(300), 300);
    }
};
thread_local late_owner late;

TEST(frame_allocator_test, frames_freed_after_the_cache_was_emptied_go_back_too) {
    const auto before = system_blocks.load();

    on_new_thread([] {
        late.frame = allocate_frame(300); // constructed first, so destroyed last
        deallocate_frame(allocate_frame(300), 300);
    });

    EXPECT_EQ(system_blocks.load(), before);
}

TEST(frame_allocator_test, running_out_of_memory_throws_and_counts_nothing) {
    on_new_thread([] {
        const auto live = live_frames();
        bool thrown = false;

        out_of_memory = true;
        try {
            static_cast<void>(allocate_frame(500));
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        out_of_memory = false;

        EXPECT_TRUE(thrown);
        EXPECT_EQ(live_frames(), live);
    });
}

TEST(frame_allocator_test, cached_frames_are_available_when_the_system_has_no_memory) {
    SKIP_UNLESS_RECYCLING();
    on_new_thread([] {
        deallocate_frame(allocate_frame(500), 500);

        out_of_memory = true;
        deallocate_frame(allocate_frame(500), 500);
        out_of_memory = false;
    });
}

TEST(frame_allocator_test, live_frames_counts_those_of_every_size) {
    on_new_thread([] {
        const auto small = allocate_frames(3, 64);
        const auto large = allocate_frames(2, 9000);
        EXPECT_EQ(live_frames(), 5);

        deallocate_frames(small, 64);
        EXPECT_EQ(live_frames(), 2);
        deallocate_frames(large, 9000);
        EXPECT_EQ(live_frames(), 0);
    });
}

struct coroutine {
    struct promise_type : recycled {
        coroutine get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
    std::coroutine_handle<promise_type> handle;
};

coroutine nothing() {
    co_return;
}

TEST(frame_allocator_test, a_coroutine_whose_promise_is_recycled_uses_it) {
    on_new_thread([] {
        const coroutine one = nothing();
        EXPECT_EQ(live_frames(), 1);
        one.handle.resume();
        one.handle.destroy();
        EXPECT_EQ(live_frames(), 0);

        const coroutine two = nothing();
        if (recycles_frames) {
            EXPECT_EQ(two.handle.address(), one.handle.address());
        }
        two.handle.destroy();
    });
}

struct base : recycled {
    virtual ~base() = default;
};
struct derived : base {
    std::byte more[500];
};

TEST(frame_allocator_test, recycled_objects_can_be_deleted_through_a_virtual_destructor) {
    SKIP_UNLESS_RECYCLING();
    on_new_thread([] {
        base* const first = new derived;
        void* const address = first;
        delete first;

        base* const second = new derived;
        EXPECT_EQ(static_cast<void*>(second), address);
        delete second;
        EXPECT_EQ(live_frames(), 0);
    });
}

struct message : recycled_message {
    std::byte content[500];
};
struct alignas(128) aligned_message : recycled_message {
    std::byte content[500];
};

TEST(frame_allocator_test, messages_are_recycled_and_do_not_count_as_frames) {
    on_new_thread([] {
        auto* const first = new message;
        void* const address = first;
        EXPECT_EQ(live_frames(), 0);
        delete first;

        auto* const second = new message;
        if (recycles_frames) {
            EXPECT_EQ(static_cast<void*>(second), address);
        }
        delete second;
        EXPECT_EQ(live_frames(), 0);
    });
}

TEST(frame_allocator_test, a_message_may_need_a_larger_alignment) {
    const auto* const aligned = new aligned_message;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 128, 0U);
    delete aligned;
}

} // namespace
} // namespace simplenet::v0::detail
