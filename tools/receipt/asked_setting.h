// SPDX-License-Identifier: Apache-2.0
// A setting that a job asked for, and where the request stands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "tools/receipt/nccl_log.h"

namespace dynamiccl {

struct AskedSetting {
  std::string name;   // "NCCL_ALGO"
  std::string value;  // "Ring"
  // The place where it was asked: a line of an environment file or of a log. Without a file it was the
  // command line.
  LogLine from;
};

// Parses "NAME=VALUE". An error says what is wrong with the word.
Result<AskedSetting> ParseAskedSetting(std::string_view word);

// Reads an environment: the output of `env`, /proc/<pid>/environ, NCCL_CONF_FILE, or a script's "export
// NAME=VALUE" lines. Only settings that concern collectives are kept: NCCL_*, TORCH_NCCL_*, DYNAMICCL_* and
// HOSTCCL_*. `content` is the whole file.
std::vector<AskedSetting> ParseEnvironment(const std::string& path, const std::string& content);

// Whether a file that begins with `head` is an environment: its first line assigns, and most others do.
bool LooksLikeEnvironment(std::string_view head);

// Whether a receipt can be written for a setting of this name.
bool ConcernsCollectives(std::string_view name);

}  // namespace dynamiccl
