// SPDX-License-Identifier: Apache-2.0
#include "tools/running/value_setting.h"

#include <filesystem>

#include "src/base/whole_file.h"

namespace dynamiccl {
namespace {

Result<AgreedValues> PresentValues(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return AgreedValues{};
  DYNAMICCL_TRY(const std::string text, ReadSmallFile(path, kMaxValuesFileBytes));
  return ParseValues(text, path);
}

}  // namespace

Result<AgreedValues> SetValues(const std::string& path, const std::vector<std::string>& settings) {
  DYNAMICCL_TRY(AgreedValues values, PresentValues(path));
  for (const std::string& setting : settings) {
    DYNAMICCL_TRY(const ProposedValue proposed, ParseValue(setting));
    values[proposed.name] = proposed.value;
  }
  if (values.size() > kMaxAgreedValues)
    return MakeError(ErrorKind::kInvalidArgument, "{} would have more than {} values", path,
                     kMaxAgreedValues);
  if (!ReplaceFile(path, ValuesText(values)))
    return MakeError(ErrorKind::kUnavailable, "{} cannot be written", path);
  return values;
}

}  // namespace dynamiccl
