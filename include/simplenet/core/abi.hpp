#pragma once
// The inline namespace that puts the version of the ABI into every mangled name. Layer core. The
// reasons are in docs/development/decisions/0021-abi-version-in-a-namespace.md.

#if defined(__clang__)
// Every other file opens the namespace as `namespace simplenet::v0`. The standard allows that for a
// namespace that was first declared inline ([namespace.def]/4), and ctags, Doxygen and editors
// parse it. Clang warns by default.
#pragma clang diagnostic ignored "-Winline-namespace-reopened-noninline"
#endif

namespace simplenet {

/// The version of the ABI. Programs write `simplenet::`, without it.
inline namespace v0 {}

} // namespace simplenet
