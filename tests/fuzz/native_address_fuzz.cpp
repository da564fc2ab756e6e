// Addresses as the kernel, or an imitation of it, returns them: any bytes, any size.

#include "fuzz/fuzz.hpp"
#include "ip/native.hpp"

#include <vector>

#include <sys/socket.h>

namespace simplenet::v0::fuzz {
namespace {

template <class Endpoint, class Read>
void check(const sockaddr* address, socklen_t size, Read read) {
    const result<Endpoint> endpoint = read(address, size);
    if (!endpoint) return;

    static_cast<void>(endpoint->to_string());
    const auto native = detail::to_native(*endpoint);
    const auto again = read(reinterpret_cast<const sockaddr*>(&native.storage), native.size);
    FUZZ_CHECK(again && *again == *endpoint);
}

} // namespace
} // namespace simplenet::v0::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace simplenet;
    if (size > sizeof(sockaddr_storage)) return 0;
    // libFuzzer's memory already has exactly the size of the input.
    const auto* const address = reinterpret_cast<const sockaddr*>(data);
    const auto length = static_cast<socklen_t>(size);
    fuzz::check<endpoint>(address, length, detail::endpoint_from_native);
    fuzz::check<local_endpoint>(address, length, detail::local_endpoint_from_native);
    return 0;
}
