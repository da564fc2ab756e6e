#pragma once
// All of layer coro: tasks, scopes, groups and combinators.

#include <simplenet/coro/combinators.hpp>
#include <simplenet/coro/or_return.hpp>
#include <simplenet/coro/scoped.hpp>
#include <simplenet/coro/spawn.hpp>
#include <simplenet/coro/task.hpp>
#include <simplenet/coro/task_group.hpp>
#include <simplenet/coro/this_task.hpp>
