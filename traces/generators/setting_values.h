// SPDX-License-Identifier: Apache-2.0
// Named settings of a generator or of a model preset. A table lists the settings, and the user's texts are
// checked against it strictly.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/collective/data_type.h"

namespace dynamiccl {

// The kind of value that a setting has.
enum class SettingKind : uint8_t { kInteger, kFlag, kDataType, kChoice };

// One setting in the table.
struct GeneratorSetting {
  std::string_view name;
  SettingKind kind;
  // Default value, which is the framework's own: an integer, "true" or "false", a data type (empty: that of
  // the setting `dtype`), or a choice.
  std::string_view standard;
  std::string_view sentence;
  // kInteger: the smallest value that makes sense.
  int64_t least = 1;
  // kChoice: the choices with commas between, "none,full".
  std::string_view choices = {};
  // kInteger: the largest value; larger ones would overflow sums of elements.
  int64_t most = int64_t{1} << 44;
};

// Name -> text, as the user wrote it.
using SettingTexts = std::map<std::string, std::string, std::less<>>;

// Reads "a=1,b=true" as texts. `where` names the option in errors.
Result<SettingTexts> ParseSettingTexts(std::string_view text, std::string_view where);

// The values of all settings in a table, each of its kind. Ask only for names in the table; Has accepts any
// name. The texts are copied, so the table need not outlive this object.
class SettingValues {
 public:
  // Reads texts against a table. An unknown name and a value of another kind are errors, which begin with
  // `where` ("fsdp2", "--model gpt").
  static Result<SettingValues> Parse(std::span<const GeneratorSetting> rows, const SettingTexts& texts,
                                     std::string_view where);

  // Returns true if the table has a setting with this name.
  bool Has(std::string_view name) const { return values_.contains(name); }
  // Each returns a value of its kind; the row must have that kind.
  int64_t Integer(std::string_view name) const;
  bool Flag(std::string_view name) const;
  // The type of a setting; one that was left empty has the type of the setting `dtype`.
  DataType Type(std::string_view name) const;
  const std::string& Choice(std::string_view name) const;

 private:
  const std::string& Text(std::string_view name) const;

  SettingTexts values_;
};

}  // namespace dynamiccl
