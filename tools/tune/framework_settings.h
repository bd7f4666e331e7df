// SPDX-License-Identifier: Apache-2.0
// Settings of PyTorch's DDP and FSDP2, with the rules that go with them, as a file
// (docs/formats/settings.md). The hook in plugin/startup applies the file to a script that is not edited.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tools/report/json_output.h"

namespace dynamiccl {

// Values by "framework.setting", for example {"ddp.bucket_cap_mb", 100}.
using FrameworkValues = std::map<std::string, Json>;

struct FrameworkSettings {
  FrameworkValues values;
  // Path of override rules; empty: NCCL's choice. In the file it is relative to the file's folder.
  std::string rules;
  // The origin of the settings: command, version of dynamiccl, ratio. Only people read it.
  Json origin;
};

// The text of a settings file, with its checksum.
std::string FrameworkSettingsText(const FrameworkSettings& settings);

// Reads the text of the settings file at `path`. An error names the file: kCorrupt where it is cut, damaged
// or of another version, kInvalidArgument for a setting or value that does not exist.
Result<FrameworkSettings> ParseFrameworkSettings(std::string_view text, const std::string& path);
// Reads the file and makes the path of its rules absolute.
Result<FrameworkSettings> ReadFrameworkSettings(const std::string& path);

// Adds a setting given as a text such as "bucket_cap_mb=100", without the name of its framework.
Status AddValue(const std::string& text, FrameworkValues& values);
// The settings as a user would name them: "bucket_cap_mb=100 gradient_as_bucket_view=true"; "default" where
// there are none.
std::string DescribeValues(const FrameworkValues& values);
// Lines for the user's own script, for example
// "DistributedDataParallel(..., bucket_cap_mb=100)". Empty without values.
std::string LinesForScript(const FrameworkValues& values);

}  // namespace dynamiccl
