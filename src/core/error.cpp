#include <simplenet/core/error.hpp>

namespace simplenet::v0 {

namespace {

class category final : public std::error_category {
public:
    const char* name() const noexcept override { return "simplenet"; }

    std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
        case errc::end_of_stream:
            return "end of stream";
        case errc::deadline_exceeded:
            return "deadline exceeded";
        case errc::name_not_found:
            return "name not found";
        case errc::name_lookup_failed:
            return "name lookup failed";
        case errc::backend_unavailable:
            return "backend unavailable";
        case errc::queue_full:
            return "queue full";
        case errc::limit_exceeded:
            return "limit exceeded";
        }
        return "unknown simplenet error " + std::to_string(value);
    }

    std::error_condition default_error_condition(int value) const noexcept override {
        if (static_cast<errc>(value) == errc::deadline_exceeded) {
            return std::make_error_condition(std::errc::timed_out);
        }
        return {value, *this};
    }
};

} // namespace

const std::error_category& error_category() noexcept {
    static const category instance;
    return instance;
}

namespace detail {

void throw_system_error(std::error_code code) {
    throw std::system_error{code};
}

void throw_system_error(std::error_code code, const char* what) {
    throw std::system_error{code, what};
}

} // namespace detail

} // namespace simplenet::v0
