// SPDX-License-Identifier: Apache-2.0
// The environment variables that hostccl reads, as the functions ncclParam* show them: the variables of NCCL
// that it knows, and its own (src/base/settings.def).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

// An ncclParamHandle_t points at one of these. It lives as long as the process.
struct ncclParamHandle {
  const char* name;
  const char* default_value;
};

namespace dynamiccl::hostccl {

// Returns the table of all parameters. Its addresses are the handles, so it never changes.
std::span<const ncclParamHandle> AllParameters();
// Null for a key that does not exist.
const ncclParamHandle* FindParameter(const char* key);

// Returns whether the handle is one of AllParameters; false for null.
bool IsParameter(const ncclParamHandle* handle);

// Returns the variable's text, or its default. Read anew each time.
std::string TextOf(const ncclParamHandle& parameter);
// Returns the variable as a whole number, decimal, octal or hexadecimal; nullopt when the text is none.
std::optional<int64_t> NumberOf(const ncclParamHandle& parameter);

}  // namespace dynamiccl::hostccl
