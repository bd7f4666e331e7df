// SPDX-License-Identifier: Apache-2.0
// A setting that a job asked for, and the line of a file in which the job asked for it.
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
  // The line of an environment file or of a log that has the setting. `from.file` is empty for a setting of
  // the command line.
  LogLine from;
};

// Parses "NAME=VALUE". An error says what is wrong with the text.
Result<AskedSetting> ParseAskedSetting(std::string_view word);

// Reads an environment: the output of `env`, /proc/<pid>/environ, NCCL_CONF_FILE, or a script's "export
// NAME=VALUE" lines. Only settings that concern collectives are kept: NCCL_*, TORCH_NCCL_*, DYNAMICCL_* and
// HOSTCCL_*. `content` is the whole file.
std::vector<AskedSetting> ParseEnvironment(const std::string& path, const std::string& content);

// True if a file that begins with `head` is an environment: its first line and most of the others must have
// the form NAME=VALUE.
bool LooksLikeEnvironment(std::string_view head);

// True if a receipt can be written for a setting of this name.
bool ConcernsCollectives(std::string_view name);

}  // namespace dynamiccl
