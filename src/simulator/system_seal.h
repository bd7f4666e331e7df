// SPDX-License-Identifier: Apache-2.0
// The last line of a system file: "# xxh3 <16 hex digits>" over all bytes before it. TOML takes it for a
// comment. It shows that a file is whole and unchanged.
#pragma once

#include <string>
#include <string_view>

namespace dynamiccl {

inline constexpr std::string_view kSystemSealPrefix = "# xxh3 ";
// Takes the place of the digits in a file written by hand: nothing is compared, but the end of the file must
// be there.
inline constexpr std::string_view kUncheckedSeal = "unchecked";

// The digits for `text`, which ends before the last line.
std::string SystemSealOf(std::string_view text);

}  // namespace dynamiccl
