# Rewrites a public header for Doxygen: names as programs write them, a group for each layer, and the comment at the
# top as the comment of the file. Line numbers stay the same.

# Whether the line begins a destructor, an assignment, or a constructor from another object of the class.
function special(    name, of) {
    if (/^ +~[a-z_]+\(/ || /^ +[a-z_]+& operator=\(/) return 1
    if (!/^ +(constexpr )?[a-z_]+\((const )?[a-z_]+&&?( [a-z_]+)?\)/) return 0
    name = of = $0
    sub(/\(.*/, "", name); sub(/.* /, "", name)
    sub(/^[^(]*\((const )?/, "", of); sub(/&.*/, "", of)
    return name == of
}

function indent() { match($0, /^ */); return RLENGTH }

FNR == 1 {
    count = split(FILENAME, folder, "/")
    layer = folder[count - 1] == "simplenet" ? "" : folder[count - 1]
    about = sub(/^#pragma once$/, "/// @file")
}
FNR > 1 && about {
    # The page already has the name as its title, so "tcp_stream: a connection" becomes "a connection".
    if (FNR == 2) sub(/^\/\/ ([a-z_:<>(),T]+ )*[a-z_:<>()T]*[a-z_<>()T]: /, "// ")
    about = sub(/^\/\//, "///")
}

# An address such as `::1` is not a name in the global namespace.
/^ *\/\/\// && match($0, /`::[^`]*`/) {
    $0 = substr($0, 1, RSTART - 1) "<code>\\" substr($0, RSTART + 1, RLENGTH - 2) "</code>" substr($0, RSTART + RLENGTH)
}

# `v0` and `runtime` are inline namespaces, which programs do not write.
/^inline namespace runtime \{$/ || /^\} \/\/ namespace runtime$/ { $0 = "" }
{ gsub(/simplenet::v0/, "simplenet") }

# Doxygen turns `result<>` into `result`. scripts/website restores `result<>`.
!/^ *\/\// { gsub(/<>/, "<void>") }

# Programs await what a function returns, and need not know the name of its type.
/^ *\[\[nodiscard\]\] / { gsub(/detail::/, "") }

# Programs do not derive from our classes.
/^ *protected:$/ { sub(/protected/, "private") }

# Hides special members and friends without a comment. A definition ends with its body.
!silent && !said && special() { silent = 1 }
silent {
    sub(/ *\/\/.*/, "")
    depth += gsub(/\{/, "&") - gsub(/\}/, "&")
    silent = depth > 0 || !/;$| \{|^ *\}$/
    $0 = ""
}
/^ *friend [^()]*;$/ { $0 = "" }
{ said = /^ *\/\/\// }

# A comment after a member or an enumerator documents it.
/^ *(class|struct|enum class) .*\{$/ { members[++types] = indent() + 4 }
types && /^ *\};/ && indent() == members[types] - 4 { --types }
types && indent() == members[types] && /[;,0-9a-z_] +\/\/ / { sub(/\/\/ /, "///< "); behind = 1; print; next }
behind && indent() > members[types] && /^ *\/\/ / { sub(/\/\//, "///<"); print; next }
{ behind = 0 }

layer && /^namespace simplenet.* \{$/ && !/detail/ { $0 = $0 " /** @addtogroup " layer " */ /** @{ */" }
layer && /^\} \/\/ namespace simplenet/ && !/detail/ { $0 = "/** @} */ }" }

{ print }
