#include "runtime/group_dump.hpp"

#include "loop/loop.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace simplenet::v0::detail {

namespace {

using namespace std::chrono_literals;

/// What the loops have answered. Shared, because a blocked loop answers after the caller has left.
struct dump_answers {
    enum class state : std::uint8_t { missing, complete, ended };
    struct answer {
        state how = state::missing;
        std::string text;
    };

    explicit dump_answers(std::size_t loops)
        : by_loop(loops) {}

    void set(std::size_t index, state how, std::string text) noexcept {
        const std::lock_guard lock{guard};
        by_loop[index] = {how, std::move(text)};
        changed.notify_all();
    }

    std::mutex guard;
    std::condition_variable changed;
    std::vector<answer> by_loop;
};

/// Asks one loop, whose end answers, too: then this is destroyed without a call.
class dump_question {
public:
    dump_question(std::shared_ptr<dump_answers> answers, std::size_t index) noexcept
        : answers_{std::move(answers)}
        , index_{index} {}
    dump_question(dump_question&&) noexcept = default;
    dump_question& operator=(dump_question&&) = delete;
    ~dump_question() {
        if (answers_ != nullptr) answers_->set(index_, dump_answers::state::ended, {});
    }

    void operator()() noexcept {
        std::string text;
        try {
            current_loop().describe(text);
        } catch (const std::bad_alloc&) {
            text = "no memory to print its tasks\n";
        }
        std::exchange(answers_, nullptr)
            ->set(index_, dump_answers::state::complete, std::move(text));
    }

private:
    std::shared_ptr<dump_answers> answers_; // null after the answer, or a move
    std::size_t index_;
};

} // namespace

std::string dump_tasks_of(std::span<event_loop> loops) {
    const event_loop* const here = event_loop::current();
    // On a loop, others wait for the end of this turn.
    const auto deadline = std::chrono::steady_clock::now() + (here == nullptr ? 100ms : 10ms);
    const auto answers = std::make_shared<dump_answers>(loops.size());
    for (std::size_t index = 0; index < loops.size(); ++index) {
        dump_question question{answers, index};
        if (&loops[index] == here) {
            question();
        } else {
            loops[index].post(std::move(question));
        }
    }

    std::string text;
    std::unique_lock lock{answers->guard};
    answers->changed.wait_until(lock, deadline, [&] {
        return std::ranges::none_of(answers->by_loop, [](const dump_answers::answer& each) {
            return each.how == dump_answers::state::missing;
        });
    });
    for (std::size_t index = 0; index < loops.size(); ++index) {
        const dump_answers::answer& each = answers->by_loop[index];
        text += "loop " + std::to_string(index) + ": ";
        switch (each.how) {
        case dump_answers::state::missing:
            text += "does not answer; a task blocks it\n";
            break;
        case dump_answers::state::complete:
            text += each.text;
            break;
        case dump_answers::state::ended:
            text += "has ended\n";
            break;
        }
    }
    return text;
}

} // namespace simplenet::v0::detail
