// SPDX-License-Identifier: Apache-2.0
// The TOML form: a recursive walk over tables that turns each key into an option with its values as text.
#include "zero_workloads/settings_file.h"

#include <fstream>
#include <sstream>

#include "src/base/toml_reader.h"

namespace dynamiccl::zero {
namespace {

// Reads the options of one parsed document. Errors carry the place in the file.
class SettingsReader : TomlReader {
 public:
  explicit SettingsReader(const std::string& source) : TomlReader(source), file_(source) {}

  Status Read(const toml::table& table, FileOptions* file) const {
    for (const auto& [key, value] : table) {
      if (const toml::table* heading = value.as_table()) {
        DYNAMICCL_CHECK_OK(Read(*heading, file));
        continue;
      }
      FileOption option{"--" + std::string(key.str()), {}, Place(key.source().begin)};
      std::replace(option.option.begin(), option.option.end(), '_', '-');
      DYNAMICCL_CHECK_OK(ReadValue(value, &option));
      file->options.push_back(std::move(option));
    }
    return {};
  }

 private:
  std::string Place(const toml::source_position& at) const {
    return fmt::format("{}: line {}, column {}", file_, at.line, at.column);
  }

  Status ReadValue(const toml::node& value, FileOption* option) const {
    if (const auto flag = value.value_exact<bool>()) {
      if (!*flag) option->option.insert(2, "no-");
      return {};
    }
    if (const toml::array* list = value.as_array()) {
      for (const toml::node& element : *list) DYNAMICCL_CHECK_OK(AddText(element, option));
      return {};
    }
    return AddText(value, option);
  }

  Status AddText(const toml::node& value, FileOption* option) const {
    if (const auto text = value.value_exact<std::string>()) {
      option->values.push_back(*text);
    } else if (const auto integer = value.value_exact<int64_t>()) {
      option->values.push_back(std::to_string(*integer));
    } else if (const auto number = value.value_exact<double>()) {
      option->values.push_back(fmt::format("{}", *number));
    } else {
      return Complain(value.source().begin,
                      "a setting is a number, a text, true or false, or a list of them");
    }
    return {};
  }

  const std::string& file_;
};

}  // namespace

Result<FileOptions> ReadTomlSettings(const std::filesystem::path& path) {
  std::ifstream stream(path);
  if (!stream) return MakeError(ErrorKind::kNotFound, "--config {}: {}", path.string(), ErrnoText(errno));
  std::ostringstream text;
  text << stream.rdbuf();
  const std::string source = path.string();
  DYNAMICCL_TRY(const toml::table table, ParseToml(text.str(), source));
  FileOptions file;
  DYNAMICCL_CHECK_OK(SettingsReader(source).Read(table, &file));
  return file;
}

}  // namespace dynamiccl::zero
