// SPDX-License-Identifier: Apache-2.0
// The environment variables that hostccl reads, for the functions ncclParam*: the variables of NCCL that it
// knows, and its own (src/base/settings.def).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

// An ncclParamHandle_t points to one of these, which lives as long as the process.
struct ncclParamHandle {
  const char* name;
  const char* default_value;
};

namespace dynamiccl::hostccl {

// Returns the table of all parameters. Its addresses are the handles, so it never changes.
std::span<const ncclParamHandle> AllParameters();
// Returns null for an unknown key.
const ncclParamHandle* FindParameter(const char* key);

// Returns true if the handle is one of AllParameters; false for null.
bool IsParameter(const ncclParamHandle* handle);

// Returns the variable's text, or its default. Each call reads the environment.
std::string TextOf(const ncclParamHandle& parameter);
// Returns the variable as a whole number, decimal, octal or hexadecimal; nothing if the text is no number.
std::optional<int64_t> NumberOf(const ncclParamHandle& parameter);

}  // namespace dynamiccl::hostccl
