// SPDX-License-Identifier: Apache-2.0
// Units and modules follow from the names alone: a part of a name that is a number marks a block.
#include "traces/generators/model_shape.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include "src/base/file_kind.h"

namespace dynamiccl {
namespace {

bool IsNumber(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The name up to its first number; empty for the root.
std::string UnitName(const std::string& parameter) {
  size_t begin = 0;
  while (begin < parameter.size()) {
    const size_t dot = parameter.find('.', begin);
    if (dot == std::string::npos) return {};
    if (IsNumber(std::string_view(parameter).substr(begin, dot - begin))) return parameter.substr(0, dot);
    begin = dot + 1;
  }
  return {};
}

// The name without its last part.
std::string LeafName(const std::string& parameter) {
  const size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? std::string() : parameter.substr(0, dot);
}

// The dimensions in "1000x2048"; empty if the text is something else.
std::vector<int64_t> ParseDims(std::string_view text) {
  std::vector<int64_t> dims;
  while (true) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 1) return {};
    dims.push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) return dims;
    if (text.front() != 'x') return {};
    text.remove_prefix(1);
  }
}

// Maximum number of elements of a parameter. A larger number is a mistyped dimension, and sums of such
// parameters would overflow.
constexpr int64_t kMaxElements = int64_t{1} << 44;

// True if the product is above kMaxElements, without computing it.
bool TooLarge(const std::vector<int64_t>& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) {
    if (dim > kMaxElements / elements) return true;
    elements *= dim;
  }
  return false;
}

}  // namespace

int64_t ParameterShape::Elements() const {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

int64_t ModelShape::Elements() const {
  int64_t sum = 0;
  for (const ParameterShape& parameter : parameters) sum += parameter.Elements();
  return sum;
}

std::vector<std::vector<size_t>> UnitsOf(const ModelShape& model) {
  std::vector<std::vector<size_t>> units(1);
  std::map<std::string, size_t> known{{"", 0}};
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const auto [unit, is_new] = known.emplace(UnitName(model.parameters[i].name), units.size());
    if (is_new) units.emplace_back();
    units[unit->second].push_back(i);
  }
  return units;
}

// One pass over the parameters: a new unit opens a container, a new leaf name opens a module, and ends are
// set as children are added.
std::vector<ModuleShape> ModulesOf(const ModelShape& model) {
  std::vector<ModuleShape> modules{{"", {}, 0}};
  std::optional<size_t> unit;  // the container that is open
  for (size_t i = 0; i < model.parameters.size(); ++i) {
    const std::string& name = model.parameters[i].name;
    const std::string unit_name = UnitName(name), leaf = LeafName(name);
    if (unit && modules[*unit].name != unit_name) unit.reset();
    if (!unit && !unit_name.empty()) {
      unit = modules.size();
      modules.push_back({unit_name, {}, 0});
    }
    if (leaf == unit_name || leaf.empty()) {  // a parameter of the container itself
      modules[unit && leaf == unit_name ? *unit : 0].parameters.push_back(i);
      continue;
    }
    if (modules.back().name != leaf) modules.push_back({leaf, {}, modules.size() + 1});
    modules.back().parameters.push_back(i);
    if (unit) modules[*unit].end = modules.size();
  }
  modules[0].end = modules.size();
  for (size_t i = 0; i < modules.size(); ++i) modules[i].end = std::max(modules[i].end, i + 1);
  return modules;
}

std::vector<size_t> ChildrenOf(const std::vector<ModuleShape>& modules, size_t module) {
  std::vector<size_t> children;
  for (size_t child = module + 1; child < modules[module].end; child = modules[child].end)
    children.push_back(child);
  return children;
}

Result<ModelShape> ParseModel(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::string where = fmt::format("--model {}", name);
  std::string names;
  for (const ModelPreset& preset : AllModelPresets()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", preset.name);
    if (preset.name != name) continue;
    DYNAMICCL_TRY(const SettingTexts texts,
                  ParseSettingTexts(text.substr(std::min(colon + 1, text.size())), where));
    DYNAMICCL_TRY(const SettingValues values, SettingValues::Parse(preset.settings, texts, where));
    return preset.make(values);
  }
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "--model: no preset '{}'", name),
                  fmt::format("one of {}; or --parameters FILE for any other model", names));
}

Result<ModelShape> ReadParameterList(const std::string& path) {
  DYNAMICCL_CHECK_OK(CheckIsFile(path));
  std::ifstream file(path);
  if (!file) return MakeError(ErrorKind::kNotFound, "{}: cannot be read", path);
  ModelShape model;
  model.name = path;
  std::set<std::string> names;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line.front() == '#') continue;
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    const auto dims = space == std::string::npos ? std::vector<int64_t>()
                                                 : ParseDims(std::string_view(line).substr(space + 1));
    if (name.empty() || dims.empty() || TooLarge(dims) || !names.insert(name).second) {
      return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: line {}: not a new parameter: '{}'", path,
                                number, line),
                      "a name, one space, the dimensions: \"fc.weight 1000x2048\"; every name once");
    }
    model.parameters.push_back({name, dims});
  }
  if (model.parameters.empty()) return MakeError(ErrorKind::kInvalidArgument, "{}: no parameter", path);
  return model;
}

}  // namespace dynamiccl
