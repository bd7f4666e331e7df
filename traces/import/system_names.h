// SPDX-License-Identifier: Apache-2.0
// Reads from a log on which system it was made: the version of NCCL and the names of hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dynamiccl {

// Converts NCCL's version code: 22809 is "NCCL 2.28.9". Codes before 2.9 have one digit less: 2708 is 2.7.8.
std::string LibraryOfCode(uint64_t code);

// The library whose version a line of a log states: "NCCL version 2.28.9+cuda12.9" anywhere in it, "RCCL
// version : 2.26.6-Unknown", or "nccl-library=22809" as nccl-tests prints it. A version has three numbers.
std::optional<std::string> LibraryIn(std::string_view line);

// Returns library and release without what follows: "NCCL 2.28.9" of "NCCL 2.28.9+cuda12.9".
std::string_view LibraryRelease(std::string_view library);

// The host's name with every number replaced by '#', which all hosts of a cluster usually share: "nid#" for
// "nid005446".
std::string HostPattern(std::string_view host);

}  // namespace dynamiccl
