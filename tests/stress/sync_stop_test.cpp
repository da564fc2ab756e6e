#include "support/coroutines.hpp"
#include "support/stop_everywhere.hpp"

#include <simplenet/simplenet.hpp>

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace simplenet::v0 {
namespace {

using namespace std::chrono_literals;
using testing::all_backends;
using testing::backend_name;
using testing::scenario;
using testing::turns;

class sync_stop_test : public testing::stop_everywhere_test {};

class locking : public scenario {
    task<> subject() override {
        for (int left = 3; left > 0; --left) {
            auto held = co_await mutex_.lock();
            expect_success_or_stop(held);
            if (!held) co_return;
            EXPECT_FALSE(std::exchange(inside_, true));
            co_await yield();
            inside_ = false;
        }
    }
    task<> partner() override {
        for (;;) {
            auto held = co_await mutex_.lock();
            if (!held) co_return;
            EXPECT_FALSE(std::exchange(inside_, true));
            co_await turns(2);
            inside_ = false;
        }
    }
    task<> verify() override {
        EXPECT_FALSE(mutex_.locked()) << "it is locked although no task holds it";
        EXPECT_TRUE(co_await mutex_.lock());
    }

    async_mutex mutex_;
    bool inside_ = false;
};
TEST_P(sync_stop_test, mutex) {
    stop_everywhere<locking>();
}

class acquiring : public scenario {
    task<> take_turns(int rounds, bool stoppable) {
        for (; rounds != 0; --rounds) {
            const auto acquired = co_await semaphore_.acquire();
            if (stoppable) expect_success_or_stop(acquired);
            if (!acquired) co_return;
            co_await turns(2);
            semaphore_.release();
        }
    }
    task<> subject() override { co_await take_turns(3, true); }
    task<> partner() override { co_await when_all(take_turns(-1, false), take_turns(-1, false)); }
    task<> verify() override {
        EXPECT_EQ(semaphore_.available(), 2U) << "a permit was lost or duplicated";
        co_return;
    }

    async_semaphore semaphore_{2};
};
TEST_P(sync_stop_test, semaphore) {
    stop_everywhere<acquiring>();
}

class waiting_for_an_event : public scenario {
    task<> subject() override {
        for (int left = 3; left > 0; --left) {
            const auto came = co_await event_.wait();
            expect_success_or_stop(came);
            if (!came) co_return;
            event_.reset();
        }
    }
    task<> partner() override {
        for (;;) {
            co_await turns(2);
            const bool stop = co_await this_task::stop_requested(); // named: docs/usage/gcc-12.md
            if (stop) co_return;
            event_.set();
        }
    }

    async_event event_;
};
TEST_P(sync_stop_test, event) {
    stop_everywhere<waiting_for_an_event>();
}

class waiting_for_a_condition : public scenario {
    task<> subject() override {
        for (int left = 3; left > 0; --left) {
            auto held = co_await mutex_.lock();
            expect_success_or_stop(held);
            if (!held) co_return;
            const auto waited = co_await changed_.wait(*held, [this] { return waiting_ > 0; });
            expect_success_or_stop(waited);
            EXPECT_TRUE(held->owns_lock()) << "the mutex is held again in every case";
            if (waited) {
                EXPECT_GT(waiting_, 0);
                --waiting_;
                ++taken_;
            }
        }
    }
    task<> partner() override {
        for (; made_ < 5; ++made_) {
            co_await turns(3);
            auto held = co_await shield(mutex_.lock());
            if (!held) co_return;
            ++waiting_;
            changed_.notify_one();
        }
    }
    task<> verify() override {
        EXPECT_EQ(waiting_ + taken_, made_);
        EXPECT_FALSE(mutex_.locked());
        co_return;
    }

    async_mutex mutex_;
    async_condition_variable changed_;
    int waiting_ = 0;
    int taken_ = 0;
    int made_ = 0;
};
TEST_P(sync_stop_test, condition_variable) {
    stop_everywhere<waiting_for_a_condition>();
}

constexpr int numbers = 6;

/// Each number arrives once and in order, whichever task was stopped.
class channel_scenario : public scenario {
public:
    explicit channel_scenario(std::size_t capacity)
        : channel_{capacity} {}

    task<> verify() override {
        while (auto rest = channel_.try_receive())
            received_.push_back(**rest);
        std::vector<int> all(static_cast<std::size_t>(sent_));
        for (int each = 0; each < sent_; ++each)
            all[static_cast<std::size_t>(each)] = each;
        EXPECT_EQ(received_, all) << "a value was lost, duplicated or reordered";
        co_return;
    }

protected:
    task<> send_all(bool stoppable) {
        for (int each = 0; each < numbers; ++each) {
            auto value = std::make_unique<int>(each);
            const auto sent = co_await channel_.send_from(value);
            if (stoppable) expect_success_or_stop(sent);
            if (!sent) {
                EXPECT_TRUE(value) << "a value that was not sent belongs to the sender";
                co_return;
            }
            ++sent_;
            co_await turns(1);
        }
    }
    task<> receive_all(bool stoppable) {
        while (received_.size() < numbers) {
            auto value = co_await channel_.receive();
            if (stoppable) expect_success_or_stop(value);
            if (!value) co_return;
            received_.push_back(**value);
            co_await turns(2);
        }
    }

    channel<std::unique_ptr<int>> channel_;
    std::vector<int> received_;
    int sent_ = 0;
};

template <std::size_t capacity>
class sending_to_channel : public channel_scenario {
public:
    sending_to_channel()
        : channel_scenario{capacity} {}

private:
    task<> subject() override { co_await send_all(true); }
    task<> partner() override { co_await receive_all(false); }
};
TEST_P(sync_stop_test, send_to_a_channel) {
    stop_everywhere<sending_to_channel<2>>();
}
TEST_P(sync_stop_test, send_to_a_full_channel) {
    stop_everywhere<sending_to_channel<0>>();
}

template <std::size_t capacity>
class receiving_from_channel : public channel_scenario {
public:
    receiving_from_channel()
        : channel_scenario{capacity} {}

private:
    task<> subject() override { co_await receive_all(true); }
    task<> partner() override { co_await send_all(false); }
};
TEST_P(sync_stop_test, receive_from_a_channel) {
    stop_everywhere<receiving_from_channel<2>>();
}
TEST_P(sync_stop_test, receive_from_a_channel_without_room) {
    stop_everywhere<receiving_from_channel<0>>();
}

class one_answer : public scenario {
    task<> subject() override {
        auto answer = co_await oneshot_.receive();
        expect_success_or_stop(answer);
        if (answer) got_ = true;
    }
    task<> partner() override {
        auto sender = oneshot_.make_sender();
        co_await turns(3);
        sent_ = static_cast<bool>(sender.send(std::make_unique<int>(1)));
    }
    task<> verify() override {
        if (sent_ && !got_) {
            const auto late = co_await oneshot_.receive();
            EXPECT_TRUE(late) << "the value was lost to the stop";
        }
    }

    oneshot<std::unique_ptr<int>> oneshot_;
    bool got_ = false;
    bool sent_ = false;
};
TEST_P(sync_stop_test, oneshot) {
    stop_everywhere<one_answer>();
}

class across_threads : public scenario {
    task<> subject() override {
        while (received_.size() < numbers) {
            auto value = co_await channel_.receive();
            expect_success_or_stop(value);
            if (!value) co_return;
            received_.push_back(**value);
        }
    }
    task<> partner() override {
        for (; sent_ < numbers; ++sent_) {
            co_await turns(2);
            auto value = std::make_unique<int>(sent_);
            const auto taken = co_await channel_.send_from(value);
            if (!taken) co_return;
        }
    }
    task<> verify() override {
        while (auto rest = channel_.try_receive())
            received_.push_back(**rest);
        EXPECT_EQ(received_.size(), static_cast<std::size_t>(sent_));
        co_return;
    }

    cross_channel<std::unique_ptr<int>> channel_{1};
    std::vector<int> received_;
    int sent_ = 0;
};
TEST_P(sync_stop_test, cross_channel) {
    stop_everywhere<across_threads>();
}

class listening : public scenario {
    task<> subject() override {
        while (received_ + receiver_.missed() < numbers) {
            auto value = co_await receiver_.receive();
            if (!value && value.error() == errc::queue_full) continue;
            expect_success_or_stop(value);
            if (!value) co_return;
            ++received_;
        }
    }
    task<> partner() override {
        for (; sent_ < numbers; ++sent_) {
            co_await turns(2);
            const bool stop = co_await this_task::stop_requested(); // named: docs/usage/gcc-12.md
            if (stop) co_return;
            sending_.send(std::make_shared<int>(1));
        }
    }
    task<> verify() override {
        for (;;) {
            auto rest = receiver_.try_receive();
            if (rest) ++received_;
            if (!rest && rest.error() != errc::queue_full) break;
        }
        EXPECT_EQ(received_ + receiver_.missed(), sent_);
        co_return;
    }

    broadcast<std::shared_ptr<int>> sending_{2};
    broadcast<std::shared_ptr<int>>::receiver receiver_ = sending_.subscribe();
    std::uint64_t received_ = 0;
    std::uint64_t sent_ = 0;
};
TEST_P(sync_stop_test, broadcast) {
    stop_everywhere<listening>();
}

class watching : public scenario {
    task<> subject() override {
        while (seen_ < numbers) {
            const auto changed = co_await receiver_.changed();
            expect_success_or_stop(changed);
            if (!changed) co_return;
            seen_ = receiver_.get();
        }
    }
    task<> partner() override {
        for (; set_ < numbers; ++set_) {
            co_await turns(2);
            const bool stop = co_await this_task::stop_requested(); // named: docs/usage/gcc-12.md
            if (stop) co_return;
            number_.set(set_ + 1);
        }
    }
    task<> verify() override {
        EXPECT_EQ(receiver_.has_changed(), seen_ != set_);
        EXPECT_EQ(receiver_.get(), set_);
        co_return;
    }

    watch<int> number_{0};
    watch<int>::receiver receiver_ = number_.subscribe();
    int seen_ = 0;
    int set_ = 0;
};
TEST_P(sync_stop_test, watch) {
    stop_everywhere<watching>();
}

INSTANTIATE_TEST_SUITE_P(all, sync_stop_test, all_backends, backend_name);

} // namespace
} // namespace simplenet::v0
