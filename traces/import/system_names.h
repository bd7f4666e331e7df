// SPDX-License-Identifier: Apache-2.0
// What a log says about the system on which it was made: the version of NCCL, the names of hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dynamiccl {

// "NCCL 2.28.9" of NCCL's number 22809; before 2.9 a digit less: 2708 is 2.7.8.
std::string LibraryOfCode(uint64_t code);

// The library whose version a line of a log tells: "NCCL version 2.28.9+cuda12.9" anywhere in it, "RCCL
// version : 2.26.6-Unknown", or "nccl-library=22809" as nccl-tests prints it.
std::optional<std::string> LibraryIn(std::string_view line);

// The host's name with every number replaced by '#', "nid#" for "nid005446": what the hosts of a cluster have
// in common.
std::string HostPattern(std::string_view host);

}  // namespace dynamiccl
