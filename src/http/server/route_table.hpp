#pragma once
// route_table: the routes of a router, as a tree of path segments. Layer http, private.

#include <simplenet/http/detail/route_handler.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simplenet::v0::http::detail {

inline constexpr std::size_t most_parameters = 16;

struct route {
    std::string method; // empty: any
    std::shared_ptr<route_handler> handler;
    std::optional<std::uint64_t> body;
    std::vector<std::string> names; // of the parameters, in order
};

/// What a path and a method lead to.
struct route_match {
    enum class kind : std::uint8_t {
        found,
        no_path,        // and no fallback
        other_method,   // 405: `allow` has those of the path
        unknown_method, // 501
        options,        // 204: `allow` likewise
    };

    kind is = kind::no_path;
    const route* to = nullptr; // of the table, if found
    std::string_view allow;    // of the table
    // The parameters as they stand in the path. Not initialised.
    std::array<std::string_view, most_parameters> values;
    std::size_t count = 0;
};

/// Immutable once it serves; any thread then.
class route_table {
public:
    /// Stops the program if the pattern is malformed or taken.
    void add(std::string_view pattern, route to);
    void set_fallback(route to);

    /// `into.values` are views of `path`.
    void match(std::string_view method, std::string_view path, route_match& into) const;

private:
    /// The routes at the end of one pattern.
    struct methods {
        std::vector<route> routes; // at most one of a method
        std::string allow;         // the value of Allow; empty without routes

        [[nodiscard]] bool empty() const noexcept { return routes.empty(); }
        void add(route to);
        [[nodiscard]] const route* find(std::string_view method) const noexcept;
    };

    struct node {
        std::vector<std::pair<std::string, std::size_t>> texts; // sorted, with indices of nodes
        std::size_t parameter = 0;                              // an index; 0: none
        methods here;                                           // of patterns that end here
        methods rest;                                           // of patterns with {name...} here
    };

    [[nodiscard]] const methods* find(std::size_t at, std::string_view path,
                                      route_match& into) const;
    void pick(const methods& among, std::string_view method, route_match& into) const;
    [[nodiscard]] bool knows(std::string_view method) const noexcept;

    std::vector<node> nodes_{1}; // the first is the root; by index, so that a copy is a copy
    std::optional<route> fallback_;
    std::vector<std::string> own_methods_; // of routes, beside those that are always known
};

} // namespace simplenet::v0::http::detail
