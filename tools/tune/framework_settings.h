// SPDX-License-Identifier: Apache-2.0
// Settings of PyTorch's DDP and FSDP2, of DeepSpeed, of Megatron-LM and of the project's own trainer, with
// the rules that go with them, as a file (docs/formats/settings.md). The hook in plugin/startup applies the
// file to a script that is not edited; the trainer and Megatron-LM get their settings as options
// (trainer_settings.h, megatron_settings.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

// Bytes that "zero.bucket_bytes" means by "all": one bucket for the whole model.
inline constexpr int64_t kBytesOfOneBucket = int64_t{1} << 44;
// Bytes of a value of "zero.bucket_bytes".
int64_t BucketBytesOf(const Json& value);
// Returns the trainer's values as options of `dynamiccl-zero train`, for example {"--bucket-bytes", "4M",
// "--no-prefetch"}. Values of other frameworks are left out.
std::vector<std::string> TrainerOptionsOf(const FrameworkValues& values);

// Returns the values of Megatron-LM as flags of its scripts, for example {"--ddp-bucket-size", "40000000",
// "--overlap-grad-reduce"}. A flag that is to be off is left out.
std::vector<std::string> MegatronFlagsOf(const FrameworkValues& values);

// Adds a setting given as a text such as "bucket_cap_mb=100", without the name of its framework.
Status AddValue(const std::string& text, FrameworkValues& values);
// The settings as a user would name them: "bucket_cap_mb=100 gradient_as_bucket_view=true"; "default" where
// there are none.
std::string DescribeValues(const FrameworkValues& values);
// Lines for the user's own script, for example
// "DistributedDataParallel(..., bucket_cap_mb=100)". Empty without values.
std::string LinesForScript(const FrameworkValues& values);

}  // namespace dynamiccl
