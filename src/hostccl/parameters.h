// SPDX-License-Identifier: Apache-2.0
// The environment variables that hostccl reads, for NCCL's functions ncclParam*: those of NCCL that have an
// effect, and hostccl's own (src/base/settings.def).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

// One environment variable. An ncclParamHandle_t points to such a value, which exists until the process ends.
struct ncclParamHandle {
  const char* name;
  const char* default_value;
};

namespace dynamiccl::hostccl {

// Returns the table of all parameters. The addresses of its entries are the handles, so the table never
// changes.
std::span<const ncclParamHandle> AllParameters();
// Returns the parameter with this key, or null for an unknown key.
const ncclParamHandle* FindParameter(const char* key);

// Returns true if the handle points to an entry of AllParameters, false for null.
bool IsParameter(const ncclParamHandle* handle);

// Returns the text of the environment variable, or the default. Each call reads the environment.
std::string TextOf(const ncclParamHandle& parameter);
// Returns the variable as a whole number, written in decimal, octal or hexadecimal. Returns nothing if the
// text is no number.
std::optional<int64_t> NumberOf(const ncclParamHandle& parameter);

}  // namespace dynamiccl::hostccl
