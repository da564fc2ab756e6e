#include <simplenet/testing/faulty_stream.hpp>

namespace simplenet::v0::testing {

fault_script& fault_script::at_most(std::size_t bytes) {
    SIMPLENET_EXPECTS(bytes != 0,
                      "a call must be allowed to move a byte: use fail_call() for failures");
    most_ = bytes;
    return *this;
}

fault_script& fault_script::pieces(std::vector<std::size_t> bytes) {
    for (const std::size_t each : bytes)
        SIMPLENET_EXPECTS(each != 0,
                          "a call must be allowed to move a byte: use fail_call() for failures");
    std::reverse(bytes.begin(), bytes.end());
    pieces_ = std::move(bytes);
    return *this;
}

fault_script& fault_script::random_pieces(std::uint32_t seed, std::size_t most) {
    SIMPLENET_EXPECTS(most != 0,
                      "a call must be allowed to move a byte: use fail_call() for failures");
    dice_.seed(seed);
    random_most_ = most;
    return *this;
}

fault_script& fault_script::fail_call(std::size_t number, std::error_code error) {
    errors_[number] = error;
    return *this;
}

fault_script& fault_script::fail_at_byte(std::size_t offset, std::error_code error) {
    break_.emplace(offset, error);
    return *this;
}

fault_script& fault_script::before_call(std::size_t number, std::function<void()> hook) {
    hooks_[number] = std::move(hook);
    return *this;
}

fault_script::verdict fault_script::next_call() {
    const std::size_t number = ++calls_;
    if (const auto hook = hooks_.find(number); hook != hooks_.end()) {
        // Moved out, because the function may change the script.
        const std::function<void()> call = std::move(hook->second);
        hooks_.erase(hook);
        if (call) call();
    }
    verdict now{.delay = delay_, .error = {}, .most = most_};
    if (const auto delay = delays_.find(number); delay != delays_.end()) now.delay = delay->second;
    if (const auto error = errors_.find(number); error != errors_.end()) now.error = error->second;
    if (break_) {
        if (bytes_ >= break_->first && !now.error) now.error = break_->second;
        now.most = std::min(now.most, break_->first - std::min(bytes_, break_->first));
    }
    if (now.error) { // nothing moves, so the next call uses the sizes
        now.most = std::numeric_limits<std::size_t>::max();
        return now;
    }
    if (random_most_ != 0) now.most = std::min(now.most, 1 + dice_() % random_most_);
    if (!pieces_.empty()) {
        now.most = std::min(now.most, pieces_.back());
        pieces_.pop_back();
    }
    return now;
}

} // namespace simplenet::v0::testing
