#pragma once
// metrics_page: figures as text for Prometheus. Layer insight, private. The source of all rules is
// https://prometheus.io/docs/instrumenting/exposition_formats/, of the names
// https://prometheus.io/docs/practices/naming/.

#include <simplenet/core/abi.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace simplenet::v0::detail {

enum class metric_kind : std::uint8_t {
    counter, // only grows, until what it counts is gone
    gauge,
};

/// A family of figures that differ in their labels. Its texts outlive the page.
struct metric {
    std::string_view name; // letters, digits, `_`; in base units: `_seconds`, `_bytes`
    std::string_view help; // one sentence
    metric_kind kind;
};

struct metric_label {
    std::string_view name;
    std::string_view value; // any text; bytes that are not UTF-8 are replaced
};

class metrics_page {
public:
    using labels = std::initializer_list<metric_label>;

    /// Adds one figure. In one family no two have the same labels.
    ///
    /// @pre The name of a counter ends in `_total`, and no other name does.
    template <std::integral Number>
    void add(const metric& of, labels labels, Number value) {
        add_text(of, labels, std::to_string(value));
    }
    void add(const metric& of, labels labels, double value);

    /// The families in the order in which they were added first.
    [[nodiscard]] std::string text() const;

private:
    struct family {
        metric described;
        std::string samples;
    };

    void add_text(const metric& of, labels labels, std::string_view value);
    [[nodiscard]] family& family_of(const metric& described);

    std::vector<family> families_;
};

} // namespace simplenet::v0::detail
