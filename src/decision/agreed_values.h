// SPDX-License-Identifier: Apache-2.0
// Live values: named numbers of a job that change on all ranks of a communicator before the same call. The
// ranks agree on them in the same way as on a new table (docs/agree.md). Pure functions; they do not trust
// the texts and messages that they read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/collective/role.h"

namespace dynamiccl {

// A communicator has at most this many live values, because one control message carries all of them.
inline constexpr size_t kMaxAgreedValues = 64;
inline constexpr size_t kMaxValueNameBytes = 31;
// The name of the live value that holds the agreed MemoryPressure as a number
// (docs/formats/override_rules.md).
inline constexpr std::string_view kMemoryPressureValue = "memory_pressure";
// The most bytes of a file of values: enough for all values with names of full length and as many comments.
inline constexpr size_t kMaxValuesFileBytes = 16384;

// Live values by name. A name on whose value the ranks have not agreed yet is absent.
using AgreedValues = std::map<std::string, int64_t, std::less<>>;

// A name, and the number that a rank asks all ranks to give it.
struct ProposedValue {
  std::string name;
  int64_t value = 0;

  friend bool operator==(const ProposedValue&, const ProposedValue&) = default;
};

// The level in `values`; kUnknown if none was agreed, or if it is no level.
MemoryPressure MemoryPressureIn(const AgreedValues& values);

// True if the text consists of 1 to kMaxValueNameBytes letters, digits, dots, dashes and underscores.
bool IsValueName(std::string_view name);

// Reads "NAME=VALUE"; blanks around the two are allowed. The error says which part is wrong.
Result<ProposedValue> ParseValue(std::string_view text);
// Reads a file of lines NAME=VALUE; empty lines and lines that begin with # are skipped. An error names
// `path` and the line.
Result<AgreedValues> ParseValues(std::string_view text, const std::string& path);
// Returns the text of a file that ParseValues reads.
std::string ValuesText(const AgreedValues& values);

}  // namespace dynamiccl
