# A toolchain file: builds for aarch64 with Debian's cross compiler and runs the tests under qemu-user.
# After `dpkg --add-architecture arm64` it needs Debian's g++-aarch64-linux-gnu, qemu-user,
# libstdc++6:arm64, liburing-dev:arm64, libssl-dev:arm64 and libgmock-dev:arm64; scripts/matrix.sh installs them.
#
#   cmake -S . -B build/aarch64 -G Ninja --toolchain cmake/aarch64-linux-gnu.cmake

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
