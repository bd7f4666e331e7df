// SPDX-License-Identifier: Apache-2.0
// Header line, contexts, rows, effects, end line. A row or effect may only name a topology whose context came
// before it. A file without effects is written as version 1, which older builds read.
#include "traces/format/measurement_file.h"

#include <set>

#include "traces/format/measurement_json.h"

namespace dynamiccl {
namespace {

constexpr const char* kMagic = "dynamiccl-measurements";
constexpr int kVersionOfRows = 1;
constexpr int kVersionWithEffects = 2;

int VersionFor(const MeasurementFile& file) {
  return file.effects.empty() ? kVersionOfRows : kVersionWithEffects;
}

// Checks that each row and effect has a context and that no topology has two.
Status CheckKnownTopologies(const MeasurementFile& file) {
  std::set<std::string> topologies;
  for (const MeasurementContext& context : file.contexts) {
    if (!topologies.insert(context.topology).second) {
      return MakeError(ErrorKind::kInvalidArgument, "two contexts for topology '{}'", context.topology);
    }
  }
  const auto known = [&](const char* what, const std::string& topology) -> Status {
    if (topologies.contains(topology)) return {};
    return MakeError(ErrorKind::kInvalidArgument, "{} names topology '{}', which has no context", what,
                     topology);
  };
  for (const Measurement& row : file.rows) DYNAMICCL_CHECK_OK(known("a row", row.topology));
  for (const MeasuredEffect& effect : file.effects) DYNAMICCL_CHECK_OK(known("an effect", effect.topology));
  return {};
}

// Appends the line of a context or of an effect, unless `read` would refuse it. `what` names it in the error.
template <typename Read>
Status AppendLine(std::string& text, const Json& json, Read read, const std::string& what) {
  try {
    read(json);
  } catch (const LineError& error) {
    return MakeError(ErrorKind::kInvalidArgument, "{}: {}", what, error.what);
  }
  return AppendJsonLine(text, json);
}

// Reads line by line; which lines are allowed depends on the lines before. ReadJsonLines calls it and turns a
// LineError into an error with the line's number.
class Parser {
 public:
  void ReadHeader(const Json& json) {
    const int version = CheckMagic(json, kMagic, {kVersionOfRows, kVersionWithEffects}, "measurement file");
    effects_allowed_ = version == kVersionWithEffects;
    file_.library = json.at("library").get<std::string>();
    file_.machine = json.at("machine").get<std::string>();
    file_.command = json.at("command").get<std::string>();
    file_.hosts = json.value("hosts", "");
  }

  void ReadLine(const Json& json) {
    const auto kind = json.at("kind").get<std::string>();
    if (kind == "context") {
      file_.contexts.push_back(ContextFromJson(json));
      if (!topologies_.insert(file_.contexts.back().topology).second)
        throw LineError{"a second context for this topology"};
    } else if (kind == "row") {
      file_.rows.push_back(RowFromJson(json));
      if (!topologies_.contains(file_.rows.back().topology))
        throw LineError{"a row before the context of its topology"};
    } else if (kind == "effect" && effects_allowed_) {
      file_.effects.push_back(EffectFromJson(json));
      if (!topologies_.contains(file_.effects.back().topology))
        throw LineError{"an effect before the context of its topology"};
    } else {
      throw LineError{fmt::format("unknown kind '{}'", kind)};
    }
  }

  MeasurementFile& file() { return file_; }
  // Number of lines that the end line counts.
  size_t counted() const { return file_.rows.size() + file_.effects.size(); }

 private:
  MeasurementFile file_;
  bool effects_allowed_ = false;
  std::set<std::string> topologies_;
};

}  // namespace

Result<std::string> FormatMeasurements(const MeasurementFile& file) {
  DYNAMICCL_CHECK_OK(CheckKnownTopologies(file));
  std::string text;
  Json header{{"magic", kMagic},
              {"version", VersionFor(file)},
              {"library", file.library},
              {"machine", file.machine},
              {"command", file.command}};
  if (!file.hosts.empty()) header["hosts"] = file.hosts;
  DYNAMICCL_CHECK_OK(AppendJsonLine(text, header));
  for (const MeasurementContext& context : file.contexts) {
    DYNAMICCL_CHECK_OK(AppendLine(text, ContextToJson(context), ContextFromJson,
                                  fmt::format("the context of '{}'", context.topology)));
  }
  for (const Measurement& row : file.rows) DYNAMICCL_CHECK_OK(AppendJsonLine(text, RowToJson(row)));
  for (const MeasuredEffect& effect : file.effects) {
    DYNAMICCL_CHECK_OK(AppendLine(text, EffectToJson(effect), EffectFromJson,
                                  fmt::format("an effect on '{}'", effect.topology)));
  }
  DYNAMICCL_CHECK_OK(AppendEndLine(text, "rows", file.rows.size() + file.effects.size()));
  return text;
}

Status WriteMeasurementFile(const std::string& path, const MeasurementFile& file) {
  DYNAMICCL_TRY(const std::string text, FormatMeasurements(file));
  return WriteWholeFile(path, text);
}

Result<MeasurementFile> ParseMeasurements(std::string_view text, const std::string& name) {
  Parser parser;
  DYNAMICCL_CHECK_OK(ReadJsonLines(text, name,
                                   {.header = [&](const Json& json) { parser.ReadHeader(json); },
                                    .line = [&](const Json& json) { parser.ReadLine(json); },
                                    .counted = "rows",
                                    .count = [&] { return parser.counted(); }}));
  return std::move(parser.file());
}

Result<MeasurementFile> ReadMeasurementFile(const std::string& path) {
  DYNAMICCL_TRY(const std::string text, ReadWholeFile(path));
  return ParseMeasurements(text, path);
}

}  // namespace dynamiccl
