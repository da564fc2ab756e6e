// Random trees of tasks are stopped, dropped, torn down and ended by exceptions at random. All of
// them end and no frame is left. Mainly for the sanitizers.
#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>

#include "support/gate.hpp"
#include "support/manual_queue.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <exception>
#include <iterator>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using testing::gate;
using testing::manual_queue;

/// One tree; the seed determines everything it does. Outlives the queue that runs it.
class tree {
public:
    explicit tree(unsigned seed)
        : random_{seed}
        , some_are_stubborn_{below(2) == 0} {}

    void run() {
        manual_queue queue;
        queue.on_unhandled = [](std::exception_ptr) {};
        for (int i = 0; i < 4; ++i)
            handles_.push_back(queue.spawn(node(7)));
        for (unsigned turns = below(80); turns != 0; --turns) {
            queue.turn();
            disturb();
        }
    }

private:
    using outcome = result<int>;

    unsigned below(std::size_t limit) { return static_cast<unsigned>(random_() % limit); }

    gate& new_gate() {
        gates_.emplace_back().deaf = below(6) == 0;
        return gates_.back();
    }

    /// Opens some gates, and sometimes stops or drops a task.
    void disturb() {
        for (int i = 0; i < 3 && !gates_.empty(); ++i)
            std::next(gates_.begin(), below(gates_.size()))->open(1);
        if (handles_.empty() || below(8) != 0) return;
        const auto chosen = handles_.begin() + below(handles_.size());
        if (below(2) == 0) {
            chosen->request_stop();
        } else {
            handles_.erase(chosen);
        }
    }

    task<> silent(int depth) { (void)co_await node(depth); }
    task<result<>> child(int depth) {
        auto ended = co_await node(depth);
        if (!ended) co_return fail(ended);
        co_return {};
    }

    task<outcome> node(int depth) {
        if (--depth < 0 || --nodes_left_ < 0) {
            if (below(2) == 0) co_return co_await new_gate().wait();
            co_await yield();
            co_return 1;
        }
        switch (below(12)) {
        case 0:
            co_return std::get<1>(co_await when_all(node(depth), node(depth)));
        case 1: {
            auto any = co_await when_any(node(depth), shield(node(depth)), new_gate().wait());
            co_return static_cast<int>(any.index);
        }
        case 2: {
            auto all = co_await gather(node(depth), child(depth));
            if (!all) co_return fail(all);
            co_return std::get<0>(*all);
        }
        case 3: {
            std::vector<task<outcome>> tasks;
            for (unsigned i = 1 + below(3); i != 0; --i)
                tasks.push_back(node(depth));
            auto any = co_await when_any(std::move(tasks));
            co_return *any.values[any.index];
        }
        case 4:
            co_return co_await shield(spawn(node(depth)));
        case 5:
            handles_.push_back(spawn(node(depth)));
            co_return 0;
        case 6: {
            if (handles_.empty()) co_return 0;
            auto taken = std::move(handles_.back());
            handles_.pop_back();
            if (below(2) == 0) taken.request_stop();
            co_return co_await taken;
        }
        case 7:
            co_return co_await body_with_group(depth);
        case 8:
            co_return co_await own_group(depth);
        case 9:
            if (below(2) == 0) throw depth;
            co_return co_await node(depth);
        case 10: {
            if (!some_are_stubborn_ || below(4) != 0) co_return co_await node(depth);
            gate& door = new_gate();
            for (;;)
                (void)co_await door.wait();
        }
        default: {
            auto ended = co_await node(depth);
            (void)co_await new_gate().wait();
            co_return ended;
        }
        }
    }

    task<outcome> body_with_group(int depth) {
        const group_options options{.limit = below(3)};
        auto body = [this, depth](task_group& group) -> task<> {
            for (unsigned i = below(5); i != 0; --i) {
                group.spawn(child(depth));
                group.spawn(
                    [this, kept = std::string(50, 'x')](int left) -> task<> {
                        co_await silent(left);
                        EXPECT_EQ(kept.size(), 50U);
                    },
                    depth);
                if (below(3) == 0) co_await yield();
            }
            if (below(4) == 0) group.request_stop();
            if (below(8) == 0) throw depth;
        };
        auto joined = co_await with_group(options, body);
        if (!joined) co_return fail(joined);
        co_return 0;
    }

    /// Younger tasks may own the group, and another task may throw at the same time.
    task<outcome> own_group(int depth) {
        auto group = std::make_shared<task_group>();
        group->spawn(silent(depth));
        auto joiner = spawn([group]() -> task<> { (void)co_await group->join(); });
        group.reset();
        co_await yield();
        co_await joiner;
        co_return co_await node(depth);
    }

    std::mt19937 random_;
    bool some_are_stubborn_;
    int nodes_left_ = 400;
    std::list<gate> gates_;
    std::vector<join_handle<outcome>> handles_;
};

TEST(random_trees_test, leave_no_frame_behind_whatever_happens) {
    const auto frames = detail::live_frames();
    for (unsigned seed = 0; seed < 1000; ++seed) {
        {
            tree{seed}.run();
        }
        ASSERT_EQ(detail::live_frames(), frames) << "seed " << seed;
    }
}

} // namespace
} // namespace simplenet::v0
