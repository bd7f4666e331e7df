// SPDX-License-Identifier: Apache-2.0
#include "traces/format/measurement_file.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace dynamiccl {
namespace {

using Json = nlohmann::json;

constexpr const char* kMagic = "dynamiccl-measurements";
constexpr int kVersion = 1;

std::string HashOf(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

// ---- writing ----

Json LinkToJson(const LinkParameters& link) {
  return {{"latency_us", link.latency_us}, {"bandwidth_gbps", link.bandwidth_gbps}};
}

Json TableToJson(const double (&table)[kAlgorithms][kProtocols]) {
  Json rows = Json::array();
  for (const auto& row : table) rows.push_back(Json(std::vector<double>(std::begin(row), std::end(row))));
  return rows;
}

Json ContextToJson(const MeasurementContext& context) {
  const Fabric& fabric = context.model.fabric;
  const CostConstants& constants = context.model.constants;
  return {{"kind", "context"},
          {"topology", context.topology},
          {"ranks", fabric.n_ranks},
          {"nodes", fabric.n_nodes},
          {"max_channels", fabric.max_channels},
          {"intra", LinkToJson(fabric.intra)},
          {"inter", LinkToJson(fabric.inter)},
          {"base_latency_us", TableToJson(constants.base_latency_us)},
          {"intra_latency_us", TableToJson(constants.intra_latency_us)},
          {"inter_latency_us", TableToJson(constants.inter_latency_us)},
          {"ll_max_bandwidth", constants.ll_max_bandwidth},
          {"ring_ll128_channel_bandwidth", constants.ring_ll128_channel_bandwidth},
          {"tree_ll128_channel_bandwidth", constants.tree_ll128_channel_bandwidth},
          {"tree_channel_bandwidth", constants.tree_channel_bandwidth}};
}

// A float as a double prints 9 to 17 digits and comes back as the same float.
Json RowToJson(const Measurement& row) {
  Json json = {{"kind", "row"},
               {"topology", row.topology},
               {"collective", Name(row.collective)},
               {"bytes", row.bytes},
               {"algorithm", nullptr},
               {"protocol", nullptr},
               {"channels", row.config.channels},
               {"default", row.is_default},
               {"us", row.microseconds}};
  if (row.config.algorithm != Algorithm::kUndefined) json["algorithm"] = Name(row.config.algorithm);
  if (row.config.protocol != Protocol::kUndefined) json["protocol"] = Name(row.config.protocol);
  return json;
}

// JSON has no NaN and no infinity: nlohmann prints null for them, which the reader refuses.
bool AllFinite(const Json& json) {
  if (json.is_number_float()) return std::isfinite(json.get<double>());
  return !json.is_structured() || std::all_of(json.begin(), json.end(), AllFinite);
}

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

Status AppendLine(std::string& text, const Json& json) {
  if (!AllFinite(json))
    return MakeError(ErrorKind::kInvalidArgument, "not a finite number in {}", json.dump());
  text += json.dump();
  text += '\n';
  return {};
}

// ---- reading ----

// Thrown inside ParseLine only, and caught there together with nlohmann's own exceptions.
struct LineError {
  std::string what;
};

template <typename T>
T IntegerField(const Json& json, const char* name, int64_t minimum, int64_t maximum) {
  const Json& value = json.at(name);
  if (!value.is_number_integer()) throw LineError{fmt::format("'{}' is not a whole number", name)};
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(maximum)) {
    throw LineError{fmt::format("'{}' is {}, above {}", name, value.dump(), maximum)};
  }
  if (value.get<int64_t>() < minimum)
    throw LineError{fmt::format("'{}' is {}, below {}", name, value.dump(), minimum)};
  return static_cast<T>(value.get<int64_t>());
}

double NumberField(const Json& json, const char* name) {
  const Json& value = json.at(name);
  if (!value.is_number()) throw LineError{fmt::format("'{}' is not a number", name)};
  return value.get<double>();
}

LinkParameters LinkField(const Json& json, const char* name) {
  const Json& link = json.at(name);
  return {NumberField(link, "latency_us"), NumberField(link, "bandwidth_gbps")};
}

void TableField(const Json& json, const char* name, double (&table)[kAlgorithms][kProtocols]) {
  const auto rows = json.at(name).get<std::vector<std::vector<double>>>();
  if (rows.size() != kAlgorithms)
    throw LineError{fmt::format("'{}' has {} rows, not {}", name, rows.size(), kAlgorithms)};
  for (size_t a = 0; a < rows.size(); ++a) {
    if (rows[a].size() != kProtocols)
      throw LineError{fmt::format("'{}' has a row that is not {} long", name, kProtocols)};
    std::copy(rows[a].begin(), rows[a].end(), table[a]);
  }
}

// null: not known.
template <typename T>
T NamedField(const Json& json, const char* name, std::optional<T> (*parse)(std::string_view),
             std::optional<T> absent) {
  const Json& value = json.at(name);
  const auto parsed = value.is_null() ? absent : parse(value.get<std::string>());
  if (!parsed) throw LineError{fmt::format("'{}' is {}, which is no {}", name, value.dump(), name)};
  return *parsed;
}

MeasurementContext ContextFromJson(const Json& json) {
  MeasurementContext context;
  context.topology = json.at("topology").get<std::string>();
  Fabric& fabric = context.model.fabric;
  fabric.n_ranks = IntegerField<int32_t>(json, "ranks", 1, INT32_MAX);
  fabric.n_nodes = IntegerField<int32_t>(json, "nodes", 1, fabric.n_ranks);
  fabric.max_channels = IntegerField<int32_t>(json, "max_channels", 1, 64);  // 64: NCCL's MAXCHANNELS
  fabric.intra = LinkField(json, "intra");
  fabric.inter = LinkField(json, "inter");
  CostConstants& constants = context.model.constants;
  TableField(json, "base_latency_us", constants.base_latency_us);
  TableField(json, "intra_latency_us", constants.intra_latency_us);
  TableField(json, "inter_latency_us", constants.inter_latency_us);
  constants.ll_max_bandwidth = NumberField(json, "ll_max_bandwidth");
  constants.ring_ll128_channel_bandwidth = NumberField(json, "ring_ll128_channel_bandwidth");
  constants.tree_ll128_channel_bandwidth = NumberField(json, "tree_ll128_channel_bandwidth");
  constants.tree_channel_bandwidth = NumberField(json, "tree_channel_bandwidth");
  return context;
}

Measurement RowFromJson(const Json& json) {
  Measurement row;
  row.topology = json.at("topology").get<std::string>();
  row.collective = NamedField<Collective>(json, "collective", ParseCollective, std::nullopt);
  row.bytes = IntegerField<uint64_t>(json, "bytes", 0, INT64_MAX);
  row.config.algorithm = NamedField<Algorithm>(json, "algorithm", ParseAlgorithm, Algorithm::kUndefined);
  row.config.protocol = NamedField<Protocol>(json, "protocol", ParseProtocol, Protocol::kUndefined);
  row.config.channels = IntegerField<uint8_t>(json, "channels", 0, 64);
  row.is_default = json.at("default").get<bool>();
  for (const Json& value : json.at("us")) {
    if (!value.is_number() || value.get<double>() < 0)
      throw LineError{"'us' holds something that is no duration"};
    row.microseconds.push_back(value.get<float>());
    if (!std::isfinite(row.microseconds.back()))
      throw LineError{"'us' holds a number beyond single precision"};
  }
  if (row.microseconds.empty()) throw LineError{"'us' is empty"};
  return row;
}

// State of reading: which line comes next decides what is allowed.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<MeasurementFile> Run(const std::string& name) {
    while (offset_ < text_.size() && !ended_) {
      const size_t newline = text_.find('\n', offset_);
      ++line_;
      if (newline == std::string_view::npos) return Fail(name, "the line has no end: the file is truncated");
      if (const std::string what = ParseLine(text_.substr(offset_, newline - offset_)); !what.empty())
        return Fail(name, what);
      offset_ = newline + 1;
    }
    if (!ended_) return Fail(name, "no end line: the file is truncated");
    if (offset_ != text_.size()) return Fail(name, "text after the end line");
    return std::move(file_);
  }

 private:
  tl::unexpected<Error> Fail(const std::string& name, const std::string& what) const {
    return MakeError(ErrorKind::kCorrupt, "{}:{}: {}", name, line_, what);
  }

  std::string ParseLine(std::string_view line) {
    try {
      const Json json = Json::parse(line);
      if (!json.is_object()) return "not a JSON object";
      if (line_ == 1)
        ReadHeader(json);
      else
        ReadBody(json);
      return {};
    } catch (const LineError& error) {
      return error.what;
    } catch (const Json::exception& error) {
      return error.what();
    }
  }

  void ReadHeader(const Json& json) {
    if (json.value("magic", "") != kMagic) throw LineError{"not a measurement file"};
    const int version = IntegerField<int>(json, "version", 0, INT32_MAX);
    if (version != kVersion)
      throw LineError{fmt::format("version {}, this build reads {}", version, kVersion)};
    file_.library = json.at("library").get<std::string>();
    file_.machine = json.at("machine").get<std::string>();
    file_.command = json.at("command").get<std::string>();
  }

  void ReadBody(const Json& json) {
    const auto kind = json.at("kind").get<std::string>();
    if (kind == "context") {
      file_.contexts.push_back(ContextFromJson(json));
      if (!topologies_.insert(file_.contexts.back().topology).second)
        throw LineError{"a second context for this topology"};
    } else if (kind == "row") {
      file_.rows.push_back(RowFromJson(json));
      if (!topologies_.contains(file_.rows.back().topology))
        throw LineError{"a row before the context of its topology"};
    } else if (kind == "end") {
      CheckEnd(json);
    } else {
      throw LineError{fmt::format("unknown kind '{}'", kind)};
    }
  }

  void CheckEnd(const Json& json) {
    const auto rows = IntegerField<size_t>(json, "rows", 0, INT64_MAX);
    if (rows != file_.rows.size())
      throw LineError{fmt::format("{} rows, but the end line says {}", file_.rows.size(), rows)};
    const auto wanted = json.at("xxh3").get<std::string>();
    const std::string found = HashOf(text_.substr(0, offset_));
    if (wanted != found)
      throw LineError{fmt::format("damaged: hash is {}, but the end line says {}", found, wanted)};
    ended_ = true;
  }

  std::string_view text_;
  size_t offset_ = 0;
  int line_ = 0;
  bool ended_ = false;
  MeasurementFile file_;
  std::set<std::string> topologies_;
};

}  // namespace

