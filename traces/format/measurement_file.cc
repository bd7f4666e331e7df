// SPDX-License-Identifier: Apache-2.0
// Header line, contexts, rows, end line. A row may only name a topology whose context came before it.
#include "traces/format/measurement_file.h"

#include <set>

#include "traces/format/measurement_json.h"

namespace dynamiccl {
namespace {

constexpr const char* kMagic = "dynamiccl-measurements";
constexpr int kVersion = 1;

// Checks that each row has a context and that no topology has two.
Status CheckKnownTopologies(const MeasurementFile& file) {
  std::set<std::string> topologies;
  for (const MeasurementContext& context : file.contexts) {
    if (!topologies.insert(context.topology).second) {
      return MakeError(ErrorKind::kInvalidArgument, "two contexts for topology '{}'", context.topology);
    }
  }
  for (const Measurement& row : file.rows) {
    if (!topologies.contains(row.topology)) {
      return MakeError(ErrorKind::kInvalidArgument, "a row names topology '{}', which has no context",
                       row.topology);
    }
  }
  return {};
}

// Reads line by line; which lines are allowed depends on the lines before. ReadJsonLines calls it and turns a
// LineError into an error with the line's number.
class Parser {
 public:
  void ReadHeader(const Json& json) {
    CheckMagic(json, kMagic, kVersion, "measurement file");
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
    } else {
      throw LineError{fmt::format("unknown kind '{}'", kind)};
    }
  }

  MeasurementFile& file() { return file_; }

 private:
  MeasurementFile file_;
  std::set<std::string> topologies_;
};

}  // namespace

Result<std::string> FormatMeasurements(const MeasurementFile& file) {
  DYNAMICCL_CHECK_OK(CheckKnownTopologies(file));
  std::string text;
  Json header{{"magic", kMagic},
              {"version", kVersion},
              {"library", file.library},
              {"machine", file.machine},
              {"command", file.command}};
  if (!file.hosts.empty()) header["hosts"] = file.hosts;
  DYNAMICCL_CHECK_OK(AppendJsonLine(text, header));
  for (const MeasurementContext& context : file.contexts) {
    DYNAMICCL_CHECK_OK(AppendJsonLine(text, ContextToJson(context)));
  }
  for (const Measurement& row : file.rows) DYNAMICCL_CHECK_OK(AppendJsonLine(text, RowToJson(row)));
  DYNAMICCL_CHECK_OK(AppendEndLine(text, "rows", file.rows.size()));
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
                                    .count = [&] { return parser.file().rows.size(); }}));
  return std::move(parser.file());
}

Result<MeasurementFile> ReadMeasurementFile(const std::string& path) {
  DYNAMICCL_TRY(const std::string text, ReadWholeFile(path));
  return ParseMeasurements(text, path);
}

}  // namespace dynamiccl
