#pragma once
// marked: a flag that is set while a coroutine is in a block. Layer http, private.

#include <simplenet/core/abi.hpp>

namespace simplenet::v0::http::detail {

class marked {
public:
    explicit marked(bool& mark) noexcept
        : mark_{mark} {
        mark_ = true;
    }
    marked(const marked&) = delete;
    marked& operator=(const marked&) = delete;
    ~marked() { mark_ = false; }

private:
    bool& mark_;
};

} // namespace simplenet::v0::http::detail