Result<std::string> FormatMeasurements(const MeasurementFile& file) {
  DYNAMICCL_CHECK_OK(CheckKnownTopologies(file));
  std::string text;
  DYNAMICCL_CHECK_OK(AppendLine(text, {{"magic", kMagic},
                                       {"version", kVersion},
                                       {"library", file.library},
                                       {"machine", file.machine},
                                       {"command", file.command}}));
  for (const MeasurementContext& context : file.contexts)
    DYNAMICCL_CHECK_OK(AppendLine(text, ContextToJson(context)));
  for (const Measurement& row : file.rows) DYNAMICCL_CHECK_OK(AppendLine(text, RowToJson(row)));
  const std::string hash = HashOf(text);
  DYNAMICCL_CHECK_OK(AppendLine(text, {{"kind", "end"}, {"rows", file.rows.size()}, {"xxh3", hash}}));
  return text;
}

Status WriteMeasurementFile(const std::string& path, const MeasurementFile& file) {
  DYNAMICCL_TRY(const std::string text, FormatMeasurements(file));
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (!stream) return MakeError(ErrorKind::kUnavailable, "cannot write '{}': {}", path, ErrnoText(errno));
  return {};
}

Result<MeasurementFile> ParseMeasurements(std::string_view text, const std::string& name) {
  return Parser(text).Run(name);
}

Result<MeasurementFile> ReadMeasurementFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return MakeError(ErrorKind::kNotFound, "cannot open '{}': {}", path, ErrnoText(errno));
  std::ostringstream text;
  text << stream.rdbuf();
  return ParseMeasurements(text.view(), path);
}

}  // namespace dynamiccl
