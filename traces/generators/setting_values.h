// SPDX-License-Identifier: Apache-2.0
// Named settings of a generator or of a model preset: a table says which there are, texts of the user are
// read against it, strictly.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/collective/data_type.h"

namespace dynamiccl {

enum class SettingKind : uint8_t { kInteger, kFlag, kDataType, kChoice };

// One row of the table. `standard` is the value without the user's: the framework's own default.
struct SettingRow {
  std::string_view name;
  SettingKind kind;
  std::string_view standard;  // an integer, "true" or "false", a data type (empty: as `dtype`), or a choice
  std::string_view sentence;
  int64_t least = 1;                // kInteger: the smallest value that makes sense
  std::string_view choices = {};    // kChoice: "none,full"
  int64_t most = int64_t{1} << 44;  // kInteger: larger ones would overflow sums of elements
};

// name -> text, as the user wrote it.
using SettingTexts = std::map<std::string, std::string, std::less<>>;

// "a=1,b=true" as texts. `where` names the option in errors.
Result<SettingTexts> ParseSettingTexts(std::string_view text, std::string_view where);

// Every row has a value of its kind. The rows must outlive it, and only their names may be asked for.
class SettingValues {
 public:
  // `where` ("fsdp2", "--model gpt") begins the errors: an unknown name, a value of another kind.
  static Result<SettingValues> Parse(std::span<const SettingRow> rows, const SettingTexts& texts,
                                     std::string_view where);

  int64_t Integer(std::string_view name) const;
  bool Flag(std::string_view name) const;
  // A type left empty is that of the setting `dtype`.
  DataType Type(std::string_view name) const;
  const std::string& Choice(std::string_view name) const;

 private:
  const std::string& Text(std::string_view name) const;

  SettingTexts values_;
};

}  // namespace dynamiccl
