#pragma once
// called: what the handlers of a test were called with, for threads that wait for it.

#include <simplenet/callbacks/connection.hpp>

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace simplenet::v0::testing {

class called {
public:
    void up(const callbacks::connection_ptr& connection) {
        const std::lock_guard locked{mutex_};
        connections_.push_back(connection);
    }
    void down(const callbacks::connection_ptr& connection) {
        const std::lock_guard locked{mutex_};
        ++downs_;
        error_ = connection->error();
    }
    /// As on_connection. Calls `when_up(connection)`, too, for each connection that begins.
    template <class Function>
    auto counter(Function when_up) {
        return [this, when_up](const callbacks::connection_ptr& connection) {
            if (!connection->is_connected()) return down(connection);
            up(connection);
            when_up(connection);
        };
    }
    auto counter() {
        return counter([](const callbacks::connection_ptr&) {});
    }
    void event(std::string_view name) {
        const std::lock_guard locked{mutex_};
        events_ += name;
    }

    [[nodiscard]] std::size_t ups() const {
        const std::lock_guard locked{mutex_};
        return connections_.size();
    }
    [[nodiscard]] std::size_t downs() const {
        const std::lock_guard locked{mutex_};
        return downs_;
    }
    /// Of the last connection that ended.
    [[nodiscard]] std::error_code error() const {
        const std::lock_guard locked{mutex_};
        return error_;
    }
    /// The names of the events, one after the other.
    [[nodiscard]] std::string events() const {
        const std::lock_guard locked{mutex_};
        return events_;
    }
    [[nodiscard]] callbacks::connection_ptr connection(std::size_t index = 0) const {
        const std::lock_guard locked{mutex_};
        return connections_.at(index);
    }
    /// Drops the references.
    void forget() {
        std::vector<callbacks::connection_ptr> dropped;
        const std::lock_guard locked{mutex_};
        dropped.swap(connections_);
    }

private:
    mutable std::mutex mutex_;
    std::vector<callbacks::connection_ptr> connections_;
    std::size_t downs_ = 0;
    std::error_code error_;
    std::string events_;
};

} // namespace simplenet::v0::testing
