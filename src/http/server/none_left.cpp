#include "http/server/none_left.hpp"

#include <simplenet/coro/task.hpp>

#include <utility>

namespace simplenet::v0::http::detail {

namespace {

task<result<unsigned>> none_left_later(now_or_task<result<>> answer) {
    const result<> taken = co_await std::move(answer);
    if (!taken) co_return fail(taken);
    co_return 0U;
}

} // namespace

now_or_task<result<unsigned>> none_left(now_or_task<result<>> answer) {
    const result<>* const taken = answer.now();
    if (taken == nullptr) return none_left_later(std::move(answer));
    if (!*taken) return result<unsigned>{fail(*taken)};
    return result<unsigned>{0U};
}

} // namespace simplenet::v0::http::detail
