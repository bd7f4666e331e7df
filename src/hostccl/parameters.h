// SPDX-License-Identifier: Apache-2.0
// The environment variables that hostccl reads, as ncclParam* shows them: those of NCCL that it knows, and
// its own (src/base/settings.def).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

// What ncclParamHandle_t points at; lives as long as the process.
struct ncclParamHandle {
  const char* name;
  const char* default_value;
};

namespace dynamiccl::hostccl {

std::span<const ncclParamHandle> AllParameters();
// Null for a key that does not exist.
const ncclParamHandle* FindParameter(const char* key);

// Null or not one of AllParameters: false.
bool IsParameter(const ncclParamHandle* handle);

// The variable's text, or its default.
std::string TextOf(const ncclParamHandle& parameter);
// No value: the text is no whole number.
std::optional<int64_t> NumberOf(const ncclParamHandle& parameter);

}  // namespace dynamiccl::hostccl
